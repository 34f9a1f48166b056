//! What a record says about the program that leads: what one instance writes, another one reads.

use leader_core::testing::redis_script::{described, missing};

use super::assert_one_line;
use super::bytes::Bytes;

/// As long as one may be: it is sent with each acquire.
const MOST: usize = 1024;

pub(super) fn property(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let program = bytes.text();
    let functions: Vec<String> = (0..bytes.below(40)).map(|_| bytes.text().replace('\n', "")).collect();
    let written = described(&program, &functions);
    assert!(written.len() <= MOST, "{} bytes", written.len());
    let (shown, lacking) = missing(&written, &functions);
    assert_one_line(&shown);
    assert!(lacking.is_empty(), "{program:?} runs {functions:?}, and says that it lacks {lacking:?}");
    // What anybody else has written there.
    let (_, lacking) = missing(&bytes.rest(), &functions);
    assert!(lacking.iter().all(|function| functions.contains(function)));
}
