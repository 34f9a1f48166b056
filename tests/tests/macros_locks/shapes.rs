//! Every shape of function that `#[with_lock]` can stand on, and `#[run_once]` with it.

use std::cell::Cell;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leader_core::{LockError, held_lock, with_lock};
use leader_tests::future::{block_on, pause, send};
use leader_tests::gate::{busy_then_free, enter};

use super::{Error, told};

// Functions.

#[with_lock(key = "unit", on_busy = "skip", lost = ())]
fn unit(ran: &Cell<u32>) {
    assert!(held_lock().is_some_and(|lock| lock.is_held() && lock.key().as_str() == "unit"));
    ran.set(ran.get() + 1);
}
#[with_lock(key = "async-unit", on_busy = "skip", lost = ())]
async fn async_unit(ran: Rc<Cell<u32>>) {
    pause().await;
    assert!(held_lock().is_some_and(|lock| lock.is_held()));
    ran.set(ran.get() + 1);
}
#[with_lock(key = "option", on_busy = "skip", lost = None)]
fn option() -> Option<u8> {
    Some(1)
}
#[with_lock(key = "result")]
fn result(text: &str) -> Result<u8, Error> {
    Ok(text.parse()?)
}
#[with_lock(key = "async-result", ttl = "30s", wait = "0s", on_loss = "finish")]
async fn async_result(text: &str) -> Result<Option<u8>, Error> {
    pause().await;
    if text == "early" {
        return Ok(None);
    }
    Ok(Some(text.parse()?))
}
#[with_lock(key = "boxed-error")]
async fn boxed_error() -> Result<u8, Box<dyn std::error::Error + Send + Sync>> {
    pause().await;
    Ok("1".parse()?)
}
#[with_lock(key = "skipped", on_busy = "skip", skipped = a + 1, lost = 0)]
fn skipped_expression(a: u32) -> u32 {
    a * 100
}
#[with_lock(key = "skipped-await", on_busy = "skip", skipped = length(&text).await, lost = 0)]
async fn skipped_await(text: String) -> usize {
    text.len() * 100
}
async fn length(text: &str) -> usize {
    text.len()
}
#[with_lock(key = "generic", on_busy = "skip", lost = None)]
fn generic<T, const N: usize>(values: [T; N]) -> Option<[T; N]> {
    Some(values)
}
#[with_lock(key = "generic-error")]
async fn generic_error<T: Send, E: From<LockError> + Send>(value: T) -> Result<T, E> {
    pause().await;
    Ok(value)
}
#[with_lock(key = "impl-arguments", on_busy = "skip", lost = None)]
async fn impl_arguments(start: impl FnOnce() -> u32 + Send, values: impl Iterator<Item = u32> + Send) -> Option<u32> {
    pause().await;
    Some(start() + values.sum::<u32>())
}
#[with_lock(key = "lifetimes:{a}", on_busy = "skip", lost = None)]
async fn lifetimes<'a, 'b: 'a>(a: &'a str, b: &'b str) -> Option<&'a str> {
    pause().await;
    Some(if a.len() > b.len() { a } else { b })
}
#[with_lock(key = "option-impl", on_busy = "skip", lost = None)]
async fn option_impl(n: u8) -> Option<impl Fn() -> u8> {
    pause().await;
    Some(move || n)
}
#[with_lock(key = "result-impl")]
fn result_impl(n: u8) -> Result<impl Fn() -> u8, Error> {
    Ok(move || n)
}
#[with_lock(key = "impl-iterator", on_busy = "skip", skipped = vec![].into_iter(), lost = vec![].into_iter())]
fn impl_iterator() -> impl Iterator<Item = u32> {
    vec![1].into_iter()
}
#[with_lock(key = "two-locks-a")]
#[with_lock(key = "two-locks-b")]
async fn two_locks() -> Result<String, Error> {
    pause().await;
    Ok(held_lock().map(|lock| lock.key().to_string()).unwrap_or_default())
}

// Methods.

struct Service {
    id: u32,
    patience: Duration,
}

impl Service {
    #[with_lock(key = format!("service:{}", self.id), ttl = Duration::from_secs(240), wait = self.patience)]
    async fn by_ref(&self) -> Result<u32, Error> {
        pause().await;
        Ok(self.id)
    }
    #[with_lock(key = self.id.to_string(), on_busy = "skip", lost = None)]
    async fn by_mut(&mut self) -> Option<&mut u32> {
        self.id += 1;
        pause().await;
        Some(&mut self.id)
    }
    #[with_lock(key = "by-mut-sync", on_busy = "skip", lost = None)]
    fn by_mut_sync(&mut self) -> Option<&mut u32> {
        self.id += 1;
        Some(&mut self.id)
    }
    #[with_lock(key = format!("service:{}", self.id))]
    async fn by_arc(self: Arc<Self>) -> Result<u32, Error> {
        pause().await;
        Ok(self.id)
    }
    #[with_lock(key = "associated", on_busy = "skip", lost = None)]
    fn associated() -> Option<Self> {
        Some(service())
    }
}

