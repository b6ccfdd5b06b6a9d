//! [`Rule`]: one rule for strings.

use std::sync::Arc;

use crate::regex::{Regex, RegexEngine, Span};
use crate::{Error, SemanticType};

/// Condition for strings, and the treatment of strings that meet it.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(super) policy: Policy,
    pub(super) regex: Arc<dyn Regex>,
    pub(super) atrace_prefix: Vec<u8>,
    pub(super) name: Vec<u8>,
    pub(super) types: SemanticTypes,
}

impl Rule {
    /// Makes a rule for strings of type 0. The engine defines the dialect of `pattern`.
    ///
    /// # Errors
    ///
    /// [`Error::Pattern`] if the engine refuses the pattern.
    pub fn new(engine: &dyn RegexEngine, policy: Policy, pattern: &[u8]) -> Result<Self, Error> {
        let regex = engine.compile(pattern, policy.span())?;
        let types = SemanticTypes::default();
        Ok(Self { policy, regex, atrace_prefix: Vec::new(), name: Vec::new(), types })
    }

    /// Sets the prefix of the atrace payload. Only policies for atrace check it.
    #[must_use]
    pub fn atrace_payload_starts_with(mut self, prefix: impl Into<Vec<u8>>) -> Self {
        self.atrace_prefix = prefix.into();
        self
    }

    /// Sets a name, by which a later rule can replace this one.
    #[must_use]
    pub fn name(mut self, name: impl Into<Vec<u8>>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the types of the strings to which the rule applies.
    #[must_use]
    pub fn semantic_types(mut self, types: SemanticTypes) -> Self {
        self.types = types;
        self
    }
}

/// Condition and treatment of a rule. Numbers are those of
/// `TraceConfig.TraceFilter.StringFilterPolicy`.
///
/// The policies for atrace also require that the string has the form `B|1024|payload`, and that the
/// payload begins with a given prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Policy {
    /// If the whole string matches, its groups are overwritten.
    MatchRedactGroups = 1,
    /// The same for atrace.
    AtraceMatchRedactGroups = 2,
    /// If the whole string matches, it is kept, and no other rule is tried.
    MatchBreak = 3,
    /// The same for atrace.
    AtraceMatchBreak = 4,
    /// The groups of every match in the string are overwritten.
    AtraceRepeatedSearchRedactGroups = 5,
}

impl Policy {
    /// Returns the policy with a number from a config.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`] if there is none, for instance for 0.
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

/// Set of the types 0 to 127. The default is type 0 alone, for strings without a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemanticTypes(u128);

impl Default for SemanticTypes {
    fn default() -> Self {
        Self(1)
    }
}

impl SemanticTypes {
    /// Makes the set of `numbers`; the default if there are none.
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

    /// Returns true if a rule with these types applies to a string of type `semantic_type`. Types
    /// over 127 are in every set, so that unknown types are filtered.
    #[must_use]
    pub fn contains(self, semantic_type: SemanticType) -> bool {
        1u128.checked_shl(semantic_type.0).is_none_or(|bit| self.0 & bit != 0)
    }
}
