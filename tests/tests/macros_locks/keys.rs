//! Keys of locks, and of work that is run once, as they are written.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use leader_core::{run_once, with_lock};
use leader_tests::future::{block_on, pause, send};
use leader_tests::gate::{busy_then_free, enter};

use super::{Error, told};

const VERSION: u32 = 3;
const NAME: &str = "key-of-a-constant";

#[with_lock(key = "account:{account_id}:{VERSION}", on_busy = "skip", lost = None)]
async fn interpolated(account_id: u64) -> Option<u64> {
    pause().await;
    Some(account_id)
}
#[with_lock(key = "taken:{name}", on_busy = "skip", lost = None)]
async fn taken_by_the_body(name: String) -> Option<String> {
    pause().await;
    Some(name)
}
#[with_lock(key = "{{braces}}", on_busy = "skip", lost = None)]
fn braces() -> Option<u8> {
    Some(1)
}
#[with_lock(key = NAME, on_busy = "skip", lost = None)]
fn constant() -> Option<u8> {
    Some(1)
}
#[with_lock(key = name, on_busy = "skip", lost = None)]
fn argument(name: String) -> Option<String> {
    Some(name)
}
#[with_lock(key = "sum:".to_owned() + a + b, on_busy = "skip", lost = None)]
async fn operators(a: &str, b: &str) -> Option<usize> {
    pause().await;
    Some(a.len() + b.len())
}
#[with_lock(key = Rc::new(RefCell::new("not-send".to_owned())).borrow().as_str(), on_busy = "skip", lost = None)]
async fn key_that_is_not_send() -> Option<u8> {
    pause().await;
    Some(1)
}
#[with_lock(key = key_of(&a).await, on_busy = "skip", lost = None)]
async fn key_that_is_awaited(a: String) -> Option<String> {
    Some(a)
}
async fn key_of(a: &str) -> String {
    pause().await;
    format!("awaited:{a}")
}

#[test]
fn a_key_is_made_of_what_is_in_scope() {
    check!("account:17:3", block_on(send(interpolated(17))), None, Some(17));
    check!("taken:x", block_on(send(taken_by_the_body("x".into()))), None, Some("x".to_owned()));
    check!("{braces}", braces(), None, Some(1));
    check!("key-of-a-constant", constant(), None, Some(1));
    check!("argument", argument("argument".into()), None, Some("argument".to_owned()));
    check!("sum:ab", block_on(send(operators("a", "b"))), None, Some(2));
    check!("not-send", block_on(key_that_is_not_send()), None, Some(1));
    drop(send(key_that_is_not_send()));
    check!("awaited:x", block_on(send(key_that_is_awaited("x".into()))), None, Some("x".to_owned()));
    // Other keys are other locks.
    check!("account:17:3", block_on(interpolated(18)), Some(18), Some(18));
}

#[run_once(key = "once-sync:{n}", on_busy = "skip", lost = ())]
fn once_sync(n: u32, ran: &Cell<u32>) {
    ran.set(ran.get() + n);
}
#[run_once(key = "once-result:{n}", keep = "30days", wait = "0s")]
async fn once_result(n: u32, ran: Rc<Cell<u32>>) -> Result<Option<u32>, Error> {
    pause().await;
    ran.set(ran.get() + n);
    Ok(Some(n))
}
#[run_once(key = format!("once-number:{n}"), keep = Duration::from_secs(60), skipped = Ok(0))]
async fn once_number(n: u32) -> Result<u32, Error> {
    pause().await;
    Ok(n)
}
struct Service {
    id: u32,
}
impl Service {
    #[run_once(key = format!("once-method:{}", self.id))]
    async fn once(&mut self) -> Result<Option<&mut u32>, Error> {
        pause().await;
        Ok(Some(&mut self.id))
    }
}

#[test]
fn what_runs_once_runs_the_first_time() {
    enter();
    let ran = Rc::new(Cell::new(0));
    for _ in 0..3 {
        once_sync(5, &ran);
    }
    assert_eq!(ran.get(), 5);
    let results: Vec<_> = (0..3).map(|_| told(block_on(once_result(10, Rc::clone(&ran))))).collect();
    assert_eq!((results, ran.get()), (vec![Ok(Some(10)), Ok(None), Ok(None)], 15));
    let numbers = || told(block_on(send(once_number(4))));
    assert_eq!((numbers(), numbers()), (Ok(4), Ok(0)));
    let method = || told(block_on(send(Service { id: 7 }.once()))).map(|id| id.copied());
    assert_eq!((method(), method()), (Ok(Some(7)), Ok(None)));
}
