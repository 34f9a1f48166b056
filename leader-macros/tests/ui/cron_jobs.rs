use std::pin::Pin;
use std::sync::Arc;

use leader_cron::{cron, cron_jobs, every};

struct Service;

#[cron_jobs]
impl Service {
    #[cron("@daily")]
    async fn exclusive(&mut self) {}
    #[cron("@daily")]
    async fn by_value(self) {}
    #[cron("@daily")]
    async fn arc(self: Arc<Self>) {}
    #[cron("@daily")]
    async fn pinned(self: Pin<&Self>) {}
    #[cron("@daily")]
    async fn exclusive_in_full(self: &mut Self) {}
    #[cron("@daily")]
    async fn for_ever(&'static self) {}
    #[cron("@daily")]
    async fn generic<T>(&self, _: &T) {}
    #[cron("@daily")]
    async fn exclusive_argument(&self, _: &mut u8) {}
    #[cron("@daily")]
    fn future(&self) -> impl Future<Output = ()> {
        async {}
    }
    #[cron("* *", zone = "UTC")]
    #[every("soon")]
    const fn all_at_once(&mut self) {}
    #[cfg_attr(all(), cron("@daily"))]
    async fn undecided(&self) {}
    #[cron("@daily", name = "a")]
    #[every("5m", name = "b")]
    async fn twice(&self) {}
}

struct Generic<T>(T);
#[cron_jobs]
impl<T> Generic<T> {
    #[cron("@daily")]
    async fn job(&self) {}
}

struct Borrowed<'a>(&'a str);
#[cron_jobs]
impl Borrowed<'_> {
    #[cron("@daily")]
    async fn job(&self) {}
}
#[cron_jobs]
impl<'a> Borrowed<'a> {
    #[cron("@daily")]
    async fn another(&self) {}
}

#[cron_jobs]
impl Service {
    fn no_job() {}
}
#[cron_jobs(name = "x")]
impl Service {
    #[cron("@daily")]
    async fn job(&self) {}
}
#[cron_jobs]
async fn function() {}
#[cron_jobs]
trait Trait {}
#[cron_jobs]
mod module {}

trait Jobs {
    fn job<'life0, 'async_trait>(&'life0 self) -> Pin<Box<dyn Future<Output = ()> + Send + 'async_trait>>
    where
        'life0: 'async_trait;
}
// What `#[async_trait]` makes of an async method.
#[cron_jobs]
impl Jobs for Service {
    #[cron("@daily")]
    fn job<'life0, 'async_trait>(&'life0 self) -> Pin<Box<dyn Future<Output = ()> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
    {
        Box::pin(async {})
    }
}

fn main() {}
