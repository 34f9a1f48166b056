//! Logs by hand: what is right passes, and each thing that is wrong is found.

use super::*;

const MS: u64 = 1_000_000;

/// One that waits for a second at most.
pub(super) fn attempt(member: &str, asked_ns: u64) -> Attempt {
    let (member, key) = (member.to_owned(), "k".to_owned());
    Attempt { member, number: asked_ns, key, asked_ns, wait_ns: 1000 * MS, must: false, body: None, left: None }
}

/// Times are milliseconds.
#[derive(Default)]
struct Story(Evidence);

impl Story {
    fn say(&mut self, member: &str, lines: impl IntoIterator<Item = Line>) -> &mut Self {
        self.0.members.entry(member.to_owned()).or_default().extend(lines);
        self
    }

    fn asks(&mut self, member: &str, attempt: u64, at: u64, wait: u64) -> &mut Self {
        let (key, must) = ("k".to_owned(), false);
        self.say(member, [Line::Asked { attempt, key, at_ns: at * MS, wait_ns: wait * MS, must }])
    }

    fn begins(&mut self, member: &str, attempt: u64, token: u64, at: u64) -> &mut Self {
        let at = at * MS;
        self.say(
            member,
            [Line::Began { attempt, token, since_ns: at - 1, at_ns: at }, Line::Step { attempt, since_ns: at }],
        )
    }

    fn works(&mut self, member: &str, attempt: u64, at: u64) -> &mut Self {
        self.say(member, [Line::Step { attempt, since_ns: at * MS }])
    }

    fn leaves(&mut self, member: &str, attempt: u64, at: u64, how: How) -> &mut Self {
        self.say(member, [Line::Left { attempt, at_ns: at * MS, how }])
    }

    /// It asks at once, works and leaves.
    fn holds(&mut self, member: &str, attempt: u64, token: u64, (from, to): (u64, u64)) -> &mut Self {
        self.asks(member, attempt, from - 1, 0).begins(member, attempt, token, from);
        self.works(member, attempt, to).leaves(member, attempt, to + 1, How::Done)
    }

    fn dies(&mut self, member: &str, at: u64) -> &mut Self {
        let death = Between { from_ns: at * MS, to_ns: at * MS + 1 };
        self.0.deaths.insert(member.to_owned(), death);
        self.trouble(Some(member), at, at, true)
    }

    fn trouble(&mut self, whom: Option<&str>, from: u64, to: u64, lingers: bool) -> &mut Self {
        let whom = whom.map(str::to_owned);
        self.0.troubles.push(Trouble { whom, from_ns: from * MS, to_ns: to * MS + 1, lingers });
        self
    }

    fn told(&self) -> Vec<String> {
        let (_, found) = check(&self.0);
        found.iter().map(|violation| violation.to_string().split(':').next().unwrap_or_default().to_owned()).collect()
    }

    fn figures(&self) -> Figures {
        check(&self.0).0
    }
}

#[test]
fn turns_in_order_pass_and_are_counted() {
    let mut story = Story::default();
    story.holds("a", 1, 5, (10, 20)).asks("b", 1, 12, 500).begins("b", 1, 6, 22).works("b", 1, 30);
    story.leaves("b", 1, 31, How::Done).asks("a", 2, 25, 3).leaves("a", 2, 28, How::Busy);
    assert_eq!(story.told(), [""; 0]);
    let figures = story.figures();
    assert_eq!((figures.attempts, figures.acquisitions, figures.done, figures.busy), (3, 2, 2, 1));
    assert_eq!((figures.longest_gap_ns, figures.waiters_judged, figures.most_passes), (2 * MS, 1, 0));
}

#[test]
fn two_at_once_and_a_token_that_repeats_are_told() {
    let mut story = Story::default();
    story.holds("a", 1, 5, (10, 20)).holds("b", 1, 5, (15, 25));
    assert_eq!(story.told(), ["overlap", "token"]);
}

#[test]
fn bodies_of_two_locks_may_run_at_once() {
    let mut story = Story::default();
    story.holds("a", 1, 5, (10, 20));
    let other = Line::Asked { attempt: 2, key: "other".to_owned(), at_ns: 1, wait_ns: 0, must: false };
    story.say("b", [other]).begins("b", 2, 3, 15).works("b", 2, 17).leaves("b", 2, 18, How::Done);
    assert_eq!(story.told(), [""; 0]);
}

#[test]
fn one_who_is_told_nothing_is_found_unless_it_died() {
    let mut story = Story::default();
    story.asks("a", 1, 10, 100);
    assert_eq!(story.told(), ["no answer"]);
    assert_eq!(story.dies("a", 50).told(), [""; 0]);
}

