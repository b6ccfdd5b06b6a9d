//! Regular expressions of configs: they match whole names (`docs/spec/service.md §6`).

#[cfg(feature = "regex")]
use std::sync::Arc;

/// A compiled expression.
#[derive(Clone, Debug)]
pub(crate) struct NamePattern {
    #[cfg(feature = "regex")]
    regex: Arc<dyn esatto_filter::Regex>,
}

impl NamePattern {
    /// Compiles an expression in ECMAScript's dialect.
    ///
    /// # Errors
    ///
    /// A text for the consumer: it is not a regular expression, or they are not built in.
    #[cfg(feature = "regex")]
    pub(crate) fn new(pattern: &[u8]) -> Result<Self, String> {
        use esatto_filter::{EcmaScript, RegexEngine as _, Span};
        let regex = EcmaScript.compile(pattern, Span::Whole).map_err(|error| error.to_string())?;
        Ok(Self { regex })
    }

    /// Refuses the expression.
    ///
    /// # Errors
    ///
    /// Always: regular expressions are not built in.
    #[cfg(not(feature = "regex"))]
    pub(crate) fn new(_: &[u8]) -> Result<Self, String> {
        Err("regular expressions are not supported by this service (it was built without `regex`)".to_owned())
    }

    /// Whether the expression matches the whole name. Not, if that takes too long to find out.
    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        #[cfg(feature = "regex")]
        return self.regex.is_match(name).unwrap_or(false);
        #[cfg(not(feature = "regex"))]
        {
            let _ = name;
            false
        }
    }
}

#[cfg(all(test, feature = "regex"))]
mod tests {
    use super::*;

    #[test]
    fn whole_names_match() {
        let pattern = NamePattern::new(b"a.*|b").unwrap();
        assert!(pattern.matches(b"abc") && pattern.matches(b"b"));
        assert!(!pattern.matches(b"bc") && !pattern.matches(b"xa"));
        assert!(NamePattern::new(b"a(").is_err());
        assert!(NamePattern::new(b"((a{1000}){1000}){1000}").is_err());
    }

    #[test]
    fn patterns_are_ecmascript() {
        let pattern = NamePattern::new(br"(?!bad)[^]*\d").unwrap();
        assert!(pattern.matches(b"go\n1") && !pattern.matches(b"bad1"));
    }
}
