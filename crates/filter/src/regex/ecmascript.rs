//! [`EcmaScript`]: the engine of this crate, with ECMAScript's dialect, over bytes.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use fancy_regex::{BytesMode, RegexOptionsBuilder};
use regex::bytes::RegexBuilder;

use super::translate::{Limits, Translation, translate};
use super::{GaveUp, Regex, RegexEngine, Span};
use crate::Error;

/// Engine for patterns as in ECMAScript (JavaScript without the flag `u`), over bytes.
///
/// This is the dialect of the reference service, whose engine is that of the C++ library (this
/// depends on how it was built). Patterns and texts are bytes. As there, a character outside of
/// ASCII is several bytes.
///
/// The pattern is translated for `regex`, which does not backtrack. Its time is linear in the
/// length of the text, also for patterns like `(a*)*b`, for which a backtracking engine takes
/// exponential time. Patterns with lookaround or back references go to `fancy-regex`, with a [bound
/// on attempts](Self::MAX_BACKTRACKS).
///
/// Differences from ECMAScript:
///
/// - A group in a repetition keeps its match if a later round does not use the group, as in Perl,
///   RE2 and PCRE. For example, `(?:(a)|b)*` on `ab` has group 1 at the `a`. More is overwritten,
///   not less.
/// - `[[:alpha:]]` and the other named classes exist, as in C++.
/// - There are no back references to groups that do not exist, and no octal escapes. A lookahead
///   cannot be repeated.
/// - `\u` above 7F stands for the character's UTF-8 bytes, and cannot be in brackets. In brackets,
///   each byte of another character outside of ASCII counts for itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct EcmaScript;

impl EcmaScript {
    /// Largest size of a pattern in bytes.
    pub const MAX_PATTERN: usize = 4096;

    /// Largest nesting depth of groups.
    pub const MAX_NESTING: usize = 24;

    /// Largest size of a text in bytes.
    pub const MAX_TEXT: usize = 1024 * 1024;

    /// Largest size of a text in bytes for patterns with lookaround or back references.
    pub const MAX_TEXT_WITH_BACKTRACKING: usize = 4 * 1024;

    /// Largest number of backtracks of such a pattern in one text.
    pub const MAX_BACKTRACKS: usize = 50_000;

    /// Largest number of backtracks in the first attempt. This is enough for nearly all texts that
    /// are not made to be hard.
    const QUICK_BACKTRACKS: usize = 500;

    /// Bound on the size of a compiled pattern in bytes, and on the size of the tables that are
    /// made while it runs.
    pub const MAX_COMPILED: usize = 256 * 1024;

    /// Bound on the number of instructions of a pattern with backtracking.
    const MAX_INSTRUCTIONS: usize = 16 * 1024;
}

impl RegexEngine for EcmaScript {
    fn compile(&self, pattern: &[u8], span: Span) -> Result<Arc<dyn Regex>, Error> {
        Self::compile_within(pattern, span, Self::MAX_COMPILED).map(|(regex, _)| regex)
    }
}

impl EcmaScript {
    /// Compiles a pattern, of which each part may take so many bytes. Returns also if it
    /// backtracks.
    pub(super) fn compile_within(
        pattern: &[u8],
        span: Span,
        max_compiled: usize,
    ) -> Result<(Arc<dyn Regex>, bool), Error> {
        let limits = Limits { pattern: Self::MAX_PATTERN, nesting: Self::MAX_NESTING };
        let Translation { text, groups, backtracks } = translate(pattern, limits)?;
        let text = match span {
            Span::Whole => format!(r"\A(?:{text})\z"),
            Span::Part => text,
        };
        let error = |reason: String| Error::Pattern {
            pattern: String::from_utf8_lossy(pattern).into_owned(),
            offset: 0,
            reason,
        };
        // Each group of the original is named by its number.
        let number = |name: Option<&str>| name?.strip_prefix('g')?.parse::<usize>().ok();
        let mut indices = vec![0; groups].into_boxed_slice();
        let mut note = |(index, name)| {
            if let Some(entry) = number(name).and_then(|number| indices.get_mut(number - 1)) {
                *entry = index;
            }
        };
        if backtracks {
            let build = |backtracks| {
                let mut options = RegexOptionsBuilder::new();
                options
                    .bytes_mode(BytesMode::Ascii)
                    .backtrack_limit(backtracks)
                    .max_prog_size(Self::MAX_INSTRUCTIONS)
                    .delegate_size_limit(max_compiled)
                    .delegate_dfa_size_limit(max_compiled);
                options.build(text.clone()).map_err(|reason| error(reason.to_string()))
            };
            let [quick, thorough] = [build(Self::QUICK_BACKTRACKS)?, build(Self::MAX_BACKTRACKS)?];
            thorough.capture_names().enumerate().for_each(&mut note);
            return Ok((Arc::new(Backtracking { quick, thorough, indices }), true));
        }
        let regex = RegexBuilder::new(&text)
            .unicode(false)
            .size_limit(max_compiled)
            .dfa_size_limit(max_compiled)
            .build()
            .map_err(|reason| error(reason.to_string()))?;
        regex.capture_names().enumerate().for_each(&mut note);
        // For a byte, as many states may be visited as fit into this size. Most take 128 bytes.
        let steps_per_byte = (max_compiled / 512).max(1) as u64;
        Ok((Arc::new(Linear { regex, indices, steps_per_byte }), false))
    }
}

