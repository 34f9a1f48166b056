//! What lies under the keys of our groups, and should not.

use super::super::connection::Reply;
use super::super::failure::denied;
use super::super::jobs;
use super::super::keys::Keys;
use super::some_of;
use crate::doctor::Finding;
use crate::group::GroupName;
use crate::identity::InstanceId;
use crate::store::Examination;

pub(super) const SCRIPT: &str = include_str!("leases.lua");

/// What was found, of all groups.
pub(in super::super) struct Survey<'a> {
    examination: &'a Examination,
    keys: &'a Keys,
    elsewhere: Kind,
    endless: Kind,
    foreign: Kind,
    mistyped: Kind,
    unread: Kind,
}

/// Findings of one kind: the groups, the keys, and what is to be said of each.
#[derive(Default)]
struct Kind {
    groups: Vec<GroupName>,
    keys: Vec<String>,
    texts: Vec<String>,
}

impl Kind {
    fn add(&mut self, group: &GroupName, key: String, text: String) {
        if self.groups.last() != Some(group) {
            self.groups.push(group.clone());
        }
        self.keys.push(key);
        self.texts.push(text);
    }

    /// About the group, if it is one.
    fn judge(&self, finding: impl FnOnce(&str, &str) -> Finding) -> Option<Finding> {
        let finding = (!self.keys.is_empty()).then(|| {
            let most = self.keys.len().min(super::NAMED);
            finding(&some_of(&self.texts), &self.keys[..most].join(" "))
        })?;
        Some(match &self.groups[..] {
            [one] => finding.about(one.clone()),
            _ => finding,
        })
    }
}

impl<'a> Survey<'a> {
    pub(in super::super) fn new(examination: &'a Examination, keys: &'a Keys) -> Self {
        let (elsewhere, endless, foreign, mistyped, unread) = Default::default();
        Self { examination, keys, elsewhere, endless, foreign, mistyped, unread }
    }

    /// Takes the script's answer about these groups.
    pub(in super::super) fn take(&mut self, groups: &[&GroupName], reply: Reply) {
        let Reply::List(answers) = reply else { return };
        for (group, answer) in groups.iter().zip(answers) {
            let Reply::List(answer) = answer else { continue };
            let [Reply::Text(kind), Reply::Text(value), Reply::Integer(left), record @ ..] = &answer[..] else {
                continue;
            };
            let [Reply::Text(record_kind), Reply::Text(id), Reply::Text(jobs)] = record else { continue };
            let (lease, record) = (self.keys.lease(group), self.keys.record(group));
            match kind.as_str() {
                "none" => {}
                // What the record says has to be known.
                "ours" if record_kind == "ours" => self.look_at_lease(group, &lease, value, *left, (id, jobs)),
                "ours" => {}
                kind => self.stumble(group, &lease, kind, value),
            }
            if record_kind != "ours" {
                self.stumble(group, &record, record_kind, id);
            }
        }
    }

    fn look_at_lease(&mut self, group: &GroupName, key: &str, value: &str, left: i64, recorded: (&str, &str)) {
        // The next acquire puts in order what is ours, or what the record says more of.
        if value == self.examination.candidate.id.as_str() {
            return;
        }
        if !value.is_empty() && value == recorded.0 {
            return self.look_at_jobs(group, key, value, recorded.1);
        }
        let kind = if left == -1 { &mut self.endless } else { &mut self.foreign };
        kind.add(group, key.to_owned(), format!("`{key}` (held by `{}`)", InstanceId::of_stranger(value)));
    }

    /// Instances of one program may be of several versions for a while; another program is here to stay.
    fn look_at_jobs(&mut self, group: &GroupName, key: &str, value: &str, jobs: &str) {
        let functions = self.examination.groups.get(group).map_or(&[][..], Vec::as_slice);
        let (program, missing) = jobs::missing(jobs, functions);
        if program.is_empty() || program == jobs::shown(&self.examination.program) || missing.is_empty() {
            return;
        }
        let missing: Vec<_> = missing.into_iter().map(str::to_owned).collect();
        // In one line, and not without an end, whatever stands there.
        let program: String = jobs::shown(program).chars().take(80).collect();
        let (holder, missing) = (InstanceId::of_stranger(value), some_of(&missing));
        let text = format!("`{key}` (held by `{holder}` of the program `{program}`, which has no {missing})");
        self.elsewhere.add(group, key.to_owned(), text);
    }

