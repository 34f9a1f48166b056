//! The courses of a scheduler, moved on by hand.

use std::time::SystemTime;

use leader_core::testing::FixedElector;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::data::Data;
use crate::job::Job;
use crate::orders::Order;
use crate::policy::Missed;
use crate::schedule::Schedule;
use crate::scheduler::live;

/// One thing happens.
async fn happens(courses: &mut Courses, orders: &mut UnboundedReceiver<Order>) {
    courses.advance(false);
    let wake = courses.next_wake().map_or(Duration::from_secs(1), |at| at.saturating_since(BootInstant::now()));
    tokio::select! {
        () = courses.answer() => {}
        Some(order) = orders.recv() => match order {
            Order::Refused { job, nonce, held } => courses.refused(job, nonce, held),
            Order::Ended { job, nonce, end, cut, tell } => courses.ended(job, nonce, end, cut, tell),
            other => panic!("nobody ordered that: {other:?}"),
        },
        () = tokio::time::sleep(wake) => {}
    }
}

#[tokio::test]
async fn a_job_that_was_taken_out_while_a_tick_was_claimed_does_not_begin_it() {
    let elector = FixedElector::leading(["g"]);
    let (began, begins) = unbounded_channel();
    let job = Job::new("work", "* * * * * *", move |tick| {
        began.send((tick.unix_seconds(), SystemTime::now())).unwrap();
        async {}
    });
    let schedule = Schedule::parse("* * * * * *", None).unwrap();
    let job = Arc::new(live(0, job.group("g").missed(Missed::All), schedule));
    let (engine, mut orders) = Engine::new(elector.clone(), Data::default(), vec![job]);
    let mut courses = Courses::new(Arc::clone(&engine));
    loop {
        courses.advance(false);
        if courses.members[&0].course.is_claiming() {
            break;
        }
        happens(&mut courses, &mut orders).await;
    }
    // What `Running::remove` does, and what comes of it.
    engine.remove(0);
    courses.remove(0);
    while !courses.members.is_empty() {
        happens(&mut courses, &mut orders).await;
    }
    assert!(begins.is_empty(), "{begins:?}");
    assert!(courses.waiting.is_empty() && courses.cuts.is_empty() && courses.owing.is_empty());
}
