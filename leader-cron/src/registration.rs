//! What an expanded `#[cron]` or `#[every]` hands to the scheduler: the job, what it needs, and how to run it.

use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use leader_core::Site;

use crate::data::Data;
use crate::policy::Policy;
use crate::schedule::Timing;
use crate::tick::Tick;

/// A function or method with `#[cron]` or `#[every]`, collected at link time.
#[derive(Debug)]
pub struct JobRegistration {
    /// The job's name: the one given, or the function's.
    pub name: &'static str,
    /// Its schedules, one at least. The macro has looked at literals; they have to be read all the same.
    pub schedules: &'static [Timing<&'static str>],
    /// The place of the function, equal to the one of its `#[leader_only]`.
    pub site: Site,
    /// The data that a run asks for: without it the job must not be started.
    pub needs: &'static [DataKey],
    /// The name that it had before.
    pub renamed_from: Option<&'static str>,
    /// What becomes of ticks that were missed, runs that overlap, runs that die.
    pub policy: Policy,
    /// The work.
    pub run: Run,
}

inventory::collect!(JobRegistration);

/// What stands beside a function that is a job. Beside a method a `const` without a name is an error, which names this macro:
/// nothing else tells a function of an `impl` block from others.
#[doc(hidden)]
#[macro_export]
macro_rules! __put_cron_jobs_on_the_impl_block_of_a_method {
    ($($registration:tt)*) => {
        const _: () = { $($registration)* };
    };
}

/// How to run a job.
#[derive(Clone, Copy)]
pub enum Run {
    /// A future that can be spawned.
    Async(for<'a> fn(&'a Context) -> BoxFuture<'a, Outcome>),
    /// A call that may block its thread.
    Blocking(fn(&Context) -> Outcome),
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Async(_) => "Async",
            Self::Blocking(_) => "Blocking",
        })
    }
}

/// A boxed future that may change threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How a run ended, if it did not panic.
pub type Outcome = Result<(), JobError>;

/// What a job's error says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JobError(pub String);

/// What can be lent to jobs on any thread.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be lent to a job",
    label = "data is shared between threads: it has to be `Send + Sync`",
    note = "for a trait object, make `Send + Sync` its supertraits, or write `&(dyn Trait + Send + Sync)`"
)]
pub trait Shared: Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: ?Sized + Send + Sync + 'static> Shared for T {}

/// The type of some data.
#[derive(Clone, Copy)]
pub struct DataKey {
    // Functions, as neither a `TypeId` nor a type's name is known in a `const` of the oldest supported compiler.
    type_id: fn() -> TypeId,
    type_id_of_arc: fn() -> TypeId,
    type_name: fn() -> &'static str,
}

impl DataKey {
    /// The key of `T`.
    #[must_use]
    pub const fn of<T: ?Sized + Shared>() -> Self {
        Self { type_id: TypeId::of::<T>, type_id_of_arc: TypeId::of::<Arc<T>>, type_name: type_name::<T> }
    }

    /// The type's name, for messages.
    #[must_use]
    pub fn type_name(self) -> &'static str {
        (self.type_name)()
    }

    /// Whether a run can be lent this out of `data`. A [`Tick`] is always there.
    #[must_use]
    pub fn is_in(self, data: &Data) -> bool {
        let type_id = (self.type_id)();
        type_id == TypeId::of::<Tick>() || data.contains(type_id)
    }

    /// Whether an `Arc` of it was given as if it were the value.
    #[must_use]
    pub fn is_in_as_arc(self, data: &Data) -> bool {
        data.contains((self.type_id_of_arc)())
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_name())
    }
}

/// What one run is given.
#[derive(Debug, Clone)]
pub struct Context {
    data: Arc<Data>,
    tick: Arc<Tick>,
}

impl Context {
    /// The context of the run for this tick.
    #[must_use]
    pub fn new(data: Arc<Data>, tick: Tick) -> Self {
        Self { data, tick: Arc::new(tick) }
    }

    /// The tick.
    #[must_use]
    pub fn tick(&self) -> &Tick {
        &self.tick
    }

    /// The data of this type; the tick, if that is what `T` is.
    ///
    /// # Panics
    /// If there is none: no job is started before all that it needs is there.
    #[must_use]
    pub fn get<T: ?Sized + 'static>(&self) -> &T {
        let tick = (&self.tick as &dyn Any).downcast_ref::<Arc<T>>();
        tick.map(|tick| &**tick)
            .or_else(|| self.data.get())
            .unwrap_or_else(|| panic!("the job was started without the `{}` that it needs", type_name::<T>()))
    }
}

/// What a job can take by value.
#[diagnostic::on_unimplemented(
    message = "a job cannot take `{Self}` by value",
    label = "an argument is `&T`, for data, or `Tick`",
    note = "take shared state as `&{Self}` and give it to the scheduler with `.data(..)`"
)]
pub trait FromContext {
    /// Takes it.
    fn from_context(cx: &Context) -> Self;
}

impl FromContext for Tick {
    fn from_context(cx: &Context) -> Self {
        cx.tick().clone()
    }
}

/// What a job can return.
#[diagnostic::on_unimplemented(
    message = "a job cannot return `{Self}`",
    label = "a job returns `()` or `Result<(), E>` with an `E: Display`",
    note = "nobody is there to take a value: log it, or store it"
)]
pub trait IntoOutcome {
    /// How the run ended.
    ///
    /// # Errors
    /// The job's own.
    fn into_outcome(self) -> Outcome;
}

#[diagnostic::do_not_recommend]
impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Ok(())
    }
}

#[diagnostic::do_not_recommend]
impl<E: fmt::Display> IntoOutcome for Result<(), E> {
    fn into_outcome(self) -> Outcome {
        // The alternate form of an error that carries its causes shows them too.
        self.map_err(|error| JobError(format!("{error:#}")))
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn context() -> Context {
        let mut data = Data::default();
        data.insert(Arc::new(String::from("given")));
        Context::new(Arc::new(data), Tick::at(SystemTime::UNIX_EPOCH).with_missed(3))
    }

    #[test]
    fn a_run_is_lent_its_data_and_its_tick() {
        let cx = context();
        assert_eq!(cx.get::<String>(), "given");
        assert_eq!(cx.get::<Tick>().missed(), 3);
        assert_eq!(Tick::from_context(&cx).missed(), 3);
    }

    #[test]
    fn what_is_missing_is_known_before_a_run() {
        let data = Data::default();
        assert!(DataKey::of::<Tick>().is_in(&data));
        assert!(!DataKey::of::<String>().is_in(&data));
        assert_eq!(DataKey::of::<String>().type_name(), "alloc::string::String");
        assert!(DataKey::of::<String>().is_in(&context().data));
    }

    #[test]
    fn an_error_is_told_by_its_display() {
        assert_eq!(().into_outcome(), Ok(()));
        assert_eq!(Err::<(), _>("no paper").into_outcome(), Err(JobError("no paper".to_owned())));
    }
}
