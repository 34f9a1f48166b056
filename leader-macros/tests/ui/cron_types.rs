use std::rc::Rc;

use leader_cron::cron;

struct Db;

#[cron("@daily")]
async fn by_value(_: Db) {}
#[cron("@daily")]
async fn of_one_thread(_: &Rc<u8>) {}
trait OfOneThread {}
#[cron("@daily")]
async fn trait_of_one_thread(_: &dyn OfOneThread) {}
#[cron("@daily")]
fn number() -> u64 {
    1
}
#[cron("@daily")]
async fn error_without_display() -> Result<(), Db> {
    Ok(())
}
#[cron("@daily")]
async fn value(_: &Db) -> Result<u64, String> {
    Ok(1)
}

fn main() {}
