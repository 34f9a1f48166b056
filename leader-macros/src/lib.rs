//! Attribute macros of `leader-core` and `leader-cron`. Use them through those crates, which re-export them: what an
//! attribute expands to calls the crate that it belongs to.

mod args;
mod cron;
mod function;
mod key;
mod leader_only;
mod locked;
mod nesting;
mod run_once;
mod schedule;
mod time;
mod with_lock;

use proc_macro::TokenStream;

/// Makes a function run only where this instance leads a group; everywhere else it is skipped.
///
/// The signature stays as it is written. Whether this instance leads is asked at each call, or, if the function is async,
/// when its future is polled for the first time; that needs no I/O. The attribute also declares the group: every group that
/// a program declares takes part in its election once the program has called `leader_core::bootstrap`.
///
/// Before that call, after shutdown, and in a program that never makes it, the function is skipped.
///
/// ```standalone_crate
/// use leader_core::leader_only;
///
/// struct Reports;
///
/// // The group `default`.
/// #[leader_only]
/// async fn send_reports(reports: &Reports) {
///     // …
/// }
///
/// #[leader_only(group = "cleanup")]
/// fn remove_old_files() -> Result<Option<u64>, std::io::Error> {
///     let mut removed = 0;
///     // …
///     Ok(Some(removed))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // Nobody has led anything yet, so both are skipped.
/// send_reports(&Reports).await;
/// assert!(matches!(remove_old_files(), Ok(None)));
/// # }
/// ```
///
/// # Options
///
/// | option | meaning | default |
/// |---|---|---|
/// | `group = "…"` | the group: 1 to 64 ASCII letters, digits, `.`, `_` or `-`; or the path of a `const` of type `&str`, which is checked when the program starts | `"default"` |
/// | `skipped = EXPR` | what a follower returns; it may use the arguments and, in async functions, `.await` | [`Skipped::skipped()`][skipped] of the return type |
/// | `on_loss = "…"` | what happens to running async work when the lease is lost: `"finish"` lets it run on, `"cancel"` drops it at its next await, and the function returns the skipped value | `"finish"` |
/// | `crate = path` | where `leader-core` is, if it has another name | `::leader_core` |
///
/// [skipped]: https://docs.rs/leader-core/latest/leader_core/trait.Skipped.html
///
/// # What a follower returns
///
/// `()`, `None`, or `Ok` of one of them. A function that returns anything else needs `skipped = EXPR`:
///
/// ```standalone_crate
/// use leader_core::leader_only;
///
/// const GROUP: &str = "billing";
///
/// #[leader_only(group = GROUP, skipped = Outcome::NotHere { open: invoices.len() })]
/// async fn charge(invoices: &[u64]) -> Outcome {
///     Outcome::Charged
/// }
///
/// #[derive(Debug, PartialEq)]
/// enum Outcome {
///     Charged,
///     NotHere { open: usize },
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// assert_eq!(charge(&[17, 4]).await, Outcome::NotHere { open: 2 });
/// # }
/// ```
///
/// With `on_loss = "cancel"` the same expression says what is returned when the work was dropped, so it cannot use an
/// argument that the body takes over.
///
/// # Where it can stand
///
/// On functions and methods with a body, async or not, generic or not, also in traits and their implementations, also under
/// `#[async_trait]`. A function that returns a future is best written as an `async fn`; otherwise its body has to end in an
/// `async` block, or in `Box::pin` of one, and what stands before that block runs on every instance. Such a function is known
/// by its return type: `impl Future`, `Pin<Box<dyn Future>>`, `BoxFuture`. Behind any other name a future is a value like
/// others, and whether this instance leads is asked when it is made. A future that could change threads still can.
///
/// It cannot stand on `const`, `unsafe` and `extern` functions, nor on one that never returns.
///
/// Together with `#[tracing::instrument]`: written above this attribute, it opens a span on the leader and on followers;
/// below, on the leader alone, because a skipped call never reaches it.
///
/// # A library with gated functions
///
/// The compiler does not load a library that a program only lists in `Cargo.toml` and never mentions, and then it has none
/// of its groups. `use the_library as _;` is enough to mention it. `leader_core::declared_groups` tells which there are.
///
/// # A lease is not a lock on the outside world
///
/// A write that is under way when the lease ends can still arrive after the next leader began. Where that would do harm,
/// hand the lease's term to what is written to, and have older terms refused.
///
/// # Cancel safety
///
/// Dropping the future of a gated async function drops its body, as without the attribute.
#[proc_macro_attribute]
pub fn leader_only(args: TokenStream, item: TokenStream) -> TokenStream {
    leader_only::expand(args.into(), item.into()).into()
}

