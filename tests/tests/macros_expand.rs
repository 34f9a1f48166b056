//! Every shape of function that `#[leader_only]` can stand on.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use async_trait::async_trait;
use leader_core::{declared_groups, leader_only};
use leader_tests::future::{block_on, pause, send};
use leader_tests::gate::leads;

/// Runs an expression as a follower and as a leader of a group that no other test uses.
macro_rules! check {
    ($group:literal, $call:expr, $follower:expr, $leader:expr) => {{
        leads($group, false);
        assert_eq!($call, $follower, "{} as a follower", $group);
        leads($group, true);
        assert_eq!($call, $leader, "{} as the leader", $group);
        leads($group, false);
    }};
}

// Functions.

#[leader_only(group = "unit")]
fn unit(ran: &Cell<u32>) {
    ran.set(ran.get() + 1);
}
#[leader_only(group = "unit-return")]
fn unit_return(ran: &Cell<u32>, early: bool) {
    if early {
        return;
    }
    ran.set(ran.get() + 1);
}
#[leader_only(group = "async-unit")]
async fn async_unit(ran: &AtomicU32) {
    pause().await;
    ran.fetch_add(1, SeqCst);
}
#[leader_only(group = "option")]
fn option() -> Option<u8> {
    Some(1)
}
#[leader_only(group = "result")]
async fn result(text: &str) -> Result<(), std::num::ParseIntError> {
    pause().await;
    let _: u8 = text.parse()?;
    Ok(())
}
#[leader_only(group = "result-option")]
async fn result_option(text: &str) -> Result<Option<u8>, std::num::ParseIntError> {
    let number = text.parse()?;
    if number == 1 {
        return Ok(Some(100));
    }
    Ok(Some(number))
}
#[leader_only(group = "skipped", skipped = a + 1)]
fn skipped_expression(a: u32) -> u32 {
    a * 100
}
#[leader_only(group = "skipped-await", skipped = length(&text).await)]
async fn skipped_await(text: String) -> usize {
    text.len() * 100
}
async fn length(text: &str) -> usize {
    text.len()
}
#[leader_only(group = "generic")]
fn generic<T, const N: usize>(values: [T; N]) -> Option<[T; N]> {
    Some(values)
}
#[leader_only(group = "generic-never-used")]
#[allow(dead_code)]
async fn never_used<T, const N: usize>(values: [T; N]) -> Option<[T; N]>
where
    T: Send + Clone,
{
    Some(values)
}
#[leader_only(group = "impl-arguments")]
async fn impl_arguments(start: impl FnOnce() -> u32 + Send, values: impl Iterator<Item = u32> + Send) -> Option<u32> {
    pause().await;
    Some(start() + values.sum::<u32>())
}
#[leader_only(group = "lifetimes")]
async fn lifetimes<'a, 'b: 'a>(a: &'a str, b: &'b str) -> Option<&'a str> {
    pause().await;
    Some(if a.len() > b.len() { a } else { b })
}
#[leader_only(group = "patterns")]
async fn patterns((a, b): (u8, u8), Service { hits }: Service, mut all: Vec<u8>, _: u8) -> Option<usize> {
    all.push(a);
    pause().await;
    all.push(b);
    Some(all.len() + hits as usize)
}
#[leader_only(group = "inner-attribute")]
fn inner_attribute() -> Option<u8> {
    #![allow(unused_variables)]
    let unused = 1;
    Some(2)
}
#[leader_only(group = "raw-name")]
fn r#match() -> Option<u8> {
    Some(1)
}
#[leader_only(group = "impl-iterator", skipped = vec![].into_iter())]
fn impl_iterator() -> impl Iterator<Item = u32> {
    vec![1].into_iter()
}
#[leader_only(group = "option-impl")]
fn option_impl(n: u8) -> Option<impl Fn() -> u8> {
    Some(move || n)
}
#[leader_only(group = "option-impl-async")]
async fn option_impl_async(n: u8) -> Option<impl Fn() -> u8> {
    pause().await;
    Some(move || n)
}
#[leader_only(group = "result-impl")]
async fn result_impl(text: &str) -> Result<Option<impl Fn() -> u8 + use<>>, std::num::ParseIntError> {
    let number: u8 = text.parse()?;
    pause().await;
    Ok(Some(move || number))
}
#[leader_only(group = "two-groups-a")]
#[leader_only(group = "two-groups-b")]
async fn two_groups() -> Option<u8> {
    Some(1)
}
#[leader_only(group = "not-send")]
async fn not_send(value: Rc<u8>) -> Option<u8> {
    pause().await;
    Some(*value)
}
#[leader_only(group = "tail-of-unit")]
fn unit_as_tail(ran: &Cell<u32>) {
    ran.set(5)
}

