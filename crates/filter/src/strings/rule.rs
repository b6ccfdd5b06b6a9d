//! One rule.

use std::sync::Arc;

use crate::regex::{Regex, RegexEngine, Span};
use crate::{Error, SemanticType};

/// A condition for strings and what to do with those that meet it.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(super) policy: Policy,
    pub(super) regex: Arc<dyn Regex>,
    pub(super) atrace_prefix: Vec<u8>,
    pub(super) name: Vec<u8>,
    pub(super) types: SemanticTypes,
}

impl Rule {
    /// A rule for strings of type 0. The dialect of `pattern` is that of the engine.
    ///
    /// # Errors
    ///
    /// [`Error::Pattern`] if the engine refuses the pattern.
    pub fn new(engine: &dyn RegexEngine, policy: Policy, pattern: &[u8]) -> Result<Self, Error> {
        let regex = engine.compile(pattern, policy.span())?;
        let types = SemanticTypes::default();
        Ok(Self { policy, regex, atrace_prefix: Vec::new(), name: Vec::new(), types })
    }

    /// With what the atrace payload must begin; only policies for atrace ask.
    #[must_use]
    pub fn atrace_payload_starts_with(mut self, prefix: impl Into<Vec<u8>>) -> Self {
        self.atrace_prefix = prefix.into();
        self
    }

    /// A name under which a later rule can replace this one.
    #[must_use]
    pub fn name(mut self, name: impl Into<Vec<u8>>) -> Self {
        self.name = name.into();
        self
    }

    /// The types of the strings to which it applies.
    #[must_use]
    pub fn semantic_types(mut self, types: SemanticTypes) -> Self {
        self.types = types;
        self
    }
}

/// What a rule asks and does. Numbers are those of `TraceConfig.TraceFilter.StringFilterPolicy`.
///
/// The policies for atrace ask in addition that the string has the form `B|1024|payload` and that the payload begins with a
/// given prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Policy {
    /// If the whole string matches, its groups are overwritten.
    MatchRedactGroups = 1,
    /// The same for atrace.
    AtraceMatchRedactGroups = 2,
    /// If the whole string matches, it is kept, and no other rule is asked.
    MatchBreak = 3,
    /// The same for atrace.
    AtraceMatchBreak = 4,
    /// The groups of every match in the string are overwritten.
    AtraceRepeatedSearchRedactGroups = 5,
}

impl Policy {
    /// The policy with a number from a config.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`] if there is none, as for 0.
    pub fn from_number(number: u32) -> Result<Self, Error> {
        Ok(match number {
            1 => Self::MatchRedactGroups,
            2 => Self::AtraceMatchRedactGroups,
            3 => Self::MatchBreak,
            4 => Self::AtraceMatchBreak,
            5 => Self::AtraceRepeatedSearchRedactGroups,
            _ => return Err(Error::Policy { number }),
        })
    }

    pub(super) const fn is_atrace(self) -> bool {
        match self {
            Self::MatchRedactGroups | Self::MatchBreak => false,
            Self::AtraceMatchRedactGroups | Self::AtraceMatchBreak | Self::AtraceRepeatedSearchRedactGroups => true,
        }
    }

    const fn span(self) -> Span {
        match self {
            Self::AtraceRepeatedSearchRedactGroups => Span::Part,
            _ => Span::Whole,
        }
    }
}

/// A set of the types 0 to 127. The default is type 0 alone, for strings that say nothing of themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemanticTypes(u128);

impl Default for SemanticTypes {
    fn default() -> Self {
        Self(1)
    }
}

impl SemanticTypes {
    /// The set of `numbers`; the default if there are none.
    ///
    /// # Errors
    ///
    /// [`Error::SemanticType`] for a number over 127.
    pub fn from_numbers(numbers: impl IntoIterator<Item = u32>) -> Result<Self, Error> {
        let bits = numbers.into_iter().try_fold(0, |bits, number| {
            let bit = 1u128.checked_shl(number).ok_or(Error::SemanticType { number })?;
            Ok::<_, Error>(bits | bit)
        })?;
        Ok(if bits == 0 { Self::default() } else { Self(bits) })
    }

    /// Whether a rule with these types applies to a string of type `semantic_type`. Types over 127 are in every set: what is
    /// not known had better be filtered.
    #[must_use]
    pub fn contains(self, semantic_type: SemanticType) -> bool {
        1u128.checked_shl(semantic_type.0).is_none_or(|bit| self.0 & bit != 0)
    }
}
