//! The attributes together with others, in both orders.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

use leader_core::{declared_groups, leader_only};
use leader_cron::__private::{Context, Data, JobRegistration, Outcome, Run, Timing, inventory};
use leader_cron::{JobError, Tick, cron, cron_jobs, every};
use leader_tests::future::{block_on, pause, send};
use leader_tests::gate::leads;

#[leader_only(group = "main-below")]
#[tokio::main(flavor = "current_thread")]
async fn main_below() -> Option<u8> {
    pause().await;
    Some(1)
}
#[tokio::main(flavor = "current_thread")]
#[leader_only(group = "main-above")]
async fn main_above() -> Option<u8> {
    pause().await;
    Some(1)
}

#[test]
fn tokio_main_is_gated_in_both_orders() {
    assert_eq!((main_below(), main_above()), (None, None));
    leads("main-below", true);
    leads("main-above", true);
    assert_eq!((main_below(), main_above()), (Some(1), Some(1)));
}

#[tokio::test]
#[leader_only(group = "never-led")]
async fn a_tokio_test_above_is_gated() {
    panic!("a follower ran it")
}
#[leader_only(group = "never-led")]
#[tokio::test]
async fn a_tokio_test_below_is_gated() {
    panic!("a follower ran it")
}

#[tracing::instrument(ret)]
#[leader_only(group = "instrumented")]
async fn instrument_above(n: u8) -> Option<u8> {
    pause().await;
    Some(n)
}
#[leader_only(group = "instrumented")]
#[tracing::instrument(skip_all, err)]
async fn instrument_below(n: u8) -> Result<(), String> {
    pause().await;
    Err(n.to_string())
}
#[leader_only(group = "instrumented")]
#[tracing::instrument]
fn instrument_sync_below(n: u8) -> Option<u8> {
    Some(n)
}
#[tracing::instrument]
#[leader_only(group = "instrumented")]
fn instrument_sync_above(n: u8) -> Option<u8> {
    Some(n)
}

#[async_trait::async_trait]
trait Traced {
    async fn above(&self) -> Option<u8>;
    async fn below(&self) -> Option<u8>;
}
struct Service;
#[async_trait::async_trait]
impl Traced for Service {
    #[tracing::instrument(skip(self))]
    #[leader_only(group = "instrumented")]
    async fn above(&self) -> Option<u8> {
        pause().await;
        Some(1)
    }
    #[leader_only(group = "instrumented")]
    #[tracing::instrument(skip(self))]
    async fn below(&self) -> Option<u8> {
        pause().await;
        Some(1)
    }
}

#[test]
fn instrumented_functions_are_gated_in_both_orders() {
    let all = || {
        (
            block_on(send(instrument_above(1))),
            block_on(send(instrument_below(1))),
            instrument_sync_below(1),
            instrument_sync_above(1),
            block_on(send(Service.above())),
            block_on(send(Service.below())),
        )
    };
    leads("instrumented", false);
    assert_eq!(all(), (None, Ok(()), None, None, None, None));
    leads("instrumented", true);
    assert_eq!(all(), (Some(1), Err("1".into()), Some(1), Some(1), Some(1), Some(1)));
}

#[axum::debug_handler]
#[leader_only(group = "handlers", skipped = "follower")]
async fn handler_above(_: axum::extract::Json<u8>) -> &'static str {
    "leader"
}
#[leader_only(group = "handlers", skipped = "follower")]
#[axum::debug_handler]
async fn handler_below() -> &'static str {
    "leader"
}

#[test]
fn axum_handlers_are_gated_in_both_orders() {
    let both = || (block_on(handler_above(axum::Json(1))), block_on(handler_below()));
    leads("handlers", false);
    assert_eq!(both(), ("follower", "follower"));
    leads("handlers", true);
    assert_eq!(both(), ("leader", "leader"));
    let _: axum::Router = axum::Router::new()
        .route("/above", axum::routing::post(handler_above))
        .route("/below", axum::routing::get(handler_below));
}

struct Db(AtomicU32);

trait Mailer: Send + Sync {
    fn address(&self) -> &str;
}
impl Mailer for String {
    fn address(&self) -> &str {
        self
    }
}

const EVERY_HOUR: &str = "@hourly";

#[cron("0 0 * * * *")]
#[leader_only(group = "cleanup")]
async fn cron_above(db: &Db) -> Result<(), String> {
    pause().await;
    db.0.fetch_add(1, SeqCst);
    Ok(())
}
#[leader_only(group = "cleanup")]
#[cron("0 */5 * * * *", name = "clean.up-5", tz = "Europe/Berlin")]
async fn cron_below(db: &Db) {
    pause().await;
    db.0.fetch_add(10, SeqCst);
}
#[cron("0 0 4 * * *")]
#[leader_only(group = "cleanup", on_loss = "cancel")]
#[tracing::instrument(skip_all)]
async fn cron_and_two(db: &Db) -> Result<(), std::fmt::Error> {
    db.0.fetch_add(100, SeqCst);
    Err(std::fmt::Error)
}
#[cron(EVERY_HOUR)]
fn cron_sync(db: &Db, tick: Tick) -> Result<(), String> {
    db.0.fetch_add(u32::try_from(tick.unix_seconds()).expect("a small number"), SeqCst);
    Ok(())
}
#[cron("*/5 * * * *")]
async fn every_kind_of_argument(mailer: &dyn Mailer, by_value: Tick, by_ref: &Tick, Db(_): &Db) -> Result<(), String> {
    let address = mailer.address().to_owned();
    pause().await;
    Err(format!("{address} {} {}", by_value.missed(), by_ref.attempt()))
}
#[cron("0 0 4 * * *")]
async fn r#loop(r#loop: &Db) {
    r#loop.0.fetch_add(1000, SeqCst);
}
#[cron("0 0 4 * * *")]
#[cfg(any())]
async fn left_out() {}