// Methods.

#[derive(Debug, PartialEq)]
struct Service {
    hits: u32,
}

impl Service {
    #[leader_only(group = "by-ref")]
    async fn by_ref(&self) -> Option<u32> {
        pause().await;
        Some(self.hits)
    }
    #[leader_only(group = "by-mut")]
    async fn by_mut(&mut self) -> Option<&mut u32> {
        self.hits += 1;
        pause().await;
        Some(&mut self.hits)
    }
    #[leader_only(group = "by-mut-sync")]
    fn by_mut_sync(&mut self) -> Option<&mut u32> {
        self.hits += 1;
        Some(&mut self.hits)
    }
    #[leader_only(group = "by-arc")]
    async fn by_arc(self: Arc<Self>) -> Option<u32> {
        Some(self.hits)
    }
    #[leader_only(group = "by-pin")]
    async fn by_pin(self: Pin<&mut Self>) -> Option<u32> {
        pause().await;
        Some(self.hits)
    }
    #[leader_only(group = "by-value")]
    fn by_value(self) -> Option<Self> {
        Some(self)
    }
    #[leader_only(group = "associated")]
    fn associated() -> Option<Self> {
        Some(Self { hits: 1 })
    }
}

struct Wrapper<T>(T);

impl<T> Wrapper<T> {
    #[leader_only(group = "generic-impl")]
    fn get(&self) -> Option<&T> {
        Some(&self.0)
    }
}

// Traits.

trait Work {
    fn sync(&self) -> Option<u8>;
    async fn asynchronous(&self) -> Option<u8>;
    fn future(&self) -> impl Future<Output = Option<u8>> + Send;
    #[leader_only(group = "trait-default")]
    fn with_default(&self) -> Option<u8> {
        Some(3)
    }
}

impl Work for Service {
    #[leader_only(group = "trait-sync")]
    fn sync(&self) -> Option<u8> {
        Some(1)
    }
    #[leader_only(group = "trait-async")]
    async fn asynchronous(&self) -> Option<u8> {
        Some(2)
    }
    #[leader_only(group = "trait-future")]
    async fn future(&self) -> Option<u8> {
        pause().await;
        Some(4)
    }
}

#[async_trait]
trait BoxedWork: Send + Sync {
    async fn by_ref(&self, n: u32) -> Option<u32>;
    async fn by_mut(&mut self) -> Result<(), String>;
    async fn generic<T: Send + 'static>(&self, value: T) -> Option<T>;
    async fn unit(&self, ran: &AtomicU32);
    #[leader_only(group = "boxed-default")]
    async fn with_default(&self) -> Option<u8> {
        Some(9)
    }
}

#[async_trait]
impl BoxedWork for Service {
    #[leader_only(group = "boxed-by-ref")]
    async fn by_ref(&self, n: u32) -> Option<u32> {
        pause().await;
        Some(self.hits + n)
    }
    #[leader_only(group = "boxed-by-mut")]
    async fn by_mut(&mut self) -> Result<(), String> {
        self.hits += 1;
        pause().await;
        Err("ran".into())
    }
    #[leader_only(group = "boxed-generic")]
    async fn generic<T: Send + 'static>(&self, value: T) -> Option<T> {
        Some(value)
    }
    #[leader_only(group = "boxed-unit")]
    async fn unit(&self, ran: &AtomicU32) {
        ran.fetch_add(1, SeqCst);
    }
}

// Functions that return a future.

#[leader_only(group = "impl-future")]
fn impl_future(n: u32) -> impl Future<Output = Option<u32>> + Send {
    let next = n + 1;
    async move {
        pause().await;
        Some(next)
    }
}
#[leader_only(group = "impl-future-borrowing")]
#[expect(clippy::manual_async_fn, reason = "this way of writing it is what is tested")]
fn impl_future_borrowing(text: &str) -> impl Future<Output = Result<(), std::num::ParseIntError>> + Send {
    async {
        let _: u8 = text.parse()?;
        Ok(())
    }
}
#[leader_only(group = "boxed-future")]
fn boxed_future(n: u32) -> Pin<Box<dyn Future<Output = Option<u32>> + Send>> {
    Box::pin(async move { Some(n) })
}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

#[leader_only(group = "boxed-future-alias")]
fn boxed_future_alias(text: &str) -> BoxFuture<'_, Result<Option<&str>, std::num::ParseIntError>> {
    Box::pin(async move {
        if text.is_empty() {
            return Ok(None);
        }
        let _: u8 = text.parse()?;
        Ok(Some(text))
    })
}

// Macros and modules.

macro_rules! made {
    ($name:ident, $group:literal, $output:ty) => {
        #[leader_only(group = $group)]
        async fn $name(x: u8) -> $output {
            Some(x)
        }
    };
}
made!(from_macro, "from-macro", Option<u8>);

