//! Which store a URL means.
