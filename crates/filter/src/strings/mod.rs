//! String rules: they overwrite texts that must not be read, and keep the length
//! (`docs/spec/protozero.md` §14).
//!
//! Rules are tried in order. The first rule that matches decides, as in a firewall: it keeps the
//! string, or it overwrites the text that its groups match.
//!
//! ```
//! use esatto_filter::{EcmaScript, Outcome, Policy, Rule, SemanticType, StringFilter};
//!
//! let mut strings = StringFilter::new();
//! strings.add(Rule::new(&EcmaScript, Policy::MatchBreak, b"public:.*")?)?;
//! strings.add(Rule::new(&EcmaScript, Policy::MatchRedactGroups, br"(?:\w+:)?(.*)")?)?;
//!
//! let mut text = *b"public:cat";
//! assert_eq!(strings.filter(&mut text, SemanticType(0)), Outcome::Kept);
//! let mut text = *b"mail:someone@example.org";
//! assert_eq!(strings.filter(&mut text, SemanticType(0)), Outcome::Redacted);
//! assert_eq!(&text, b"mail:P60REDACTED--------");
//! # Ok::<(), esatto_filter::Error>(())
//! ```

mod redaction;
mod rule;

pub use rule::{Policy, Rule, SemanticTypes};

use core::ops::Range;

use redaction::{redact, redact_all};

use crate::regex::GaveUp;
use crate::{Error, SemanticType};

/// Largest number of rules of one filter. A string may have to go through all of them.
pub const MAX_RULES: usize = 256;

/// Largest number of bytes that repeated searches of one rule read in one string. Each search is
/// counted from its start to the end of the string, because it may read all of that. This bounds
/// the cost of a string with many matches.
const MAX_SEARCHED: usize = 64 * 1024 * 1024;

/// Ordered rules for strings.
#[derive(Clone, Debug, Default)]
pub struct StringFilter {
    rules: Vec<Rule>,
    /// Steps per byte of all rules together.
    steps_per_byte: u64,
}

/// Result of filtering a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The string is unchanged.
    Kept,
    /// A rule matched, and its groups are overwritten.
    Redacted,
    /// A rule could not be decided within bounds, so the whole string is overwritten.
    GaveUp,
}

impl StringFilter {
    /// Makes a filter without rules, which keeps every string.
    #[must_use]
    pub const fn new() -> Self {
        Self { rules: Vec::new(), steps_per_byte: 0 }
    }

    /// Adds a rule at the end, or replaces the rule with the same name. Rules without a name never
    /// replace another.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyRules`] if there are [`MAX_RULES`] already.
    pub fn add(&mut self, rule: Rule) -> Result<(), Error> {
        let same_name = |other: &&mut Rule| !rule.name.is_empty() && other.name == rule.name;
        if let Some(same) = self.rules.iter_mut().find(same_name) {
            *same = rule;
        } else if self.rules.len() < MAX_RULES {
            self.rules.push(rule);
        } else {
            return Err(Error::TooManyRules { max: MAX_RULES });
        }
        self.steps_per_byte = self.rules.iter().map(|rule| rule.regex.steps_per_byte()).sum();
        Ok(())
    }

    /// Returns the largest number of steps that all rules together cost for a byte of a string, in
    /// addition to those that [`filter_within`](Self::filter_within) takes.
    #[must_use]
    pub fn steps_per_byte(&self) -> u64 {
        self.steps_per_byte
    }

    /// Returns the rules in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Applies the rules to a string of any bytes.
    pub fn filter(&self, text: &mut [u8], semantic_type: SemanticType) -> Outcome {
        self.filter_within(text, semantic_type, &mut { u64::MAX })
    }

    /// As [`filter`](Self::filter), but takes its cost from `steps`, beyond a constant for each
    /// byte and rule; see [`Regex::find_within`](crate::Regex::find_within). When the steps are
    /// used up, strings that cost more are overwritten as a whole.
    pub fn filter_within(&self, text: &mut [u8], semantic_type: SemanticType, steps: &mut u64) -> Outcome {
        if text.is_empty() || self.rules.is_empty() {
            return Outcome::Kept;
        }
        self.decide(text, semantic_type, steps).unwrap_or_else(|GaveUp| {
            redact(text);
            Outcome::GaveUp
        })
    }

    fn decide(&self, text: &mut [u8], semantic_type: SemanticType, steps: &mut u64) -> Result<Outcome, GaveUp> {
        let payload = atrace_payload(text).map(|start| start..text.len());
        let mut groups = Vec::new();
        for rule in self.rules.iter().filter(|rule| rule.types.contains(semantic_type)) {
            let in_prefix = |payload: &Range<usize>| text[payload.clone()].starts_with(&rule.atrace_prefix);
            if rule.policy.is_atrace() && !payload.as_ref().is_some_and(in_prefix) {
                continue;
            }
            match rule.policy {
                Policy::MatchBreak | Policy::AtraceMatchBreak => {
                    if rule.regex.is_match_within(text, steps)? {
                        return Ok(Outcome::Kept);
                    }
                }
                Policy::MatchRedactGroups | Policy::AtraceMatchRedactGroups => {
                    if rule.regex.find_within(text, 0, &mut groups, steps)?.is_some() {
                        redact_all(text, &groups);
                        return Ok(Outcome::Redacted);
                    }
                }
                Policy::AtraceRepeatedSearchRedactGroups => {
                    if search_and_redact(rule, text, &mut groups, steps)? {
                        return Ok(Outcome::Redacted);
                    }
                }
            }
        }
        Ok(Outcome::Kept)
    }
}

/// Overwrites the groups of every match. Returns false if there is no match.
///
/// All matches are those of the original string.
fn search_and_redact(
    rule: &Rule,
    text: &mut [u8],
    groups: &mut Vec<Option<Range<usize>>>,
    steps: &mut u64,
) -> Result<bool, GaveUp> {
    let mut found = Vec::new();
    let mut searched = 0;
    let mut start = 0;
    let mut any = false;
    while start <= text.len() {
        searched += text.len() - start;
        if searched > MAX_SEARCHED {
            return Err(GaveUp);
        }
        if start > 0 {
            // The first search reads each byte once, as other rules do.
            *steps = steps.checked_sub((text.len() - start) as u64).ok_or(GaveUp)?;
        }
        let Some(range) = rule.regex.find_within(text, start, groups, steps)? else { break };
        any = true;
        found.extend(groups.drain(..).flatten().filter(|group| !group.is_empty()).map(Some));
        // After an empty match, search one byte later, or it would be found for ever.
        start = range.end.max(start) + usize::from(range.is_empty());
    }
    redact_all(text, &found);
    Ok(any)
}

/// Returns the offset of the part after the process id: `x` in `B|1024|x`.
///
/// The second bar is the first at or after byte 2. An `E`, which ends a slice, has no such part.
fn atrace_payload(text: &[u8]) -> Option<usize> {
    const FIRST_POSSIBLE: usize = 2;
    if text.len() <= FIRST_POSSIBLE || text[0] == b'E' {
        return None;
    }
    let bar = text[FIRST_POSSIBLE..].iter().position(|byte| *byte == b'|')?;
    Some(FIRST_POSSIBLE + bar + 1)
}
