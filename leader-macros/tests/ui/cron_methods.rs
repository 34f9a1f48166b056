use leader_core::leader_only;
use leader_cron::{cron, every};

struct Service;

impl Service {
    #[cron("@daily")]
    async fn method(&self) {}
    #[every("5m")]
    #[leader_only]
    async fn of_itself(_: &Self) {}
}

impl Service {
    #[cron("@daily")]
    async fn nothing_tells_that_it_is_a_method() {}
}

trait Jobs {
    #[cron("@daily")]
    async fn in_a_trait() {}
}

fn main() {}