fn service() -> Service {
    Service { id: 7, patience: Duration::ZERO }
}

struct Wrapper<T>(T);

impl<T: fmt::Display> Wrapper<T> {
    #[with_lock(key = format!("wrapper:{}", self.0), on_busy = "skip", lost = None)]
    fn get(&self) -> Option<&T> {
        Some(&self.0)
    }
}

trait Work {
    fn future(&self) -> impl Future<Output = Result<u8, Error>> + Send;
    #[with_lock(key = "trait-default", on_busy = "skip", lost = None)]
    fn with_default(&self) -> Option<u8> {
        Some(3)
    }
}

impl Work for Service {
    #[with_lock(key = "trait-future")]
    async fn future(&self) -> Result<u8, Error> {
        pause().await;
        Ok(4)
    }
}

#[async_trait]
trait BoxedWork: Send + Sync {
    async fn by_ref(&self, n: u32) -> Result<u32, Error>;
    async fn generic<T: fmt::Display + Send + Sync + 'static>(&self, value: T) -> Option<T>;
    #[with_lock(key = "boxed-default", on_busy = "skip", lost = None)]
    async fn with_default(&self) -> Option<u8> {
        Some(9)
    }
}

#[async_trait]
impl BoxedWork for Service {
    #[with_lock(key = "boxed:{n}")]
    async fn by_ref(&self, n: u32) -> Result<u32, Error> {
        pause().await;
        Ok(self.id + n)
    }
    #[with_lock(key = "boxed-generic:{value}", on_busy = "skip", lost = None)]
    async fn generic<T: fmt::Display + Send + Sync + 'static>(&self, value: T) -> Option<T> {
        pause().await;
        Some(value)
    }
}

// Functions that return a future.

#[with_lock(key = "impl-future:{n}")]
#[expect(clippy::manual_async_fn, reason = "this way of writing it is what is tested")]
fn impl_future(n: u32) -> impl Future<Output = Result<u32, Error>> + Send {
    async move {
        pause().await;
        Ok(n)
    }
}
#[with_lock(key = "boxed-future:{n}", on_busy = "skip", lost = None)]
fn boxed_future(n: u32) -> Pin<Box<dyn Future<Output = Option<u32>> + Send>> {
    Box::pin(async move { Some(n) })
}

// Macros and modules.

macro_rules! made {
    ($name:ident, $key:literal, $ttl:literal, $output:ty) => {
        #[with_lock(key = $key, ttl = $ttl, on_busy = "skip", lost = None)]
        async fn $name(x: u8) -> $output {
            Some(x)
        }
    };
}
made!(from_macro, "from-macro", "30s", Option<u8>);

mod shadowed {
    #![allow(dead_code, non_camel_case_types, unused_macros)]
    mod core {}
    mod std {}
    mod leader_core {}
    struct Option;
    struct Some;
    struct None;
    struct Result;
    struct Ok;
    struct Err;
    struct String;
    struct Duration;
    macro_rules! format_args {
        () => {
            compile_error!("the user's own")
        };
    }
    macro_rules! format {
        () => {
            compile_error!("the user's own")
        };
    }

    #[::leader_core::with_lock(key = "shadowed:{holding}", ttl = "30s")]
    pub(crate) fn sync(call: u8, holding: u8, done: u8) -> ::std::result::Result<u8, super::Error> {
        ::std::result::Result::Ok(call + holding + done)
    }
    #[::leader_core::run_once(key = "shadowed:{error}", ttl = "30s")]
    pub(crate) async fn asynchronous(error: u8, loss: u8) -> ::std::result::Result<(), super::Error> {
        let _ = error + loss;
        ::std::result::Result::Ok(())
    }
}

mod renamed {
    use leader_core as core_of_another_name;
    #[core_of_another_name::with_lock(key = "renamed", crate = core_of_another_name)]
    pub(crate) fn function() -> Result<u8, super::Error> {
        Ok(1)
    }
}