#[every("5m")]
#[tracing::instrument(skip_all)]
#[cron("@daily")]
#[leader_only(group = "cleanup")]
async fn every_and_cron(db: &Db) {
    pause().await;
    db.0.fetch_add(10_000, SeqCst);
}

#[async_trait::async_trait]
trait Cleaner {
    async fn clean(&self, tick: Tick) -> Result<(), String>;
}
#[cron_jobs]
#[async_trait::async_trait]
impl Cleaner for Db {
    #[leader_only(group = "cleanup")]
    #[tracing::instrument(skip_all)]
    #[every("5m", renamed_from = "tidy")]
    async fn clean(&self, tick: Tick) -> Result<(), String> {
        pause().await;
        self.0.fetch_add(100_000, SeqCst);
        Err(tick.missed().to_string())
    }
}

fn job(function: &str) -> &'static JobRegistration {
    let jobs = inventory::iter::<JobRegistration>;
    jobs.into_iter().find(|job| job.site.function == function).expect("the job is registered")
}

fn context() -> (Arc<Data>, Context) {
    let mut data = Data::default();
    data.insert(Arc::new(Db(AtomicU32::new(0))));
    data.insert::<dyn Mailer>(Arc::new(String::from("a@b.c")));
    let data = Arc::new(data);
    let tick = Tick::at(SystemTime::UNIX_EPOCH + Duration::from_secs(5000)).with_missed(3).with_attempt(2);
    (data.clone(), Context::new(data, tick))
}

fn run(function: &str, cx: &Context) -> Outcome {
    match job(function).run {
        Run::Async(run) => block_on(send(run(cx))),
        Run::Blocking(run) => run(cx),
    }
}

#[test]
fn a_gated_job_runs_on_the_leader_in_both_orders() {
    let (data, cx) = context();
    let all = || ["cron_above", "cron_below", "cron_and_two", "every_and_cron", "clean"].map(|job| run(job, &cx));
    let db = &data.get::<Db>().unwrap().0;
    leads("cleanup", false);
    assert_eq!(all(), [const { Ok(()) }; 5]);
    assert_eq!(db.load(SeqCst), 0);
    leads("cleanup", true);
    let failed = Err(JobError(std::fmt::Error.to_string()));
    assert_eq!(all(), [Ok(()), Ok(()), failed, Ok(()), Err(JobError("3".to_owned()))]);
    assert_eq!(db.load(SeqCst), 110_111);
}

#[test]
fn a_job_and_its_group_find_each_other_in_both_orders() {
    let groups = declared_groups();
    let group_of = |function: &str| {
        let site = job(function).site;
        groups.iter().find(|(_, sites)| sites.contains(&site)).map(|(group, _)| *group)
    };
    assert_eq!(group_of("cron_above"), Some("cleanup"));
    assert_eq!(group_of("cron_below"), Some("cleanup"));
    assert_eq!(group_of("cron_and_two"), Some("cleanup"));
    assert_eq!(group_of("every_and_cron"), Some("cleanup"));
    assert_eq!(group_of("clean"), Some("cleanup"));
    assert_eq!(group_of("cron_sync"), None);
}

#[test]
fn a_job_knows_the_name_that_it_had() {
    assert_eq!(["clean", "cron_sync"].map(|function| job(function).renamed_from), [Some("tidy"), None]);
}

#[test]
fn a_job_is_lent_its_data_and_its_tick() {
    let (data, cx) = context();
    assert_eq!(run("cron_sync", &cx), Ok(()));
    assert_eq!(data.get::<Db>().unwrap().0.load(SeqCst), 5000);
    assert_eq!(run("every_kind_of_argument", &cx), Err(JobError("a@b.c 3 2".to_owned())));
    assert_eq!(run("loop", &cx), Ok(()));
}

#[test]
fn a_registration_tells_all_that_was_written() {
    let all: Vec<_> = inventory::iter::<JobRegistration>.into_iter().map(|job| job.site.function).collect();
    assert_eq!(all.len(), 8, "{all:?}");
    let below = job("cron_below");
    let timing = |expression, zone| Timing::Cron { expression, zone };
    assert_eq!((below.name, below.schedules), ("clean.up-5", &[timing("0 */5 * * * *", Some("Europe/Berlin"))][..]));
    let sync = job("cron_sync");
    assert_eq!((sync.name, sync.schedules), ("cron_sync", &[timing("@hourly", None)][..]));
    let several = job("every_and_cron");
    assert_eq!(several.schedules, [Timing::Every(Duration::from_secs(300)), timing("@daily", None)]);
    assert!(matches!((below.run, sync.run), (Run::Async(_), Run::Blocking(_))));
    assert_eq!(job("loop").name, "loop");
}

#[test]
fn what_a_job_needs_is_known_before_it_runs() {
    let (data, _) = context();
    let needs = job("every_kind_of_argument").needs;
    let names: Vec<_> = needs.iter().map(|need| need.type_name()).collect();
    assert_eq!(names, ["dyn macros_stack::Mailer", "leader_cron::tick::Tick", "macros_stack::Db"]);
    assert!(needs.iter().all(|need| need.is_in(&data)));
    let missing: Vec<_> =
        needs.iter().filter(|need| !need.is_in(&Data::default())).map(|need| need.type_name()).collect();
    assert_eq!(missing, ["dyn macros_stack::Mailer", "macros_stack::Db"]);
}
