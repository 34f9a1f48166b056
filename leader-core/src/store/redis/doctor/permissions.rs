//! What the server's user may not do, and what that costs.

use super::super::connection::{Failure, Reply};
use super::super::failure::{Denied, denied};
use super::super::keys::Keys;
use crate::doctor::Finding;

pub(super) const SCRIPT: &str = include_str!("permissions.lua");

/// What came of trying each command.
#[derive(Debug, Default)]
pub(super) struct Tried {
    denied: Vec<(String, Denied)>,
    /// Why no key can be set, though it is permitted.
    refusal: Option<String>,
    /// Why nobody listens to releases, though it is permitted.
    deaf: Option<String>,
}

impl Tried {
    /// Takes note of what is not permitted; the reply, if it is one. Any other failure is the caller's.
    pub(super) fn note(&mut self, command: &str, reply: Result<Reply, Failure>) -> Result<Option<Reply>, Failure> {
        match reply {
            Ok(reply) => Ok(Some(reply)),
            Err(Failure::Server(error)) if self.note_error(command, &error) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn note_error(&mut self, command: &str, error: &str) -> bool {
        let denied = denied(error);
        self.denied.extend(denied.map(|what| (command.to_owned(), what)));
        denied.is_some()
    }

    pub(super) fn note_deafness(&mut self, error: Option<&str>) {
        let Some(error) = error else { return };
        if !self.note_error("subscribe", error) {
            self.deaf = Some(error.to_owned());
        }
    }

    /// Takes the script's answer: pairs of a command and its error.
    pub(super) fn take(&mut self, reply: Reply) {
        let Reply::List(pairs) = reply else { return };
        for pair in pairs {
            let Reply::List(pair) = pair else { continue };
            let [Reply::Text(command), Reply::Text(error)] = &pair[..] else { continue };
            let permitted = !self.note_error(command, error);
            // If it could set keys, it would have looked at the arguments.
            if permitted && command == "set" && !error.is_empty() && !error.contains("syntax error") {
                self.refusal = Some(error.clone());
            }
        }
    }

    /// What the server says to who would set a key.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    pub(super) fn is_lacking(&self) -> bool {
        !self.denied.is_empty() || self.deaf.is_some()
    }

    pub(super) fn may_run_scripts(&self) -> bool {
        !self.lacks("eval")
    }

    fn lacks(&self, command: &str) -> bool {
        self.denied.iter().any(|(denied, _)| denied == command)
    }

    /// A finding for each thing that does not work without what is missing.
    pub(super) fn judge(&self, user: Option<&str>, keys: &Keys) -> Vec<Finding> {
        let lacks = |rules: &str| match user {
            Some(user) => format!("the server's user `{user}` lacks the permissions {rules}"),
            None => format!("the server's user lacks the permissions {rules}"),
        };
        let allow = |rules: &str| format!("allow it: ACL SETUSER {} {rules}", user.unwrap_or("<user>"));
        let found = |needs: &[Need]| {
            let rules = self.missing(needs, keys);
            (!rules.is_empty()).then(|| (lacks(&rules), allow(&rules)))
        };
        let leading = found(&[Need::Leading]).map(|(what, advice)| {
            Finding::error(what, "without them this instance can lead no group, or not keep it", advice)
                .coded("no-permission")
        });
        let memory = found(&[Need::Memory]).map(|(what, advice)| {
            let why = "it stays unseen if the server is rolled back to an older state, or a replica takes its place: two \
                       instances may then lead for up to one ttl";
            Finding::warning(what, why, advice).coded("no-permission")
        });
        let announcing = found(&[Need::Announcing]).map(|(what, advice)| {
            let late = "a lease that was given back is taken only when it would have ended";
            let anew = if self.lacks("subscribe") { "; this instance listens from its next start on" } else { "" };
            Finding::warning(what, format!("{late}{anew}"), advice).coded("no-permission")
        });
        let thrift = found(&[Need::Thrift]).map(|(what, advice)| {
            Finding::warning(what, "each call brings the whole script along", advice).coded("no-permission")
        });
        let looking = found(&[Need::Looking]).map(|(what, advice)| {
            let why =
                "a server that is no primary any more is known by the first command that it refuses, and not at once";
            Finding::warning(what, why, advice).coded("no-permission")
        });
        let deaf = self.deaf.as_ref().map(|error| {
            Finding::warning(
                format!("the server lets this instance not listen to announcements ({error})"),
                "a lease that was given back is taken here only when it would have ended",
                "see what the error says; this instance listens from its next start on",
            )
            .coded("deaf")
        });
        [leading, memory, announcing, thrift, looking, deaf].into_iter().flatten().collect()
    }

    /// What `ACL SETUSER` has to be told.
    fn missing(&self, needs: &[Need], keys: &Keys) -> String {
        let mut rules: Vec<String> = Vec::new();
        for (command, what) in &self.denied {
            if needs.contains(&self.need(command)) {
                let missing = match what {
                    Denied::Command => vec![format!("+{command}")],
                    Denied::Channel => vec![keys.channel_pattern()],
                    Denied::Key => match command.as_str() {
                        // Of a key that nobody uses: it tells nothing of the others.
                        "del" => vec![],
                        "hmget" | "hset" | "persist" => vec![keys.record_pattern()],
                        "eval" | "evalsha" => vec![keys.lease_pattern(), keys.record_pattern()],
                        _ => vec![keys.lease_pattern()],
                    },
                };
                rules.extend(missing.into_iter().filter(|rule| !rules.contains(rule)).collect::<Vec<_>>());
            }
        }
        rules.join(" ")
    }

    fn need(&self, command: &str) -> Need {
        match command {
            "info" => Need::Memory,
            "publish" | "subscribe" => Need::Announcing,
            "script|load" => Need::Thrift,
            "role" => Need::Looking,
            // Who may load no script calls none by its digest.
            "evalsha" if self.lacks("script|load") => Need::Thrift,
            _ => Need::Leading,
        }
    }
}

/// What a command is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Leading,
    /// To notice that the server may have lost its memory.
    Memory,
    /// To take over at once what was given back.
    Announcing,
    /// Short calls.
    Thrift,
    /// To know, by Sentinel, that a server is the primary.
    Looking,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    const DENIED: &str = "ERR The user executing the script can't run this command or subcommand";
    const NO_KEY: &str = "ERR ACL failure in script: No permissions to access a key";