#[test]
fn a_function_runs_where_its_lock_is_free_and_tells_where_it_is_not() {
    let ran = Cell::new(0);
    let runs = || {
        ran.set(0);
        unit(&ran);
        ran.get()
    };
    check!("unit", runs(), 0, 1);
    check!("option", option(), None, Some(1));
    check!("result", told(result("7")), Err("busy"), Ok(7));
    check!("result", told(result("x")), Err("busy"), Err("number"));
    check!("skipped", skipped_expression(2), 3, 200);
    check!("generic", generic([1, 2]), None, Some([1, 2]));
    check!("result-impl", told(result_impl(7)).map(|f| f()), Err("busy"), Ok(7));
    check!("impl-iterator", impl_iterator().count(), 0, 1);
    check!("renamed", told(renamed::function()), Err("busy"), Ok(1));
    check!("shadowed:2", told(shadowed::sync(1, 2, 3)), Err("busy"), Ok(6));
}

#[test]
fn an_async_function_does_the_same_and_stays_send() {
    let runs = || {
        let ran = Rc::new(Cell::new(0));
        block_on(async_unit(Rc::clone(&ran)));
        ran.get()
    };
    check!("async-unit", runs(), 0, 1);
    check!("async-result", told(block_on(send(async_result("7")))), Err("busy"), Ok(Some(7)));
    check!("async-result", told(block_on(send(async_result("x")))), Err("busy"), Err("number"));
    check!("async-result", told(block_on(send(async_result("early")))), Err("busy"), Ok(None));
    check!("boxed-error", block_on(send(boxed_error())).map_err(|e| e.is::<LockError>()), Err(true), Ok(1));
    check!("skipped-await", block_on(send(skipped_await("abc".into()))), 3, 300);
    check!("generic-error", told(block_on(send(generic_error(7)))), Err("busy"), Ok(7));
    check!("impl-arguments", block_on(send(impl_arguments(|| 1, [1, 2].into_iter()))), None, Some(4));
    check!("lifetimes:a", block_on(send(lifetimes("a", "bb"))), None, Some("bb"));
    check!("option-impl", block_on(send(option_impl(7))).map(|f| f()), None, Some(7));
    check!("two-locks-a", told(block_on(send(two_locks()))), Err("busy"), Ok("two-locks-a".to_owned()));
    check!("two-locks-b", told(block_on(send(two_locks()))), Err("busy"), Ok("two-locks-a".to_owned()));
    check!("from-macro", block_on(send(from_macro(1))), None, Some(1));
}

#[test]
fn a_method_does_the_same() {
    check!("service:7", told(block_on(send(service().by_ref()))), Err("busy"), Ok(7));
    check!("7", block_on(send(service().by_mut())).copied(), None, Some(8));
    check!("by-mut-sync", service().by_mut_sync().copied(), None, Some(8));
    check!("service:7", told(block_on(send(Arc::new(service()).by_arc()))), Err("busy"), Ok(7));
    check!("associated", Service::associated().map(|s| s.id), None, Some(7));
    check!("wrapper:x", Wrapper("x").get(), None, Some(&"x"));
    check!("trait-future", told(block_on(send(Work::future(&service())))), Err("busy"), Ok(4));
    check!("trait-default", Work::with_default(&service()), None, Some(3));
    check!("boxed:2", told(block_on(send(BoxedWork::by_ref(&service(), 2)))), Err("busy"), Ok(9));
    check!("boxed-generic:x", block_on(send(service().generic("x"))), None, Some("x"));
    check!("boxed-default", block_on(send(BoxedWork::with_default(&service()))), None, Some(9));
}

#[test]
fn a_function_that_returns_a_future_does_the_same() {
    check!("impl-future:1", told(block_on(send(impl_future(1)))), Err("busy"), Ok(1));
    check!("boxed-future:1", block_on(send(boxed_future(1))), None, Some(1));
}

#[test]
fn the_lock_is_asked_for_when_the_future_is_polled() {
    enter();
    let made = (impl_future(8), boxed_future(8), async_result("8"));
    // All of these would be busy if one had been asked for before.
    check!("impl-future:8", told(block_on(impl_future(8))), Err("busy"), Ok(8));
    check!("boxed-future:8", block_on(boxed_future(8)), None, Some(8));
    check!("async-result", told(block_on(async_result("8"))), Err("busy"), Ok(Some(8)));
    assert_eq!(told(block_on(made.0)), Ok(8));
    assert_eq!(block_on(made.1), Some(8));
    assert_eq!(told(block_on(made.2)), Ok(Some(8)));
}

#[test]
fn outside_of_a_body_no_lock_is_held() {
    enter();
    assert!(held_lock().is_none());
    assert_eq!(told(block_on(shadowed::asynchronous(1, 2))), Ok(()));
    assert!(held_lock().is_none());
}
