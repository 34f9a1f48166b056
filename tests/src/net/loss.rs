//! Which packets are lost: where they arrive, by whom they come from.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// Of a hundred packets from a sender, so many are lost.
pub(super) type Losses = BTreeMap<Ipv4Addr, u32>;

/// The rules of a party that loses these, in the language of nft: instead of all that were there, and all at once.
///
/// Losing is a matter of the receiver: who sends is not told.
pub(super) fn rules(losses: &Losses) -> String {
    let mut text = "table inet faults\ndelete table inet faults\n".to_owned();
    text += "table inet faults {\n chain arriving {\n  type filter hook input priority 0; policy accept;\n";
    for (sender, percent) in losses {
        let chance = if *percent < 100 { format!("numgen random mod 100 < {percent} ") } else { String::new() };
        // Writing to a string does not fail.
        let _ = writeln!(text, "  ip saddr {sender} {chance}counter drop");
    }
    text + " }\n}\n"
}

/// How many packets were lost by the rules that are there, as nft lists them.
pub(super) fn lost(listed: &str) -> u64 {
    let counts = listed.split("counter packets ").skip(1);
    counts.filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_always_and_what_by_chance_is_told_apart() {
        let of = |last| Ipv4Addr::new(10, 0, 0, last);
        let text = rules(&Losses::from([(of(1), 100), (of(2), 30)]));
        assert!(text.contains("ip saddr 10.0.0.1 counter drop\n"), "{text}");
        assert!(text.contains("ip saddr 10.0.0.2 numgen random mod 100 < 30 counter drop\n"), "{text}");
        // Nothing is left of earlier ones.
        assert!(text.starts_with("table inet faults\ndelete table inet faults\n"), "{text}");
        assert!(!rules(&Losses::new()).contains("drop"));
    }

    #[test]
    fn what_was_lost_is_counted_over_all_rules() {
        let listed = "ip saddr 10.0.0.1 counter packets 12 bytes 720 drop\n\
                      ip saddr 10.0.0.2 numgen random mod 100 < 30 counter packets 3 bytes 180 drop\n";
        assert_eq!((lost(listed), lost("")), (15, 0));
    }
}
