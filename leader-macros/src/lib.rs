//! Attribute macros of `leader-core` and `leader-cron`. Use them through those crates, which re-export them: what an
//! attribute expands to calls the crate that it belongs to.

mod args;
mod cron;
mod cron_jobs;
mod function;
mod job;
mod job_args;
mod key;
mod leader_only;
mod locked;
mod nesting;
mod output;
mod policy;
mod run_once;
mod schedule;
mod time;
mod with_lock;

use proc_macro::TokenStream;

use crate::job_args::Kind;

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
/// Together with [`#[with_lock]`](macro@with_lock) and [`#[run_once]`](macro@run_once), in whatever order, the gate is asked
/// first: a follower takes no lock.
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

/// Makes a function take a lock first, run its body under it, and give it back: at most one call in the whole fleet is in the
/// body at a time, leader or not.
///
/// The lock is renewed for as long as the body runs, and is given back before the function returns, however that ends. The body
/// never runs without it.
///
/// ```standalone_crate
/// use leader_core::{LockError, leader_only, with_lock};
///
/// #[derive(Debug)]
/// enum ChargeError {
///     Lock(LockError),
/// }
///
/// impl From<LockError> for ChargeError {
///     fn from(error: LockError) -> Self {
///         Self::Lock(error)
///     }
/// }
///
/// /// A key of its own for each account.
/// #[with_lock(key = "billing:{account_id}", ttl = "60s", wait = "5s")]
/// async fn charge(account_id: u64) -> Result<u64, ChargeError> {
///     // What is written here is written under the token, and has older ones refused.
///     let token = leader_core::held_lock().expect("the body runs under its lock").token();
///     Ok(token.get())
/// }
///
/// /// By the leader alone, and then under the lock: also while an older leader is not through with it.
/// #[leader_only(group = "billing")]
/// #[with_lock(key = "billing:charge-run", ttl = "240s", on_busy = "skip")]
/// async fn charge_all() -> Result<(), ChargeError> {
///     for account_id in [17, 4] {
///         charge(account_id).await?;
///     }
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Nobody to ask for a lock: nothing runs.
/// assert!(matches!(charge(17).await, Err(ChargeError::Lock(LockError::NotStarted { .. }))));
///
/// let leader = leader_core::bootstrap(leader_core::Config::new("memory:with-lock")).await?;
/// assert!(charge(17).await.is_ok() && charge_all().await.is_ok());
/// # leader.shutdown(std::time::Duration::from_secs(1)).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Options
///
/// | option | meaning | default |
/// |---|---|---|
/// | `key = …` | what is locked: a text, in which `{name}` stands for an argument, a constant or a variable, as in `format!`; or an expression that is `AsRef<str>`, such as `format!("account:{}", self.id)`. 1 to 512 bytes without control characters | has to be given |
/// | `ttl = …` | how long the lock outlives an instance that died under it: `"240s"`, `"500ms"`, `"5m"`, or an expression of type `Duration`, of 100 ms to 1 h | the elector's ttl |
/// | `wait = …` | how long to wait for it; those who wait are served in the order in which they came | not at all |
/// | `on_busy = "…"` | what a call does that does not get the lock: `"error"` returns the [`LockError`][LockError], `"skip"` the skipped value | `"error"` |
/// | `skipped = EXPR` | what a skipped call returns; it may use the arguments and, in async functions, `.await` | [`Skipped::skipped()`][skipped] of the return type |
/// | `on_loss = "…"` | what happens to the body if the lock is lost: `"cancel"` drops it at its next await, `"finish"` lets it run on | `"cancel"`; `"finish"` in functions that are not async, which know nothing else |
/// | `lost = EXPR` | what is returned if the lock was lost; it cannot use arguments that the body takes over | the [`LockError`][LockError] |
/// | `crate = path` | where `leader-core` is, if it has another name | `::leader_core` |
///
/// The key and the lengths of time are looked at when the function is called, or, if it is async, when its future is polled for
/// the first time; the body can still take what they are made of.
///
/// # Without the lock
///
/// A call that does not get the lock does not run the body, whatever the reason: another one has it
/// ([`LockError::Busy`][LockError]), the store does not answer, there is no elector, it ends, the key is none. With
/// `on_busy = "error"` the function has to return a `Result` whose error is `From<LockError>`. With `on_busy = "skip"` it returns
/// the skipped value; that is logged, at WARN unless the lock was just busy.
///
/// A body that calls a function with the same key, or its own, asks for what it holds itself: that is busy like any other.
///
/// # A lock that is lost
///
/// While the store cannot be reached for longer than the ttl, or a process stands still for so long, its lock is lost. From
/// then on another call may have it. The body is cancelled (`on_loss = "cancel"`) or runs on (`"finish"`), and the function
/// returns [`LockError::Lost`][LockError]: never `Ok`, also if the body has come to its end meanwhile; only an error of the body's
/// own comes before that. A function that cannot return that error says what it returns instead: `lost = EXPR`, and that is
/// logged. When the elector ends before the body, that is the same, with [`LockError::Stopped`][LockError].
///
/// A lock is not a fence: a write that is under way when it is lost can arrive after that of the next holder. Where that does
/// harm, hand `leader_core::held_lock()`'s token to what is written to, and have older ones refused.
///
/// # Errors of inner locks
///
/// What the body returns is returned as it is. A lock that it asks for by itself and does not get is an error like others, and
/// never makes this function a skipped one.
///
/// # Together with other attributes
///
/// In whatever order they are written, they take effect in one: `#[leader_only]`, then `#[with_lock]`, then
/// [`#[run_once]`](macro@run_once), then the body. A follower asks for no lock. They know each other by their names: one that was
/// imported under another name has to be written above the others, and below them is an error of the compiler. Of two locks on one function, the one that is written last is
/// taken first.
///
/// # Where it can stand
///
/// Where [`#[leader_only]`](macro@leader_only#where-it-can-stand) can. A function that is not async blocks its thread while it
/// asks for the lock, waits for it, and gives it back; it may do so on the threads of a runtime, though nothing else runs there
/// meanwhile. Only a store's own code, which the elector's thread runs, must not call one.
///
/// # Cancel safety
///
/// Dropping the future of an async function drops its body, and then gives the lock back, or the place among those who wait.
///
/// [skipped]: https://docs.rs/leader-core/latest/leader_core/trait.Skipped.html
/// [LockError]: https://docs.rs/leader-core/latest/leader_core/enum.LockError.html
#[proc_macro_attribute]
pub fn with_lock(args: TokenStream, item: TokenStream) -> TokenStream {
    with_lock::expand(args.into(), item.into()).into()
}

