use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use leader_cron::{cron, cron_jobs, every};

struct OfOneThread(Cell<u8>);
#[cron_jobs]
impl OfOneThread {
    #[cron("@daily")]
    fn job(&self) {}
}

struct Service;
#[cron_jobs]
impl Service {
    const PERIOD: Duration = Duration::from_secs(1);
    const NUMBER: u8 = 1;

    #[every(Self::PERIOD)]
    fn right(&self) {}
    #[every(Self::NUMBER)]
    fn no_period(&self) {}
    #[cron(Self::NUMBER)]
    fn no_expression(&self) {}
    #[cron("@daily")]
    async fn keeps_to_its_thread(&self) {
        let local = Rc::new(1);
        async {}.await;
        drop(local);
    }
    #[cron("@daily")]
    fn number(&self) -> u64 {
        1
    }
    #[cron("@daily")]
    fn by_value(&self, _: Service) {}
    #[cron("@daily")]
    fn unknown(&self, _: &Unknown) {}
}

fn main() {}
