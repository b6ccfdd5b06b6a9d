//! Without signals no thread is interrupted.

/// There is nothing to block.
pub(crate) const fn block() {}
