use std::time::Duration;

use leader_cron::{Tick, cron, every};

const NUMBER: u64 = 5;

#[every]
async fn nothing() {}
#[every(name = "x")]
async fn option_first() {}
#[every(5)]
async fn without_unit() {}
#[every("often")]
async fn no_time() {}
#[every("500ms")]
async fn too_short() {}
#[every("367d")]
async fn too_long() {}
#[every("1500ms")]
async fn no_whole_seconds() {}
#[every("5m", tz = "UTC")]
async fn with_zone() {}
#[every("5m" name = "x")]
async fn no_comma() {}
#[every(NUMBER)]
async fn constant_of_another_type() {}
#[every(Duration::from_millis(1500))] // Known at start.
async fn expression() {}

#[every("5m")]
async fn generic<T>(_: &T) {}
#[every("5m")]
async fn method(&self) {}
#[every("5m")]
const fn all_at_once(_: &mut u8) {}
#[every("5m")]
struct Struct;

#[cron("@daily", name = "one")]
#[every("5m", name = "two")]
async fn named_twice() {}
#[every("5m", timeout = "1m", missed = "skip")]
#[cron("@daily", tz = "UTC", timeout = "2m")]
#[cron("@hourly", tz = "UTC", within = "5m")]
async fn twice_and_not_together() {}
#[cron("@hourly", missed = "skip")]
#[every("5m", within = "5m")]
async fn not_together() {}
#[cron("* *")]
#[every("soon")]
#[leader_cron::cron]
#[cron = "@daily"]
async fn each_is_wrong<T>(_: Tick) {}

fn main() {
    let _ = Struct;
}