    /// A key that is not of the type that it should be, or could not be read at all.
    fn stumble(&mut self, group: &GroupName, key: &str, kind: &str, error: &str) {
        if kind == "error" && denied(error).is_some() {
            // The permissions are looked at by themselves.
        } else if kind == "error" {
            self.unread.add(group, key.to_owned(), format!("`{key}` ({})", jobs::shown(error)));
        } else {
            self.mistyped.add(group, key.to_owned(), format!("`{key}` (of the type {})", jobs::shown(kind)));
        }
    }

    /// At most one finding of each kind.
    pub(in super::super) fn judge(&self) -> Vec<Finding> {
        let mistyped = self.mistyped.judge(|texts, keys| {
            Finding::error(
                format!("keys hold something else than they should: {texts}"),
                "each command about these groups fails, so nobody leads them",
                format!(
                    "if another application uses these keys, choose another prefix for one of the two (Config::prefix, \
                     LEADER_PREFIX); if nobody does: DEL {keys}"
                ),
            )
        });
        let endless = self.endless.judge(|texts, keys| {
            Finding::error(
                format!("leases have no end: {texts}"),
                "whom they name leads for ever, also when it is dead, and nobody else can",
                format!("see that nothing runs under these names, then: DEL {keys}"),
            )
        });
        let elsewhere = self.elsewhere.judge(|texts, _| {
            Finding::error(
                format!("leases are held by a program without the functions that they are for: {texts}"),
                "while it leads, these functions run nowhere",
                "let the two programs use different groups, or give one of them another prefix (Config::prefix, \
                 LEADER_PREFIX)",
            )
        });
        let foreign = self.foreign.judge(|texts, _| {
            Finding::warning(
                format!("leases are held by somebody who keeps no record: {texts}"),
                "another application, or another implementation of this election, leads these groups: while it does, their \
                 jobs do not run in this fleet",
                "if it uses these keys by chance, choose another prefix for one of the two (Config::prefix, LEADER_PREFIX); \
                 if it takes part on purpose, see that it does the same work",
            )
        });
        let unread = self.unread.judge(|texts, _| super::unchecked("keys", texts));
        [mistyped, endless, elsewhere, foreign, unread].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::doctor::Severity;
    use crate::identity::{Candidate, Incarnation};

    fn groups(count: usize) -> Vec<GroupName> {
        (0..count).map(|n| GroupName::new(format!("g{n}")).unwrap()).collect()
    }

    fn answer(kind: &str, value: &str, left: i64, record: &str, id: &str) -> Reply {
        let text = |text: &str| Reply::Text(text.to_owned());
        Reply::List(vec![text(kind), text(value), Reply::Integer(left), text(record), text(id), text("")])
    }

    /// The same, with what the record says about the leader.
    fn led_by(jobs: &str, answer: Reply) -> Reply {
        let Reply::List(mut parts) = answer else { panic!("{answer:?}") };
        parts[5] = Reply::Text(jobs.to_owned());
        Reply::List(parts)
    }

    fn judged(answers: Vec<Reply>) -> Vec<Finding> {
        let groups = groups(answers.len());
        let examination = Examination {
            candidate: Candidate { id: InstanceId::new("me").unwrap(), incarnation: Incarnation::from_u128(1) },
            groups: groups.iter().map(|group| (group.clone(), vec!["jobs::ours".to_owned()])).collect(),
            program: "billing".to_owned(),
            ttl: Duration::from_secs(10),
            timeout: Duration::from_secs(10),
        };
        let keys = Keys::new("leader:");
        let mut survey = Survey::new(&examination, &keys);
        survey.take(&groups.iter().collect::<Vec<_>>(), Reply::List(answers));
        survey.judge()
    }

    #[test]
    fn what_should_be_there_is_nothing_to_find() {
        let found = judged(vec![
            answer("none", "", -2, "ours", ""),
            answer("none", "", -2, "ours", "a"),
            answer("ours", "a", 900, "ours", "a"),
            // Both are put in order by the next acquire.
            answer("ours", "a", -1, "ours", "a"),
            answer("ours", "me", -1, "ours", ""),
        ]);
        assert_eq!(found, []);
    }

    #[test]
    fn a_lease_that_no_record_knows_names_its_holder_and_its_group() {
        let found = judged(vec![answer("ours", "nest-1", 900, "ours", "a")]);
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!((finding.severity, finding.group.as_ref()), (Severity::Warning, groups(1).first()));
        assert!(finding.what.contains("`leader:g0` (held by `nest-1`)"), "{finding}");
        assert!(finding.why.contains("jobs do not run") && finding.advice.contains("LEADER_PREFIX"), "{finding}");
    }

    #[test]
    fn another_program_that_leads_without_our_functions_is_an_error_and_another_version_is_none() {
        let judged = |jobs: &str| judged(vec![led_by(jobs, answer("ours", "a", 900, "ours", "a"))]);
        for jobs in ["", "billing", "billing\njobs::older", "mail\njobs::ours", "mail\n…"] {
            assert_eq!(judged(jobs), [], "{jobs}");
        }
        let found = judged("mail\njobs::theirs");
        let [finding] = &found[..] else { panic!("{found:?}") };
        let text = "`leader:g0` (held by `a` of the program `mail`, which has no jobs::ours)";
        assert!(finding.severity == Severity::Error && finding.what.contains(text), "{finding}");
        assert!(finding.group.is_some());
        // Whatever is written there is shown in one line.
        let found = judged("ma\u{1b}[2J\ril\njobs::theirs");
        assert!(found[0].what.contains("the program `ma?[2J?il`"), "{found:?}");
    }

    #[test]
    fn a_strange_lease_without_an_end_comes_with_the_command_that_frees_it() {
        let found = judged(vec![answer("ours", "", -1, "ours", "")]);
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.severity, Severity::Error);
        assert!(finding.what.contains("held by `(empty)`") && finding.advice.ends_with("DEL leader:g0"), "{finding}");
    }