/// Pattern that is regular.
struct Linear {
    regex: regex::bytes::Regex,
    /// Index of each group of the pattern among those of `regex`.
    indices: Box<[usize]>,
    steps_per_byte: u64,
}

impl Regex for Linear {
    fn steps_per_byte(&self) -> u64 {
        self.steps_per_byte
    }

    fn find(
        &self,
        text: &[u8],
        start: usize,
        groups: &mut Vec<Option<Range<usize>>>,
    ) -> Result<Option<Range<usize>>, GaveUp> {
        groups.clear();
        check_text(text, EcmaScript::MAX_TEXT)?;
        let Some(captures) = self.regex.captures_at(text, start) else { return Ok(None) };
        groups.extend(self.indices.iter().map(|index| captures.get(*index).map(|found| found.range())));
        Ok(captures.get(0).map(|found| found.range()))
    }

    fn is_match(&self, text: &[u8]) -> Result<bool, GaveUp> {
        check_text(text, EcmaScript::MAX_TEXT)?;
        Ok(self.regex.is_match(text))
    }
}

/// Pattern with lookaround or back references.
///
/// The engine does not report its steps. So it runs with a low limit first, and the high limit is
/// charged only if the low one is not enough.
struct Backtracking {
    quick: fancy_regex::Regex,
    thorough: fancy_regex::Regex,
    /// Index of each group of the pattern among those of the engine.
    indices: Box<[usize]>,
}

impl Backtracking {
    fn run<T>(
        &self,
        text: &[u8],
        steps: &mut u64,
        search: impl Fn(&fancy_regex::Regex) -> fancy_regex::Result<T>,
    ) -> Result<T, GaveUp> {
        check_text(text, EcmaScript::MAX_TEXT_WITH_BACKTRACKING)?;
        let mut pay = |backtracks: usize| {
            // Each attempt may read a part of the text again.
            let cost = backtracks as u64 * (8 + text.len() as u64 / 8);
            *steps = steps.checked_sub(cost).ok_or(GaveUp)?;
            Ok(())
        };
        pay(EcmaScript::QUICK_BACKTRACKS)?;
        search(&self.quick).or_else(|_| {
            pay(EcmaScript::MAX_BACKTRACKS)?;
            search(&self.thorough).map_err(|_| GaveUp)
        })
    }
}

impl Regex for Backtracking {
    fn find(
        &self,
        text: &[u8],
        start: usize,
        groups: &mut Vec<Option<Range<usize>>>,
    ) -> Result<Option<Range<usize>>, GaveUp> {
        self.find_within(text, start, groups, &mut { u64::MAX })
    }

    fn is_match(&self, text: &[u8]) -> Result<bool, GaveUp> {
        self.is_match_within(text, &mut { u64::MAX })
    }

    fn find_within(
        &self,
        text: &[u8],
        start: usize,
        groups: &mut Vec<Option<Range<usize>>>,
        steps: &mut u64,
    ) -> Result<Option<Range<usize>>, GaveUp> {
        groups.clear();
        let captures = self.run(text, steps, |regex| regex.captures_from_pos(text, start))?;
        let Some(captures) = captures else { return Ok(None) };
        groups.extend(self.indices.iter().map(|index| captures.get(*index).map(|found| found.range())));
        Ok(captures.get(0).map(|found| found.range()))
    }

    fn is_match_within(&self, text: &[u8], steps: &mut u64) -> Result<bool, GaveUp> {
        self.run(text, steps, |regex| regex.is_match(text))
    }
}

fn check_text(text: &[u8], max: usize) -> Result<(), GaveUp> {
    if text.len() <= max { Ok(()) } else { Err(GaveUp) }
}

impl fmt::Debug for Linear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EcmaScript").field(&self.regex.as_str()).finish()
    }
}

impl fmt::Debug for Backtracking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EcmaScript").field(&self.thorough.as_str()).finish()
    }
}
