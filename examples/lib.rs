//! What the examples and the tests of several processes share: the logs of instances, and what they prove.

pub mod history;
