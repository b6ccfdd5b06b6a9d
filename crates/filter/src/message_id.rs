//! [`MessageId`]: the number of a message definition.

use core::fmt;

/// Number of a message definition in a [`Program`](crate::Program).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u32);

impl MessageId {
    /// The first message, from which a filter starts by default.
    pub const ROOT: Self = Self(0);
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {}", self.0)
    }
}
