use leader_cron::cron;

const NUMBER: u8 = 5;

#[cron("")]
async fn empty() {}
#[cron("* * * *")]
async fn four_fields() {}
#[cron("0 61 * * * *")]
async fn minute_61() {}
#[cron("0 24 * * *")]
async fn hour_24() {}
#[cron("0 0 * * FUN")]
async fn no_day() {}
#[cron("0 0 1 FEB-JAN *")]
async fn backwards() {}
#[cron("0 0/5 * * * *")]
async fn start_and_step() {}
#[cron("0 /5 * * * *")]
async fn step_alone() {}
#[cron("0 0 MON * * *")]
async fn day_as_hour() {}
#[cron("0 0,, * * * *")]
async fn comma() {}
#[cron("@fortnightly")]
async fn no_nickname() {}
#[cron(NUMBER)]
async fn constant_of_another_type() {}

fn main() {}
