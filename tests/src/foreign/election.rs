//! An election under any answers: whatever a server says, the view ends within what the newest confirmed request allows, and no
//! wait is longer than the longest ttl.

use std::time::Duration;

use leader_core::store::Answer;
use leader_core::testing::election::{Election, Event, Failure, Next, Rules};
use leader_core::testing::redis_script::{self, Reply};
use leader_core::{BootInstant, Candidate, GroupName, Incarnation, InstanceId, Reclaim, RenewalFailure};

use super::bytes::Bytes;
use super::replies::{answer, any_answer};

const TTL: Duration = Duration::from_secs(10);
const GUARD: Duration = Duration::from_millis(10);
/// The longest ttl.
const MOST: Duration = Duration::from_secs(3600);

pub(super) fn property(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let rules = Rules {
        ttl: TTL,
        guard: GUARD,
        heartbeat: TTL / 3,
        retry: Duration::from_secs(1),
        renewal_failure: bytes.choice(&[RenewalFailure::DemoteAtOnce, RenewalFailure::HoldUntilDeadline]),
        reclaim: bytes.choice(&[Reclaim::AtOnce, Reclaim::AfterDeadline]),
        observe: bytes.byte() % 8 == 7,
        known_bad: None,
    };
    let observes = rules.observe;
    let id = InstanceId::new("pod-1").expect("it is an id");
    let candidate = Candidate { id, incarnation: Incarnation::from_u128(1) };
    let group = GroupName::new("g").expect("it is a name");
    let mut now = BootInstant::from_nanos(3_600_000_000_000);
    let mut election = Election::new(group, candidate, rules, now);
    let (mut notices, mut outstanding) = (Vec::new(), None);
    let mut allowed = BootInstant::default();
    while !bytes.is_empty() {
        now = now.saturating_add(bytes.time());
        if let Some(request) = election.poll(now, &mut notices) {
            assert_eq!(outstanding, None, "a second request is in flight");
            outstanding = Some((request.no, now));
        }
        match (bytes.below(12), outstanding) {
            (0..9, Some((no, sent))) => {
                let reply = match bytes.below(4) {
                    0 => answer("won", &mut bytes),
                    1 => answer("renewed", &mut bytes),
                    2 => answer("held", &mut bytes),
                    _ => any_answer(&mut bytes),
                };
                outstanding = None;
                let read = redis_script::answers(Reply::List(vec![reply]), 1).remove(0);
                if let Ok(Answer::Won(_) | Answer::Renewed) = &read {
                    allowed = allowed.max(sent.saturating_add(TTL - GUARD));
                }
                let event = read.map_or(Event::Failed(no, Failure::Passing), |answer| Event::Answered(no, answer));
                election.handle(now, event, &mut notices);
            }
            (9, Some((no, _))) => {
                outstanding = None;
                let failure = bytes.choice(&[Failure::Passing, Failure::Permanent]);
                election.handle(now, Event::Failed(no, failure), &mut notices);
            }
            (10, _) => {
                let event = match bytes.below(4) {
                    0 => Event::StepDown,
                    1 => Event::StandAside,
                    2 => Event::Resume,
                    _ => Event::Withdraw,
                };
                election.handle(now, event, &mut notices);
            }
            _ => election.handle(now, Event::Announced, &mut notices),
        }
        notices.clear();
        if let Some((_, deadline)) = election.view(now) {
            assert!(!observes, "an observer leads");
            assert!(now < deadline && deadline <= allowed, "{deadline:?} at {now:?}, and {allowed:?} is allowed");
        }
        let latest = match election.next() {
            Next::Idle | Next::Waiting(None) => now,
            Next::Waiting(Some(at)) | Next::At(at) => at,
            Next::Renew { latest, .. } | Next::Retry { latest, .. } => latest,
        };
        assert!(latest <= now.saturating_add(MOST), "{latest:?} is asked for at {now:?}");
    }
}
