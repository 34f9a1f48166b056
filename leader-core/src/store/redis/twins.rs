//! Other electors with the instance id of this one: found by asking, on a channel of that id, who else listens there.
//!
//! No two live processes have one id, says whoever chooses a stable one. Where nobody leads by it yet, no key tells the
//! opposite. So each elector listens on its id's channel, the doctor asks there, and a live one answers with its incarnation.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::connection::Request;
use super::keys::Keys;
use crate::doctor::{Finding, same_id, this_process};
use crate::identity::{Candidate, Incarnation};

/// An answer may take so long, where the server says that somebody else listens.
const PATIENCE: Duration = Duration::from_secs(1);
/// And so long, where it does not say it: each node of a cluster knows those that listen by itself.
const BLIND_PATIENCE: Duration = Duration::from_millis(500);

/// So many are kept, if somebody floods the channel.
const MOST: usize = 16;
/// So many characters of where another one is are shown.
const LONGEST: usize = 100;

const QUESTION: &str = "?";
const ANSWER: &str = "!";

/// What one elector knows of those with its id.
#[derive(Debug)]
pub(super) struct Twins {
    own: Candidate,
    channel: String,
    /// Where this process is, for those who are asked about it.
    place: String,
    known: Mutex<BTreeMap<Incarnation, Twin>>,
    heard: Notify,
}

#[derive(Debug)]
struct Twin {
    place: String,
    heard: Instant,
}

/// What a message on the channel means.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Meaning {
    /// To be sent.
    pub(super) answer: Option<Request>,
    /// Somebody was not known before: the doctor should look.
    pub(super) is_news: bool,
}

impl Twins {
    pub(super) fn new(own: Candidate, keys: &Keys) -> Self {
        let channel = keys.id_channel(&own.id);
        Self { own, channel, place: this_process(), known: Mutex::default(), heard: Notify::new() }
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    /// Asks who else is there.
    pub(super) fn question(&self) -> Request {
        self.message(QUESTION)
    }

    fn message(&self, kind: &str) -> Request {
        let text = format!("{kind} {} {}", self.own.incarnation, self.place);
        Request::new("PUBLISH", vec![self.channel.clone(), text])
    }

    /// Takes in what was heard on the channel.
    pub(super) fn hear(&self, text: &str) -> Meaning {
        let mut words = text.splitn(3, ' ');
        let (kind, digits) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let Some(incarnation) = u128::from_str_radix(digits, 16).ok().map(Incarnation::from_u128) else {
            return Meaning::default();
        };
        if incarnation == self.own.incarnation || ![QUESTION, ANSWER].contains(&kind) {
            return Meaning::default();
        }
        let place = words.next().unwrap_or_default().chars().take(LONGEST);
        let place = place.map(|c| if c.is_control() { '?' } else { c }).collect();
        let is_news = {
            let mut known = self.known();
            let is_news = !known.contains_key(&incarnation);
            if known.len() < MOST || !is_news {
                known.insert(incarnation, Twin { place, heard: Instant::now() });
            }
            is_news
        };
        self.heard.notify_waiters();
        Meaning { answer: (kind == QUESTION).then(|| self.message(ANSWER)), is_news }
    }

    /// Waits for answers to the question that was asked at this instant, if there may be any, and says who has answered.
    /// `listeners`: how many the server has given the question to; in a cluster that is unknown.
    pub(super) async fn judge(&self, asked: Instant, listeners: Option<i64>, until: Instant) -> Option<Finding> {
        let patience = match listeners {
            // This one itself, if it listens.
            Some(..=1) => Duration::ZERO,
            Some(_) => PATIENCE,
            None => BLIND_PATIENCE,
        };
        let until = until.min(asked + patience);
        loop {
            let heard = self.heard.notified();
            tokio::pin!(heard);
            // Before the look: what is heard after it wakes.
            heard.as_mut().enable();
            if self.known().values().any(|twin| twin.heard >= asked) {
                break;
            }
            if tokio::time::timeout_at(until.into(), heard).await.is_err() {
                break;
            }
        }
        let mut known = self.known();
        // Those who have not answered are gone, and would be news.
        known.retain(|_, twin| twin.heard >= asked);
        let places: Vec<String> = known.values().map(|twin| twin.place.clone()).collect();
        // Of their groups nothing was said.
        (!places.is_empty()).then(|| same_id(self.own.id.as_str(), &places, false))
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Incarnation, Twin>> {
        // Held for a look or an assignment only: a poisoned one is whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::InstanceId;

    fn twins(incarnation: u128) -> Twins {
        let id = InstanceId::new("worker-1").unwrap();
        let own = Candidate { id, incarnation: Incarnation::from_u128(incarnation) };
        Twins::new(own, &Keys::new("leader:"))
    }

    fn text(request: &Request) -> String {
        assert_eq!((request.name, request.arguments[0].as_slice()), ("PUBLISH", "leader:id:worker-1".as_bytes()));
        String::from_utf8(request.arguments[1].clone()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_live_one_answers_and_is_named_and_one_that_has_gone_is_not() {
        let (a, b) = (twins(1), twins(2));
        let asked = Instant::now();
        let meaning = b.hear(&text(&a.question()));
        assert!(meaning.is_news);
        let answer = a.hear(&text(&meaning.answer.unwrap()));
        assert_eq!((answer.answer, answer.is_news), (None, true), "an answer is not answered");
        let finding = a.judge(asked, Some(2), asked + PATIENCE).await.unwrap();
        let place = format!("process {} on ", std::process::id());
        assert!(finding.what.contains("`worker-1`") && finding.what.contains(&place), "{finding}");
        assert!(!b.hear(&text(&a.question())).is_news, "it is known");
        let later = Instant::now();
        assert_eq!(a.judge(later, Some(2), later + PATIENCE).await, None);
        assert!(a.hear(&text(&b.question())).is_news, "it is back");
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_alone_waits_for_nobody_and_hears_itself_without_fear() {
        let a = twins(1);
        assert_eq!(a.hear(&text(&a.question())), Meaning::default());
        let began = tokio::time::Instant::now();
        assert_eq!(a.judge(Instant::now(), Some(1), Instant::now() + PATIENCE).await, None);
        assert!(began.elapsed() < BLIND_PATIENCE);
    }

    #[test]
    fn what_is_no_message_is_nothing() {
        let a = twins(1);
        for text in ["", "?", "? x", "x 2 place", "2"] {
            assert_eq!(a.hear(text), Meaning::default(), "{text}");
        }
        for n in 2..100 {
            a.hear(&format!("! {n:x} \u{1b}[2J{}", "x".repeat(1000)));
        }
        assert_eq!(a.known().len(), MOST);
        assert!(a.known().values().all(|twin| twin.place.len() <= LONGEST && twin.place.starts_with("?[2J")));
    }
}
