//! Bytes, read as choices.

use std::time::Duration;

/// Numbers at which something ends, or begins.
const EDGES: [u64; 16] = [
    0,
    1,
    2,
    59,
    60,
    1_000,
    3_600_000,
    1_800_000_000,
    253_402_300_799,
    253_402_300_800,
    8_210_266_876_799,
    1_800_000_000_000_000,
    (1 << 53) - 1,
    1 << 53,
    i64::MAX as u64,
    u64::MAX,
];

/// What is left of the bytes. Where none are left, all are zero.
pub(super) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(super) fn flag(&mut self) -> bool {
        self.byte() % 2 == 1
    }

    /// A number below this one.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    pub(super) fn choice<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A small one, one at an edge or beside it, or any.
    pub(super) fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..128 => small.into(),
            edge @ 128..224 => {
                let at = EDGES[usize::from(edge % 16)];
                match edge / 16 % 3 {
                    0 => at.saturating_sub(1),
                    1 => at,
                    _ => at.saturating_add(1),
                }
            }
            _ => {
                let mut eight = [0; 8];
                eight.fill_with(|| self.byte());
                u64::from_le_bytes(eight)
            }
        }
    }

    /// Up to some hours, in steps that are as long as what is timed.
    pub(super) fn time(&mut self) -> Duration {
        let unit = self.choice(&[1, 10, 100, 1_000, 60_000]);
        Duration::from_millis(unit * u64::from(self.byte()))
    }

    /// A text, of less than 64 bytes.
    pub(super) fn text(&mut self) -> String {
        let length = self.below(64).min(self.0.len());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8_lossy(text).into_owned()
    }

    /// All that is left, as text.
    pub(super) fn rest(self) -> String {
        String::from_utf8_lossy(self.0).into_owned()
    }
}
