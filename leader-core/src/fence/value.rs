//! What a guarded script answers.

/// A value of Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// Nothing; Lua's `nil` and `false`.
    Nil,
    /// A whole number; Lua's `true` is 1, and what follows the point is cut off.
    Integer(i64),
    /// A string, as it is.
    Bytes(Vec<u8>),
    /// A status, such as the `OK` of `SET`.
    Status(String),
    /// Values in a row.
    Array(Vec<Value>),
    /// An error among other values. One that a script ends with is a [`FenceError`](super::FenceError).
    Error(String),
}

impl Value {
    /// The number, if it is one.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The string, if it is one.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The string, if it is one and text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(self.as_bytes()?).ok()
    }
}