#[test]
fn one_who_is_turned_away_before_its_time_is_found() {
    let mut story = Story::default();
    story.asks("a", 1, 10, 100).leaves("a", 1, 109, How::Busy);
    assert_eq!(story.told(), ["too early"]);
}

#[test]
fn one_who_is_told_late_is_found_unless_it_stood_still() {
    let mut story = Story::default();
    story.asks("a", 1, 10, 100).leaves("a", 1, 9000, How::Busy);
    assert_eq!(story.told(), ["too late"]);
    assert_eq!(story.trouble(Some("b"), 50, 8000, true).told(), ["too late"], "it was another one");
    assert_eq!(story.trouble(Some("a"), 50, 8000, false).told(), [""; 0]);
}

#[test]
fn one_who_must_get_the_lock_and_does_not_is_found() {
    for how in [How::Busy, How::Lost, How::Failed("no".to_owned())] {
        let mut story = Story::default();
        let asked = Line::Asked { attempt: 1, key: "k".to_owned(), at_ns: 1, wait_ns: 1, must: true };
        story.say("a", [asked]).leaves("a", 1, 10, how);
        assert_eq!(story.told(), ["no turn"]);
    }
}

/// One waits from 10 on and has its turn at 900; so many who came at 400 and later had theirs before.
fn passed_by(others: u64) -> Story {
    let mut story = Story::default();
    story.holds("x", 1, 1, (1, 300)).asks("w", 1, 10, 5000);
    for other in 0..others {
        story.holds("b", other, 10 + other, (400 + 10 * other, 405 + 10 * other));
    }
    story.begins("w", 1, 99, 900).works("w", 1, 910).leaves("w", 1, 911, How::Done);
    story
}

#[test]
fn one_who_is_passed_by_more_than_two_who_came_later_is_found() {
    assert_eq!(passed_by(2).told(), [""; 0]);
    assert_eq!(passed_by(2).figures().most_passes, 2);
    assert_eq!(passed_by(3).told(), ["passed"]);
}

#[test]
fn who_had_trouble_while_it_waited_cannot_tell_who_came_first() {
    for (whom, from, to, lingers, judged) in [
        (Some("w"), 50, 60, true, 0),
        (None, 50, 60, true, 0),
        (Some("w"), 50, 300, false, 0),
        (Some("w"), 50, 60, false, 1),
        (Some("b"), 50, 60, true, 1),
    ] {
        let mut story = passed_by(3);
        story.trouble(whom, from, to, lingers);
        assert_eq!(story.figures().waiters_judged, judged, "{whom:?}");
        assert_eq!(story.told().len(), judged);
    }
}

/// A holder that dies at 100, and one who waits until `next`.
fn after_a_death(next: u64) -> Story {
    let mut story = Story::default();
    story.asks("a", 1, 9, 0).begins("a", 1, 5, 10).works("a", 1, 99).dies("a", 100);
    story.asks("b", 1, 50, 60_000).begins("b", 1, 6, next).works("b", 1, next + 5).leaves("b", 1, next + 6, How::Done);
    story
}

#[test]
fn what_stays_locked_after_a_death_for_longer_than_the_ttl_is_found() {
    let story = after_a_death(1100);
    assert_eq!(story.told(), [""; 0]);
    assert_eq!((story.figures().holders_died, story.figures().longest_after_death_ns), (1, 1001 * MS));
    assert_eq!(after_a_death(2390).told(), [""; 0]);
    assert_eq!(after_a_death(2410).told(), ["stayed locked"]);
}

#[test]
fn a_lock_that_nobody_waits_for_may_rest() {
    let mut story = Story::default();
    story.holds("a", 1, 5, (10, 20)).holds("b", 1, 6, (90_000, 90_010));
    assert_eq!(story.told(), [""; 0]);
    assert_eq!(story.figures().longest_gap_ns, 0);
}

#[test]
fn what_the_store_or_another_who_waits_accounts_for_is_taken_off() {
    // What happened to one who did not wait is no excuse, nor is that the holder died.
    let mut story = after_a_death(2410);
    story.trouble(Some("c"), 500, 600, true);
    assert_eq!(story.told(), ["stayed locked"]);
    let mut story = after_a_death(2410);
    story.trouble(None, 500, 600, false);
    assert_eq!(story.told(), [""; 0]);
    // A place of one who died stays for a while.
    let mut story = after_a_death(5000);
    story.asks("c", 1, 20, 60_000).dies("c", 1000);
    assert_eq!(story.told(), [""; 0]);
    let mut story = after_a_death(8000);
    story.asks("c", 1, 20, 60_000).dies("c", 1000);
    assert_eq!(story.told(), ["stayed locked"]);
}
