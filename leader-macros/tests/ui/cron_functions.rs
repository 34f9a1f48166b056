use leader_cron::{Tick, cron};

#[cron("@daily")]
async fn generic<T>(_: &T) {}
#[cron("@daily")]
async fn with_lifetime<'a>(_: &'a u8) {}
#[cron("@daily")]
async fn exclusive(_: &mut u8) {}
#[cron("@daily")]
async fn for_ever(_: &'static u8) {}
#[cron("@daily")]
async fn any_reference(_: &impl ToString) {}
#[cron("@daily")]
async fn any_value(_: impl ToString) {}
#[cron("@daily")]
fn future(_: Tick) -> impl Future<Output = ()> {
    async {}
}
#[cron("* * *", zone = "UTC")]
const fn all_at_once<T>(_: &mut u8) {}

#[cron("@daily")]
struct Struct;

struct Service;
impl Service {
    #[cron("@daily")]
    async fn method(&self) {}
    #[cron("@daily")]
    async fn associated(_: &Self) {}
}

fn main() {
    let _ = Struct;
}
