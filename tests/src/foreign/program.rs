//! What a record says about the program that leads: what one instance writes, another one reads.

use std::time::Duration;

use leader_core::testing::redis_script::{described, lack};

use super::assert_one_line;
use super::bytes::Bytes;

/// As long as one may be: it is sent with each acquire.
const MOST: usize = 2048;
/// As long as what is said of one may be: three names of each kind at most.
const LONGEST: usize = 10_000;

pub(super) fn property(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let program = bytes.text();
    let lines: Vec<String> = (0..bytes.below(40)).map(|_| bytes.text().replace('\n', "")).collect();
    let led = bytes.flag().then_some(Duration::from_secs(3600));
    let written = described(&program, &lines);
    assert!(written.len() <= MOST, "{} bytes", written.len());
    let lacking = lack(&written, &program, &lines, led);
    assert_eq!(lacking, None, "{program:?} does {lines:?}");
    // What anybody else has written there.
    if let Some(text) = lack(&bytes.rest(), &program, &lines, led) {
        assert_one_line(&text);
        assert!(text.len() < LONGEST, "{text}");
    }
}
