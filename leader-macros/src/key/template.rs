//! What is known of the text of a key before anything is put into it, as a function of that text alone: tests that hand in
//! anything include this file.

/// Whether something is put into it; or what is wrong with it. `longest`: in bytes. `such`: a key that is right.
pub(crate) fn check(key: &str, longest: usize, such: &str) -> Result<bool, String> {
    let interpolated = key.contains(['{', '}']);
    let reason = if key.is_empty() {
        "an empty key cannot be used".to_owned()
    } else if let Some(control) = key.chars().find(|c| c.is_control()) {
        format!("`{}` cannot stand in a key", control.escape_default())
    } else if !interpolated && key.len() > longest {
        format!("{} bytes are too many for this key: it can have {longest}", key.len())
    } else {
        return check_names(key).map(|()| interpolated);
    };
    Err(format!("{reason}; write one such as {such:?}"))
}

/// `format!` says of these that they are not possible, and proposes what is not possible here.
fn check_names(key: &str) -> Result<(), String> {
    let key = key.replace("{{", "");
    for (_, braces) in key.match_indices('{').map(|(at, _)| key.split_at(at + 1)) {
        let name = braces.split(['}', ':']).next().unwrap_or_default();
        if name.contains(['.', '(', '[']) {
            return Err(format!(
                "`{name}` is more than a name: make the key an expression, such as `key = format!(\"billing:{{}}\", {name})`"
            ));
        }
    }
    Ok(())
}
