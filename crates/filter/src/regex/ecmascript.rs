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

    /// Bounds the size of a compiled pattern in bytes, and that of the tables that are made while it runs.
    const MAX_COMPILED: usize = 256 * 1024;

    /// Bounds the number of instructions of a pattern with backtracking.
    const MAX_INSTRUCTIONS: usize = 16 * 1024;
}

impl RegexEngine for EcmaScript {
    fn compile(&self, pattern: &[u8], span: Span) -> Result<Arc<dyn Regex>, Error> {
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
            let mut options = RegexOptionsBuilder::new();
            options
                .bytes_mode(BytesMode::Ascii)
                .backtrack_limit(Self::MAX_BACKTRACKS)
                .max_prog_size(Self::MAX_INSTRUCTIONS)
                .delegate_size_limit(Self::MAX_COMPILED)
                .delegate_dfa_size_limit(Self::MAX_COMPILED);
            let regex = options.build(text).map_err(|reason| error(reason.to_string()))?;
            regex.capture_names().enumerate().for_each(&mut note);
            return Ok(Arc::new(Backtracking { regex, indices }));
        }
        let regex = RegexBuilder::new(&text)
            .unicode(false)
            .size_limit(Self::MAX_COMPILED)
            .dfa_size_limit(Self::MAX_COMPILED)
            .build()
            .map_err(|reason| error(reason.to_string()))?;
        regex.capture_names().enumerate().for_each(&mut note);
        Ok(Arc::new(Linear { regex, indices }))
    }
}

/// For patterns that are regular.
struct Linear {
    regex: regex::bytes::Regex,
    /// The index of each group of the pattern among those of `regex`.
    indices: Box<[usize]>,
}

impl Regex for Linear {
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
struct Backtracking {
    regex: fancy_regex::Regex,
    /// The index of each group of the pattern among those of `regex`.
    indices: Box<[usize]>,
}

impl Regex for Backtracking {
    fn find(
        &self,
        text: &[u8],
        start: usize,
        groups: &mut Vec<Option<Range<usize>>>,
    ) -> Result<Option<Range<usize>>, GaveUp> {
        groups.clear();
        check_text(text, EcmaScript::MAX_TEXT_WITH_BACKTRACKING)?;
        let captures = self.regex.captures_from_pos(text, start).map_err(|_| GaveUp)?;
        let Some(captures) = captures else { return Ok(None) };
        groups.extend(self.indices.iter().map(|index| captures.get(*index).map(|found| found.range())));
        Ok(captures.get(0).map(|found| found.range()))
    }

    fn is_match(&self, text: &[u8]) -> Result<bool, GaveUp> {
        check_text(text, EcmaScript::MAX_TEXT_WITH_BACKTRACKING)?;
        self.regex.is_match(text).map_err(|_| GaveUp)
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
        f.debug_tuple("EcmaScript").field(&self.regex.as_str()).finish()
    }
}
