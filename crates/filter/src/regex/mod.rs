//! Regular expressions: what string rules ask of an engine, and the engine that comes with the crate.

#[cfg(feature = "regex")]
mod byte_set;
#[cfg(feature = "regex")]
mod ecmascript;
#[cfg(feature = "regex")]
mod quota;
#[cfg(feature = "regex")]
mod translate;

#[cfg(feature = "regex")]
pub use ecmascript::EcmaScript;
#[cfg(feature = "regex")]
pub use quota::PatternQuota;

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use crate::Error;

/// Compiles patterns.
pub trait RegexEngine {
    /// Compiles `pattern` for matches that are the whole text, or for any.
    ///
    /// # Errors
    ///
    /// [`Error::Pattern`] if it is no pattern, or too large.
    fn compile(&self, pattern: &[u8], span: Span) -> Result<Arc<dyn Regex>, Error>;
}

/// A compiled pattern.
///
/// Texts come from strangers: they are any bytes, and an engine must bound what it does with one.
pub trait Regex: fmt::Debug + Send + Sync {
    /// Finds the leftmost match in `text` that begins at or after `start`, and replaces the content of `groups` with the ranges
    /// of its groups: the first is group 1, a group that took no part has none.
    ///
    /// What lies before `start` counts as context, for word boundaries and the like.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if it takes more than the engine allows.
    fn find(
        &self,
        text: &[u8],
        start: usize,
        groups: &mut Vec<Option<Range<usize>>>,
    ) -> Result<Option<Range<usize>>, GaveUp>;

    /// Steps, of some nanoseconds each, that a byte of a text costs at most, beside those that
    /// [`find_within`](Self::find_within) takes.
    fn steps_per_byte(&self) -> u64 {
        1
    }

    /// Whether `text` has a match.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find).
    fn is_match(&self, text: &[u8]) -> Result<bool, GaveUp> {
        Ok(self.find(text, 0, &mut Vec::new())?.is_some())
    }

    /// As [`find`](Self::find), and takes what it costs from `steps`, some nanoseconds each,
    /// before it begins.
    ///
    /// An engine whose time is linear in the text need not count.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] also if there are not enough steps left.
    fn find_within(
        &self,
        text: &[u8],
        start: usize,
        groups: &mut Vec<Option<Range<usize>>>,
        steps: &mut u64,
    ) -> Result<Option<Range<usize>>, GaveUp> {
        let _ = steps;
        self.find(text, start, groups)
    }

    /// As [`is_match`](Self::is_match) and [`find_within`](Self::find_within).
    ///
    /// # Errors
    ///
    /// [`GaveUp`] also if there are not enough steps left.
    fn is_match_within(&self, text: &[u8], steps: &mut u64) -> Result<bool, GaveUp> {
        let _ = steps;
        self.is_match(text)
    }
}

/// What a match has to cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// All of the text.
    Whole,
    /// Any part of it.
    Part,
}

/// A match cannot be decided within the engine's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaveUp;

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the regular expression takes too long on this text")
    }
}

impl core::error::Error for GaveUp {}
