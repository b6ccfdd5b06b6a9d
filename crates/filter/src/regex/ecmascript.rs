//! The engine that comes with the crate: ECMAScript's dialect, over bytes.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use fancy_regex::{BytesMode, RegexOptionsBuilder};
use regex::bytes::RegexBuilder;

use super::translate::{Translation, translate};
use super::{GaveUp, Regex, RegexEngine, Span};
use crate::Error;

/// Patterns as in ECMAScript (JavaScript without the flag `u`), over bytes.
///
/// That is the dialect of the reference service, whose engine is that of the C++ library (it depends on how it was built). Patterns
/// and texts are bytes: a character outside of ASCII is several, as there.
///
/// The pattern is translated and handed to `regex`, which does not backtrack: time is linear in the length of the text, also for
/// patterns like `(a*)*b` that are the ruin of an engine that does. Patterns with lookaround or back references go to `fancy-regex`,
/// and get [so many](Self::MAX_BACKTRACKS) attempts.
///
/// Differences from ECMAScript:
///
/// - A group in a repetition keeps what it matched when a later round does without it, as in Perl, RE2 and PCRE:
///   `(?:(a)|b)*` on `ab` has group 1 at the `a`. More is overwritten, not less.
/// - `[[:alpha:]]` and the other named classes exist, as in C++.
/// - There are no back references to groups that do not exist and no octal escapes; a lookahead cannot be repeated.
/// - `\u` above 7F is the character's UTF-8 bytes, and cannot be in brackets; neither can other characters outside of ASCII, or rather,
///   each of their bytes counts for itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct EcmaScript;

impl EcmaScript {
    /// The longest pattern, in bytes.
    pub const MAX_PATTERN: usize = 4096;

    /// The deepest nesting of groups.
    pub const MAX_NESTING: usize = 24;

    /// The longest text, in bytes.
    pub const MAX_TEXT: usize = 1024 * 1024;

    /// The longest text for patterns with lookaround or back references, in bytes.
    pub const MAX_TEXT_WITH_BACKTRACKING: usize = 4 * 1024;

    /// How often such a pattern may go back and try something else in one text.
    pub const MAX_BACKTRACKS: usize = 50_000;

    /// How often it may in the first attempt. That is enough for nearly all texts that are not made
    /// to be hard.
    const QUICK_BACKTRACKS: usize = 500;

    /// Bounds the size of a compiled pattern in bytes, and that of the tables that are made while it runs.
    pub const MAX_COMPILED: usize = 256 * 1024;

    /// Bounds the number of instructions of a pattern with backtracking.
    const MAX_INSTRUCTIONS: usize = 16 * 1024;
}

impl RegexEngine for EcmaScript {
    fn compile(&self, pattern: &[u8], span: Span) -> Result<Arc<dyn Regex>, Error> {
        Self::compile_within(pattern, span, Self::MAX_COMPILED).map(|(regex, _)| regex)
    }
}

impl EcmaScript {
    /// Compiles a pattern, of which each part may take so many bytes, and tells whether it
    /// backtracks.
    pub(super) fn compile_within(
        pattern: &[u8],
        span: Span,
        max_compiled: usize,
    ) -> Result<(Arc<dyn Regex>, bool), Error> {
        let Translation { text, groups, backtracks } = translate(pattern)?;
        let text = match span {
            Span::Whole => format!(r"\A(?:{text})\z"),
            Span::Part => text,
        };
        let error = |reason: String| Error::Pattern {
            pattern: String::from_utf8_lossy(pattern).into_owned(),
            offset: 0,
            reason,
        };
        // The group of the original has the name of its number.
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
        // As many states as fit into this may be visited for a byte; most take 128 bytes.
        let steps_per_byte = (max_compiled / 512).max(1) as u64;
        Ok((Arc::new(Linear { regex, indices, steps_per_byte }), false))
    }
}

/// For patterns that are regular.
struct Linear {
    regex: regex::bytes::Regex,
    /// The index of each group of the pattern among those of `regex`.
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

/// For patterns with lookaround or back references.
///
/// The engine does not tell how many steps it has made. So it runs with a low limit first, and
/// costs the high one only if that is not enough.
struct Backtracking {
    quick: fancy_regex::Regex,
    thorough: fancy_regex::Regex,
    /// The index of each group of the pattern among those of the engine.
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
            // Each attempt may look at a part of the text again.
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
