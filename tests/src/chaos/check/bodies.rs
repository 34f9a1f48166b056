//! What bodies of one lock must never show: that two run at once, and a token that does not rise.

use super::Violation;
use super::attempts::{Attempt, Body};

/// The attempts whose body ran, by its begin.
fn bodies(attempts: &[Attempt]) -> Vec<(&Attempt, Body)> {
    let mut bodies: Vec<_> = attempts.iter().filter_map(|attempt| Some((attempt, attempt.body?))).collect();
    bodies.sort_by_key(|(_, body)| body.at_ns);
    bodies
}

/// Every pair of bodies that ran at one time, the earlier one first. One that took a single step ran at no time that is
/// certain.
pub(crate) fn overlapping(attempts: &[Attempt]) -> Vec<[(&Attempt, Body); 2]> {
    let mut found = Vec::new();
    let lasting: Vec<_> = bodies(attempts).into_iter().filter(|(_, body)| body.at_ns <= body.last_ns).collect();
    for (n, (earlier, first)) in lasting.iter().enumerate() {
        for (later, second) in lasting[n + 1..].iter().take_while(|(_, second)| second.at_ns <= first.last_ns) {
            found.push([(*earlier, *first), (*later, *second)]);
        }
    }
    found
}

/// The same as violations.
#[must_use]
pub fn overlaps(attempts: &[Attempt]) -> Vec<Violation> {
    overlapping(attempts).into_iter().map(overlap).collect()
}

pub(crate) fn overlap([(earlier, first), (later, second)]: [(&Attempt, Body); 2]) -> Violation {
    Violation::Overlap {
        earlier: earlier.name(),
        later: later.name(),
        from_ns: second.at_ns,
        shared_ns: first.last_ns.min(second.last_ns) - second.at_ns + 1,
    }
}

/// Every body whose token is not larger than that of every body that had begun before it was let in.
pub(crate) fn token_faults(attempts: &[Attempt]) -> Vec<Violation> {
    let by_begin = bodies(attempts);
    let mut by_entry = by_begin.clone();
    by_entry.sort_by_key(|(_, body)| body.since_ns);
    let mut before = by_begin.iter().peekable();
    let mut largest: Option<(&Attempt, u64)> = None;
    let mut found = Vec::new();
    for (later, body) in by_entry {
        while let Some((attempt, begun)) = before.next_if(|(_, begun)| begun.at_ns <= body.since_ns) {
            if largest.is_none_or(|(_, token)| token < begun.token) {
                largest = Some((attempt, begun.token));
            }
        }
        if let Some((earlier, token)) = largest.filter(|(_, token)| body.token <= *token) {
            let (earlier, later) = (earlier.name(), later.name());
            found.push(Violation::Token { earlier, before: token, later, token: body.token });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::attempt;
    use super::*;

    fn body(member: &str, token: u64, since_ns: u64, at_ns: u64, last_ns: u64) -> Attempt {
        Attempt { body: Some(Body { token, since_ns, at_ns, last_ns }), ..attempt(member, since_ns) }
    }

    #[test]
    fn bodies_that_follow_each_other_are_no_overlap() {
        assert_eq!(overlaps(&[body("a", 1, 10, 11, 20), body("b", 2, 20, 21, 30)]), []);
    }

    #[test]
    fn a_body_that_begins_while_another_goes_on_is_an_overlap() {
        let found = overlaps(&[body("b", 2, 19, 20, 30), body("a", 1, 10, 11, 20), body("c", 3, 40, 41, 50)]);
        assert!(matches!(&found[..], [Violation::Overlap { from_ns: 20, shared_ns: 1, .. }]), "{found:?}");
        let found = overlaps(&[body("a", 1, 10, 11, 90), body("b", 2, 19, 20, 30), body("c", 3, 40, 41, 50)]);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn two_bodies_of_one_member_overlap_too() {
        assert_eq!(overlaps(&[body("a", 1, 10, 11, 90), body("a", 2, 19, 20, 30)]).len(), 1);
    }

    #[test]
    fn a_body_that_was_stopped_in_its_only_step_is_not_accused() {
        assert_eq!(overlaps(&[body("a", 1, 10, 25, 10), body("b", 2, 19, 20, 30)]), []);
    }

    #[test]
    fn a_token_that_repeats_or_falls_is_found() {
        assert_eq!(token_faults(&[body("a", 5, 10, 11, 20), body("b", 6, 20, 21, 30)]), []);
        for token in [5, 4] {
            let found = token_faults(&[body("b", token, 20, 21, 30), body("a", 5, 10, 11, 20)]);
            assert!(matches!(&found[..], [Violation::Token { before: 5, .. }]), "{found:?}");
        }
    }

    #[test]
    fn a_body_that_was_let_in_earlier_and_began_later_is_not_accused() {
        // Stopped between the two.
        assert_eq!(token_faults(&[body("a", 5, 10, 50, 10), body("b", 6, 20, 21, 30)]), []);
    }
}
