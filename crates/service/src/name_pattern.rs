//! Regular expressions of configs: they match whole names (`docs/spec/service.md §6`).

/// A compiled expression.
#[derive(Clone, Debug)]
pub(crate) struct NamePattern {
    #[cfg(feature = "regex")]
    regex: regex::bytes::Regex,
}

impl NamePattern {
    /// Compiles an expression.
    ///
    /// # Errors
    ///
    /// A text for the consumer: it is not a regular expression, or they are not built in.
    #[cfg(feature = "regex")]
    pub(crate) fn new(pattern: &[u8]) -> Result<Self, String> {
        /// Bytes a compiled expression may take.
        const MAX_COMPILED_BYTES: usize = 1 << 20;
        let text = core::str::from_utf8(pattern).map_err(|_| "the regular expression is not UTF-8".to_owned())?;
        let regex = regex::bytes::RegexBuilder::new(&format!("^(?:{text})$")).size_limit(MAX_COMPILED_BYTES).build();
        let regex = regex.map_err(|error| format!("the regular expression {text:?} is not valid: {error}"))?;
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

    /// Whether the expression matches the whole name.
    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        #[cfg(feature = "regex")]
        return self.regex.is_match(name);
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
        assert!(NamePattern::new(&[0xff]).is_err());
        assert!(NamePattern::new(b"((a{1000}){1000}){1000}").is_err());
    }
}
