//! What tests need besides Rust.

/// What was found of the Debian package `package`. Nothing found: the test that calls this has nothing to test on a
/// developer's machine, which is printed, and fails where CI should have installed it.
///
/// # Panics
/// If nothing was found and `CI` is set.
#[allow(clippy::print_stderr)]
pub fn installed<T>(found: Option<T>, what: &str, package: &str) -> Option<T> {
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{what} is missing: install the package {package}");
        eprintln!("skipped: {what} is missing (install the package {package})");
    }
    found
}
