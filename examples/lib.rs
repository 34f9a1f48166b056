//! One file an example.
