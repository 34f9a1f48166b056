//! A fleet of real processes that elect a leader, lose it, and go on.
fn main() {}
