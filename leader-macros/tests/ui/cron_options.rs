use leader_cron::cron;

#[cron]
async fn nothing() {}
#[cron(tz = "UTC")]
async fn option_first() {}
#[cron(5)]
async fn number() {}
#[cron("@daily" tz = "UTC")]
async fn no_comma() {}
#[cron("@daily", "@hourly")]
async fn two() {}
#[cron("@daily", zone = "UTC")]
async fn misspelt() {}
#[cron("@daily", tz = "UTC", tz = "UTC")]
async fn twice() {}
#[cron("@daily", tz = "Central European Time")]
async fn no_zone() {}
#[cron("@daily", tz = UTC)]
async fn zone_without_quotes() {}
#[cron("@daily", name = "a:b")]
async fn name() {}
#[cron("@daily", missed = "never")]
async fn no_policy() {}
#[cron("@daily", missed = "skip", within = "1h")]
async fn skip_within() {}
#[cron("@daily", overlap = "allow", delivery = "at-least-once")]
async fn overlapping_at_least_once() {}
#[cron("@daily", timeout = "soon")]
async fn no_time() {}
#[cron("@daily", name)]
async fn no_value() {}

fn main() {}
