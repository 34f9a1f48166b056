//! Events in any order: what holds whatever the store, the network and the users do.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Wait(u64),
    Poll,
    Answer(Answer),
    Fail,
    Do(Event),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let term = 1_u64..1000;
    let answer = prop_oneof![
        4 => term.clone().prop_map(won),
        1 => term.clone().prop_map(won_in_quarantine),
        1 => (term, 0..2 * TTL).prop_map(|(term, older)| taken_over(term, older)),
        4 => Just(Answer::Renewed),
        1 => any::<bool>().prop_map(|duplicate| Answer::Lost { duplicate }),
        1 => (0..2 * TTL).prop_map(|remaining| Answer::Held(held(remaining))),
        1 => Just(Answer::Released),
        1 => Just(Answer::NotHeld),
    ];
    let event = prop::sample::select(vec![
        Event::Announced,
        Event::StepDown,
        Event::StandAside,
        Event::Resume,
        Event::Resume,
        Event::Withdraw,
    ]);
    let step = prop_oneof![
        4 => (0..TTL / 2).prop_map(Step::Wait),
        6 => Just(Step::Poll),
        6 => answer.prop_map(Step::Answer),
        1 => Just(Step::Fail),
        1 => event.prop_map(Step::Do),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_view_never_outlives_the_last_confirmed_request(
        steps in steps(),
        hold in any::<bool>(),
        after_deadline in any::<bool>(),
    ) {
        let mut rules = rules();
        if hold {
            rules.renewal_failure = RenewalFailure::HoldUntilDeadline;
        }
        if after_deadline {
            rules.reclaim = Reclaim::AfterDeadline;
        }
        let mut bench = Bench::new(rules);
        let mut in_flight: Option<(u64, Op)> = None;
        let mut confirmed = None;
        let mut older_until = 0;
        for step in steps {
            match step {
                Step::Wait(millis) => bench.now += millis,
                Step::Poll => {
                    if let Some(op) = bench.poll(bench.now) {
                        prop_assert!(in_flight.is_none(), "two requests at once");
                        in_flight = Some((bench.now, op));
                    }
                }
                Step::Answer(answer) => {
                    let Some((sent, op)) = in_flight.take() else { continue };
                    if let (Op::Acquire { .. }, Answer::Won(won)) = (&op, &answer) {
                        confirmed = Some(sent);
                        older_until = older_until.max(bench.now + won.older_lease.as_millis() as u64);
                    }
                    if let (Op::Renew { .. }, Answer::Renewed) = (&op, &answer) {
                        confirmed = Some(sent);
                    }
                    bench.answer(bench.now, answer);
                }
                Step::Fail => {
                    if in_flight.take().is_some() {
                        bench.fail(bench.now);
                    }
                }
                Step::Do(event) => bench.event(bench.now, event),
            }
            if let Some(deadline) = bench.deadline() {
                let confirmed = confirmed.expect("nothing is believed that was not confirmed");
                prop_assert!(deadline <= at(confirmed + TTL - GUARD));
                if after_deadline {
                    prop_assert!(bench.now >= older_until, "believed while an older incarnation may");
                }
            }
            let due = match bench.election.next() {
                Next::Idle | Next::Waiting(None) => None,
                Next::Waiting(Some(due)) | Next::At(due) => Some(due),
                Next::Renew { latest, .. } | Next::Retry { latest, .. } => Some(latest),
            };
            if let Some(deadline) = bench.deadline() {
                prop_assert!(due.is_some_and(|due| due <= deadline), "{due:?}: the view ends at {deadline:?}, and nobody looks");
            }
            if let Next::At(due) = bench.election.next() {
                prop_assert!(in_flight.is_none() || due > at(bench.now), "{due:?} while a request is in flight");
            }
        }
    }
}