macro_rules! made_future {
    ($name:ident, $group:literal, $output:ty) => {
        #[leader_only(group = $group)]
        fn $name(x: u8) -> $output {
            Box::pin(async move { Some(x) })
        }
    };
}
made_future!(future_from_macro, "future-from-macro", Pin<Box<dyn Future<Output = Option<u8>>>>);

mod names {
    pub(crate) const PLAIN: &str = "constant";
    pub(crate) struct Group;
    impl Group {
        pub(crate) const NAME: &'static str = "associated-constant";
    }
}
#[leader_only(group = names::PLAIN)]
fn constant_group() -> Option<u8> {
    Some(1)
}
#[leader_only(group = names::Group::NAME)]
async fn associated_constant_group() -> Option<u8> {
    Some(1)
}

mod a {
    pub(crate) mod b {
        use leader_core as renamed;
        #[renamed::leader_only(group = "nested-module", crate = renamed)]
        pub(crate) fn in_module() -> Option<u8> {
            Some(1)
        }
        pub(crate) fn outer() -> Option<u8> {
            #[renamed::leader_only(group = "in-function")]
            fn inner() -> Option<u8> {
                Some(1)
            }
            let closure = || {
                #[renamed::leader_only(group = "in-closure")]
                fn innermost() -> Option<u8> {
                    Some(1)
                }
                innermost()
            };
            closure().or(inner())
        }
    }
}

mod same_group {
    #[super::leader_only(group = "same")]
    pub(crate) fn x() {}
    #[super::leader_only(group = "same")]
    pub(crate) fn y() {}
    #[super::leader_only(group = "same")]
    pub(crate) async fn z() {}
}

mod shadowed {
    #![allow(dead_code, non_camel_case_types, non_snake_case, unused_macros)]
    mod core {}
    mod std {}
    mod leader_core {}
    struct Option;
    struct Some;
    struct None;
    struct Result;
    struct bool;
    struct Box;
    trait Future {}
    macro_rules! line {
        () => {
            compile_error!("the user's own")
        };
    }
    macro_rules! module_path {
        () => {
            compile_error!("the user's own")
        };
    }
    macro_rules! file {
        () => {
            compile_error!("the user's own")
        };
    }

    #[::leader_core::leader_only(group = "shadowed")]
    pub(crate) fn sync(entry: u8, CALL_SITE: u8, output: u8) -> ::std::option::Option<u8> {
        ::std::option::Option::Some(entry + CALL_SITE + output)
    }
    #[::leader_core::leader_only(group = "shadowed", on_loss = "cancel")]
    pub(crate) async fn asynchronous(entry: u8, done: u8) -> ::std::option::Option<u8> {
        ::std::option::Option::Some(entry + done)
    }
}

#[cfg(any())]
#[leader_only(group = "left-out-above")]
fn left_out() {}
#[leader_only(group = "left-out-below")]
#[cfg(any())]
fn left_out() {}

