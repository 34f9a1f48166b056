//! Two electors that live under one stable instance id.

use super::Finding;
use super::several::some_of;
use super::work::shown;

/// Where the electors of this process are, for those who are asked about it.
pub(crate) fn this_process() -> String {
    shown(&format!("process {} on {}", std::process::id(), crate::config::host_name()))
}

/// `places`: where the others are. `shares`: it is known that one of them has a group in common with this one.
pub(crate) fn same_id(id: &str, places: &[String], shares: bool) -> Finding {
    // Containers may have their numbers and their host's name in common.
    let is_own = |place: &String| *place == this_process();
    let place =
        |place: &String| format!("{place}{}", if is_own(place) { " (by number and host this one)" } else { "" });
    let places: Vec<String> = places.iter().map(place).collect();
    let condition = if shares { "" } else { "if they have a group in common, " };
    Finding::error(
        format!("another elector that lives has the instance id `{id}`, too: {}", some_of(&places)),
        format!(
            "{condition}each takes the other's lease for its own: both may lead for a moment, and then one of them stays out \
             until it is restarted"
        ),
        "give each an id of its own (Config::instance_id), or none, and end the one that is not wanted",
    )
    .coded("same-id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_whether_it_is_this_process_and_whether_they_meet() {
        let places = ["process 0 on elsewhere".to_owned(), this_process()];
        let finding = same_id("the-one", &places, true);
        let ends = format!("process 0 on elsewhere, {} (by number and host this one)", this_process());
        assert!(finding.what.contains("`the-one`") && finding.what.ends_with(&ends), "{finding}");
        assert!(finding.why.starts_with("each takes"), "{finding}");
        let finding = same_id("the-one", &places[..1], false);
        assert!(finding.what.ends_with("process 0 on elsewhere"), "{finding}");
        assert!(finding.why.starts_with("if they have a group in common, each takes"), "{finding}");
    }
}