/// WITH_LOCK
#[proc_macro_attribute]
pub fn with_lock(args: TokenStream, item: TokenStream) -> TokenStream {
    with_lock::expand(args.into(), item.into()).into()
}

/// RUN_ONCE
#[proc_macro_attribute]
pub fn run_once(args: TokenStream, item: TokenStream) -> TokenStream {
    run_once::expand(args.into(), item.into()).into()
}

/// Makes a function a job that runs when a cron expression says so.
///
/// The job is known to every scheduler that this program starts. By itself it runs on every instance; together with
/// `#[leader_only]`, above or below, it runs only where its group is led.
///
/// ```standalone_crate
/// use leader_core::leader_only;
/// use leader_cron::{Tick, cron};
///
/// struct Db;
///
/// #[cron("0 3 * * *", tz = "Europe/Berlin")]
/// #[leader_only(group = "cleanup")]
/// async fn remove_expired(db: &Db, tick: Tick) -> Result<(), std::io::Error> {
///     println!("as of {}", tick.unix_seconds());
///     Ok(())
/// }
///
/// const REFRESH: &str = "*/30 * * * * *";
///
/// // On every instance. Not async, so it may block.
/// #[cron(REFRESH, name = "refresh-cache")]
/// fn refresh() {}
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // A job is still a function: a test calls it.
/// remove_expired(&Db, Tick::at(std::time::SystemTime::now())).await.unwrap();
/// refresh();
/// # }
/// ```
///
/// # The expression
///
/// A literal, or the path of a `const` of type `&str`, of 5 fields, 6 or 7:
///
/// | field | values | also |
/// |---|---|---|
/// | second, only with 6 or 7 fields | 0-59 | |
/// | minute | 0-59 | |
/// | hour | 0-23 | |
/// | day of the month | 1-31 | `L` the last one, `15W` the weekday nearest to the 15th, `LW` the last weekday, `?` any |
/// | month | 1-12 or JAN-DEC | |
/// | day of the week | 0-7 (0 and 7 are Sunday) or SUN-SAT | `FRI#2` the second Friday, `FRIL` the last one, `?` any, `+FRI` only if the day of the month fits too |
/// | year, only with 7 fields | 1-5000 | |
///
/// Each is `*`, a value, a range `1-5`, steps `*/10` or `1-30/5`, or a list of these with commas. There are also `@yearly`
/// or `@annually`, `@monthly`, `@weekly`, `@daily` or `@midnight`, and `@hourly`.
///
/// A literal is checked when the program is compiled. What cannot be known then (a `const`, the 30th of February, a year
/// that is over) is an error when the scheduler starts.
///
/// # Options
///
/// | option | meaning | default |
/// |---|---|---|
/// | `tz = "…"` | the time zone in which the expression is read, such as `"Europe/Berlin"` | UTC |
/// | `name = "…"` | the job's name, under which its runs are recorded: 1 to 64 ASCII letters, digits, `.`, `_` or `-` | the function's name |
/// | `crate = path` | where `leader-cron` is, if it has another name | `::leader_cron` |
///
/// # Arguments and result
///
/// An argument is `&T` or `&dyn Trait`, lent out of what the scheduler was given with `.data(..)`, or `Tick`, by value or by
/// reference, which tells the scheduled time. Data that is missing is an error when the scheduler starts.
///
/// A job returns `()` or `Result<(), E>` with an `E: Display`. An async one has to be `Send`, as it may change threads.
///
/// It cannot be generic, and not a method: nothing would say which types or which `self` to run it with.
#[proc_macro_attribute]
pub fn cron(args: TokenStream, item: TokenStream) -> TokenStream {
    cron::expand(args.into(), item.into()).into()
}
