//! What a leader runs, as its record says it, so that another program's instances can tell what nobody runs for them.

use std::collections::{BTreeMap, HashMap};

use crate::group::GroupName;

/// So many bytes at most: it is sent with each acquire.
const MOST: usize = 1024;
/// The last line, if not all have room.
const MORE: &str = "…";

/// For each group: a line with the program's name, then one for each function that the group gates.
pub(super) fn described(program: &str, groups: &BTreeMap<GroupName, Vec<String>>) -> HashMap<GroupName, String> {
    let text = |functions: &Vec<String>| {
        let mut text = shown(program);
        for function in functions {
            if text.len() + function.len() + MORE.len() + 2 > MOST {
                text.extend(["\n", MORE]);
                break;
            }
            text.extend(["\n", function]);
        }
        text
    };
    groups.iter().map(|(group, functions)| (group.clone(), text(functions))).collect()
}

/// A program's name, as descriptions have it.
pub(super) fn shown(program: &str) -> String {
    program.replace(char::is_control, "?")
}

/// The program in such a description, and which of `functions` it does not run; none, if that cannot be told.
pub(super) fn missing<'a>(description: &'a str, functions: &'a [String]) -> (&'a str, Vec<&'a str>) {
    let mut lines = description.split('\n');
    let program = lines.next().unwrap_or_default();
    let known: Vec<&str> = lines.collect();
    if known.last() == Some(&MORE) {
        return (program, Vec::new());
    }
    (program, functions.iter().map(String::as_str).filter(|function| !known.contains(function)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn description(of: &[&str]) -> String {
        let group = GroupName::new("a").unwrap();
        described("billing", &BTreeMap::from([(group.clone(), functions(of))])).remove(&group).unwrap()
    }

    #[test]
    fn what_the_leader_does_not_run_is_told_with_its_program() {
        let theirs = description(&["m::a", "m::b"]);
        assert_eq!(missing(&theirs, &functions(&["m::b", "m::c"])), ("billing", vec!["m::c"]));
        assert_eq!(missing(&theirs, &functions(&["m::a"])), ("billing", vec![]));
        assert_eq!(missing(&description(&[]), &functions(&["m::a"])), ("billing", vec!["m::a"]));
    }

    #[test]
    fn a_description_is_bounded_and_then_says_nothing_of_what_is_missing() {
        let many: Vec<String> = (0..100).map(|n| format!("some::module::function_{n}")).collect();
        let theirs = description(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(theirs.len() <= MOST, "{}", theirs.len());
        assert_eq!(missing(&theirs, &functions(&["m::a"])), ("billing", vec![]));
    }
}