#[test]
fn a_follower_skips_and_the_leader_runs() {
    let ran = Cell::new(0);
    let runs = |call: &dyn Fn()| {
        ran.set(0);
        call();
        ran.get()
    };
    check!("unit", runs(&|| unit(&ran)), 0, 1);
    check!("unit-return", runs(&|| unit_return(&ran, true)), 0, 0);
    check!("unit-return", runs(&|| unit_return(&ran, false)), 0, 1);
    check!("tail-of-unit", runs(&|| unit_as_tail(&ran)), 0, 5);
    check!("option", option(), None, Some(1));
    check!("skipped", skipped_expression(2), 3, 200);
    check!("generic", generic([1, 2]), None, Some([1, 2]));
    check!("inner-attribute", inner_attribute(), None, Some(2));
    check!("raw-name", r#match(), None, Some(1));
    check!("impl-iterator", impl_iterator().count(), 0, 1);
    check!("option-impl", option_impl(7).map(|f| f()), None, Some(7));
    check!("constant", constant_group(), None, Some(1));
    check!("nested-module", a::b::in_module(), None, Some(1));
    check!("in-function", a::b::outer(), None, Some(1));
    check!("shadowed", shadowed::sync(1, 2, 3), None, Some(6));
    leads("same", true);
    same_group::x();
    same_group::y();
    block_on(same_group::z());
}

#[test]
fn an_async_function_skips_and_runs_and_stays_send() {
    let runs = |future: &dyn Fn(&AtomicU32)| {
        let ran = AtomicU32::new(0);
        future(&ran);
        ran.load(SeqCst)
    };
    check!("async-unit", runs(&|ran| block_on(send(async_unit(ran)))), 0, 1);
    check!("result", block_on(send(result("x"))).is_ok(), true, false);
    check!("result-option", block_on(send(result_option("1"))), Ok(None), Ok(Some(100)));
    check!("result-option", block_on(send(result_option("x"))).is_ok(), true, false);
    check!("skipped-await", block_on(send(skipped_await("abc".into()))), 3, 300);
    check!("impl-arguments", block_on(send(impl_arguments(|| 1, [1, 2].into_iter()))), None, Some(4));
    check!("lifetimes", block_on(send(lifetimes("a", "bb"))), None, Some("bb"));
    check!("patterns", block_on(send(patterns((1, 2), Service { hits: 1 }, vec![], 0))), None, Some(3));
    check!("option-impl-async", block_on(send(option_impl_async(7))).map(|f| f()), None, Some(7));
    check!("result-impl", block_on(send(result_impl("x"))).is_ok(), true, false);
    leads("two-groups-b", true);
    check!("two-groups-a", block_on(send(two_groups())), None, Some(1));
    check!("not-send", block_on(not_send(Rc::new(1))), None, Some(1));
    check!("from-macro", block_on(send(from_macro(1))), None, Some(1));
    check!("associated-constant", block_on(associated_constant_group()), None, Some(1));
    check!("shadowed", block_on(send(shadowed::asynchronous(1, 2))), None, Some(3));
}

#[test]
fn a_method_skips_and_runs() {
    let service = || Service { hits: 1 };
    check!("by-ref", block_on(send(service().by_ref())), None, Some(1));
    check!("by-mut", block_on(send(service().by_mut())).copied(), None, Some(2));
    check!("by-mut-sync", service().by_mut_sync().copied(), None, Some(2));
    check!("by-arc", block_on(send(Arc::new(service()).by_arc())), None, Some(1));
    check!("by-pin", block_on(send(Pin::new(&mut service()).by_pin())), None, Some(1));
    check!("by-value", service().by_value(), None, Some(service()));
    check!("associated", Service::associated(), None, Some(service()));
    check!("generic-impl", Wrapper("x").get(), None, Some(&"x"));
}

#[test]
fn a_method_of_a_trait_skips_and_runs() {
    let service = || Service { hits: 1 };
    check!("trait-sync", service().sync(), None, Some(1));
    check!("trait-async", block_on(service().asynchronous()), None, Some(2));
    check!("trait-future", block_on(send(Work::future(&service()))), None, Some(4));
    check!("trait-default", Work::with_default(&service()), None, Some(3));
    check!("boxed-by-ref", block_on(send(BoxedWork::by_ref(&service(), 2))), None, Some(3));
    check!("boxed-by-mut", block_on(send(BoxedWork::by_mut(&mut service()))), Ok(()), Err("ran".into()));
    check!("boxed-generic", block_on(send(service().generic(7))), None, Some(7));
    check!("boxed-default", block_on(send(BoxedWork::with_default(&service()))), None, Some(9));
    let runs = || {
        let ran = AtomicU32::new(0);
        block_on(send(service().unit(&ran)));
        ran.load(SeqCst)
    };
    check!("boxed-unit", runs(), 0, 1);
}

#[test]
fn a_function_that_returns_a_future_skips_and_runs() {
    check!("impl-future", block_on(send(impl_future(1))), None, Some(2));
    check!("impl-future-borrowing", block_on(send(impl_future_borrowing("x"))).is_ok(), true, false);
    check!("boxed-future", block_on(send(boxed_future(1))), None, Some(1));
    check!("boxed-future-alias", block_on(send(boxed_future_alias("1"))), Ok(None), Ok(Some("1")));
    check!("future-from-macro", block_on(future_from_macro(1)), None, Some(1));
}

#[test]
fn every_group_is_declared_once_a_function_with_its_place() {
    let groups = declared_groups();
    for group in [
        "generic-never-used",
        "generic-impl",
        "in-function",
        "in-closure",
        "boxed-generic",
        "trait-default",
        "boxed-default",
        "not-send",
        "from-macro",
        "constant",
        "associated-constant",
    ] {
        assert_eq!(groups.get(group).map(Vec::len), Some(1), "{group}");
    }
    assert_eq!(groups["same"].len(), 3);
    assert!(groups.keys().all(|group| !group.starts_with("left-out")), "{groups:?}");
    let site = groups["raw-name"][0];
    assert_eq!((site.function, site.module, site.file), ("match", "macros_expand", file!()));
    let line = include_str!("macros_expand.rs").lines().nth(site.line as usize - 1).unwrap();
    assert_eq!(line.find("r#match").map(|at| at + 1), Some(site.column as usize), "{line}");
    assert_eq!(groups["nested-module"][0].module, "macros_expand::a::b");
}