/// Makes the work of a function be done once in the whole fleet: once it has succeeded, calls skip it, everywhere and for good.
///
/// ```standalone_crate
/// use leader_core::{LockError, run_once};
///
/// const VERSION: u32 = 3;
///
/// /// `None`: it was done before.
/// #[run_once(key = "migrate:{VERSION}", wait = "5m")]
/// async fn migrate() -> Result<Option<u32>, LockError> {
///     // One transaction.
///     Ok(Some(VERSION))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let leader = leader_core::bootstrap(leader_core::Config::new("memory:run-once")).await?;
/// assert_eq!(migrate().await?, Some(3));
/// assert_eq!(migrate().await?, None);
///
/// leader.forget("migrate:3").await?;
/// assert_eq!(migrate().await?, Some(3));
/// # leader.shutdown(std::time::Duration::from_secs(1)).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Done, busy, failed
///
/// | at the call | what happens |
/// |---|---|
/// | it is done | the skipped value is returned |
/// | another instance is at it | that is waited for, for as long as `wait` says; then [`LockError::Busy`][LockError], or with `on_busy = "skip"` the skipped value |
/// | nobody is at it | the body runs. If it returns `Ok` or `()`, that it is done is noted, before the function returns. After an `Err`, a panic or a drop it is undone, and the next call runs it again |
/// | an instance died at it | it is undone: with a store on SQLite at once, on Redis as soon as the ttl is over, so to take it over `wait` has to exceed the ttl |
/// | it has run, and that could not be noted | [`LockError::Unconfirmed`][LockError]: it is run again by the next call, unless the note arrived all the same |
/// | the store has lost its memory | it counts as undone |
///
/// So the work begins again from its beginning wherever it did not come to its end, and an instance can also die between the
/// end of the work and the note. It has to be *idempotent up to its commit*, like a migration in one transaction.
///
/// The result of the function is `()` or a `Result`. All that is said of locks at [`#[with_lock]`](macro@with_lock) holds for the
/// claim on the work: it is renewed, an async body is cancelled when it is lost, and then the function never returns `Ok`: the
/// work is undone. The claim is a lock apart from those of the same name. `leader_core::held_lock()` gives it to the body.
///
/// # Options
///
/// | option | meaning | default |
/// |---|---|---|
/// | `key = …` | what the work is, such as `"migrate:{VERSION}"`: as for [`#[with_lock]`](macro@with_lock), up to 507 bytes | has to be given |
/// | `ttl = …` | how long the claim outlives an instance that died at the work | the elector's ttl |
/// | `wait = …` | how long to wait for another instance that is at it | not at all |
/// | `keep = …` | how long the work counts as done; without an end the store keeps a note for each key, so keys that are made of data should have one | for ever |
/// | `on_busy = "…"` | what a call does that cannot have the work: `"error"` returns the [`LockError`][LockError], `"skip"` the skipped value | `"error"` |
/// | `skipped = EXPR` | what a call returns that finds the work done, or is skipped | [`Skipped::skipped()`][skipped] of the return type |
/// | `lost = EXPR` | what is returned if the claim was lost, or it could not be noted that the work is done | the [`LockError`][LockError] |
/// | `crate = path` | where `leader-core` is, if it has another name | `::leader_core` |
///
/// # Why not have the leader do it?
///
/// In a rolling update the old leader goes on leading while each new instance starts as a follower, skips the work, and goes on
/// without it: it runs nowhere. When the old leader ends at last, nobody comes back to it. And old and new versions run side by
/// side meanwhile, each led by the other. What has to happen once for each version has the version in its key, and is asked for
/// by every instance of that version, leader or not.
///
/// # Cancel safety
///
/// Dropping the future of an async function drops its body, and the work is undone. Once the body has succeeded, that is noted
/// though nobody waits.
///
/// [skipped]: https://docs.rs/leader-core/latest/leader_core/trait.Skipped.html
/// [LockError]: https://docs.rs/leader-core/latest/leader_core/enum.LockError.html
#[proc_macro_attribute]
pub fn run_once(args: TokenStream, item: TokenStream) -> TokenStream {
    run_once::expand(args.into(), item.into()).into()
}

#[doc = include_str!("../docs/cron.md")]
#[proc_macro_attribute]
pub fn cron(args: TokenStream, item: TokenStream) -> TokenStream {
    cron::expand(Kind::Cron, args.into(), item.into()).into()
}

#[doc = include_str!("../docs/every.md")]
#[proc_macro_attribute]
pub fn every(args: TokenStream, item: TokenStream) -> TokenStream {
    cron::expand(Kind::Every, args.into(), item.into()).into()
}

#[doc = include_str!("../docs/cron_jobs.md")]
#[proc_macro_attribute]
pub fn cron_jobs(args: TokenStream, item: TokenStream) -> TokenStream {
    cron_jobs::expand(args.into(), item.into()).into()
}