    fn answer(errors: &[(&str, &str)]) -> Reply {
        let text = |text: &str| Reply::Text(text.to_owned());
        Reply::List(errors.iter().map(|(command, error)| Reply::List(vec![text(command), text(error)])).collect())
    }

    fn tried(errors: &[(&str, &str)]) -> Tried {
        let mut tried = Tried::default();
        tried.take(answer(errors));
        tried
    }

    fn judged(tried: &Tried) -> Vec<(Severity, String)> {
        let found = tried.judge(Some("app"), &Keys::new("leader:"));
        found.iter().map(|finding| (finding.severity, finding.to_string())).collect()
    }

    #[test]
    fn commands_that_are_refused_for_their_arguments_or_find_nothing_are_permitted() {
        let all = [
            ("set", "ERR syntax error"),
            ("get", ""),
            ("get", "WRONGTYPE Operation against a key holding the wrong kind of value"),
            ("pexpire", "ERR value is not an integer or out of range"),
            ("hset", "ERR wrong number of arguments for 'hset' command"),
        ];
        let tried = tried(&all);
        assert!(!tried.is_lacking() && tried.refusal().is_none() && tried.may_run_scripts());
    }

    #[test]
    fn what_is_needed_to_lead_is_one_error_with_the_line_that_allows_it() {
        let found = judged(&tried(&[("pexpire", DENIED), ("get", NO_KEY), ("hset", NO_KEY), ("set", NO_KEY)]));
        let [(Severity::Error, text)] = &found[..] else { panic!("{found:?}") };
        assert!(text.contains("user `app`"), "{text}");
        assert!(text.ends_with("ACL SETUSER app +pexpire ~leader:* ~{leader:*"), "{text}");
    }

    #[test]
    fn what_only_makes_it_weaker_or_slower_is_a_warning_that_says_how() {
        let mut tried = tried(&[("info", DENIED), ("publish", DENIED)]);
        tried.note_deafness(Some("NOPERM No permissions to access a channel"));
        let loading =
            Failure::Server("NOPERM this user has no permissions to run the 'script|load' command".to_owned());
        assert_eq!(tried.note("script|load", Err(loading)), Ok(None));
        let found = judged(&tried);
        assert!(found.iter().all(|(severity, _)| *severity == Severity::Warning), "{found:?}");
        for (at, part, rules) in [
            (0, "two instances", "app +info"),
            (1, "given back", "app +publish &leader:*"),
            (2, "script", "app +script|load"),
        ] {
            assert!(found[at].1.contains(part) && found[at].1.ends_with(rules), "{found:?}");
        }
    }

    #[test]
    fn who_may_not_ask_a_server_of_sentinels_for_its_role_is_told_what_that_costs() {
        let mut tried = Tried::default();
        let denied = "NOPERM this user has no permissions to run the 'role' command".to_owned();
        assert_eq!(tried.note("role", Err(Failure::Server(denied))), Ok(None));
        let [(Severity::Warning, text)] = &judged(&tried)[..] else { panic!() };
        assert!(text.contains("no primary any more") && text.ends_with("app +role"), "{text}");
    }

    #[test]
    fn a_key_that_nobody_uses_need_not_be_permitted() {
        assert_eq!(judged(&tried(&[("del", NO_KEY)])), []);
    }

    #[test]
    fn who_may_not_set_a_key_for_another_reason_hears_the_reason() {
        let error = "NOREPLICAS Not enough good replicas to write.";
        assert_eq!(tried(&[("set", error)]).refusal(), Some(error));
        assert_eq!(tried(&[("set", DENIED)]).refusal(), None);
    }

    #[test]
    fn a_failure_that_is_no_refusal_is_the_callers() {
        let busy = Failure::Server("BUSY Redis is busy running a script".to_owned());
        assert_eq!(Tried::default().note("eval", Err(busy.clone())), Err(busy));
    }
}
