//! Regular expressions: the traits of an engine for string rules, and the engine of this crate.

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

/// Engine that compiles patterns.
pub trait RegexEngine {
    /// Compiles `pattern` for matches of the whole text, or of any part.
    ///
    /// # Errors
    ///
    /// [`Error::Pattern`] if the pattern is not valid or too large.
    fn compile(&self, pattern: &[u8], span: Span) -> Result<Arc<dyn Regex>, Error>;
}

/// Compiled pattern.
///
/// Texts come from strangers and may be any bytes. An engine must bound its work on a text.
pub trait Regex: fmt::Debug + Send + Sync {
    /// Finds the leftmost match in `text` that begins at or after `start`. Replaces the content of
    /// `groups` with the ranges of its groups. The first is group 1, and a group that took no part
    /// has none.
    ///
    /// The text before `start` counts as context, for instance for word boundaries.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] if the search takes more work than the engine allows.
    fn find(
        &self,
        text: &[u8],
        start: usize,
        groups: &mut Vec<Option<Range<usize>>>,
    ) -> Result<Option<Range<usize>>, GaveUp>;

    /// Returns the largest number of steps, of some nanoseconds each, that a byte of a text costs,
    /// in addition to those that [`find_within`](Self::find_within) takes.
    fn steps_per_byte(&self) -> u64 {
        1
    }

    /// Returns true if `text` has a match.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find).
    fn is_match(&self, text: &[u8]) -> Result<bool, GaveUp> {
        Ok(self.find(text, 0, &mut Vec::new())?.is_some())
    }

    /// As [`find`](Self::find), but takes its cost from `steps`, of some nanoseconds each, before
    /// it begins.
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

/// Extent of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// The whole text.
    Whole,
    /// Any part of the text.
    Part,
}

/// Error of a search that cannot be decided within the engine's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaveUp;

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the regular expression takes too long on this text")
    }
}

impl core::error::Error for GaveUp {}
