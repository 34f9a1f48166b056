//! Lines of a job's history: what can be read is the same when it is written and read again, and people read one line.

use leader_core::testing::ledger::{entry, line};

use super::assert_one_line;

pub(super) fn property(bytes: &[u8]) {
    let Some(read) = entry(&String::from_utf8_lossy(bytes)) else { return };
    assert_one_line(&read.to_string());
    // Written, it is as it is kept: instants within what there is, messages cut.
    let written = line(&read);
    let kept = entry(&written).unwrap_or_else(|| panic!("{read:?} is written as {written:?}, which is no entry"));
    assert_eq!(line(&kept), written);
    assert_eq!(entry(&line(&kept)).as_ref(), Some(&kept));
    assert_one_line(&kept.to_string());
}