    #[test]
    fn keys_of_a_wrong_type_are_named_with_what_they_are() {
        let found = judged(vec![answer("list", "", 0, "ours", ""), answer("ours", "a", 9, "zset", "")]);
        assert_eq!(found.len(), 1, "whether the second lease is strange cannot be known");
        let text = found[0].to_string();
        assert!(text.contains("`leader:g0` (of the type list), `{leader:g1}:term` (of the type zset)"), "{text}");
        assert!(text.ends_with("DEL leader:g0 {leader:g1}:term") && found[0].group.is_none(), "{text}");
    }

    #[test]
    fn very_many_groups_are_one_finding() {
        let found = judged(vec![answer("ours", "other", 900, "ours", ""); 10_000]);
        let [finding] = &found[..] else { panic!("{} findings", found.len()) };
        assert!(finding.what.ends_with("`leader:g2` (held by `other`) and 9997 more"), "{finding}");
    }

    #[test]
    fn what_cannot_be_read_is_said_to_be_unchecked() {
        let found = judged(vec![answer("error", "ERR no", -2, "ours", "")]);
        assert!(found[0].what.contains("keys could not be checked (`leader:g0` (ERR no))"), "{found:?}");
        let found = judged(vec![answer("error", "ERR \u{1b}[2J", -2, "ours", "")]);
        assert!(found[0].what.contains("(ERR ?[2J)"), "{found:?}");
        assert_eq!(
            judged(vec![answer("error", "ERR ACL failure in script: No permissions to access a key", -2, "ours", "")]),
            []
        );
    }
}
