//! [`PrintFilter`]: which texts of `ftrace/print` a data source wants.

/// Rules for the texts of `ftrace/print`. The first that matches decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PrintFilter {
    pub(crate) rules: Vec<PrintRule>,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrintRule {
    pub(crate) pattern: PrintPattern,
    pub(crate) allow: bool,
}

/// Which texts a rule is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PrintPattern {
    /// Texts that begin like this.
    Prefix(Vec<u8>),
    /// Messages of atrace, `TYPE|PID|TEXT`, with this type, whose text begins like this.
    Atrace { kind: Vec<u8>, prefix: Vec<u8> },
}

impl PrintFilter {
    /// True if the data source wants the text.
    pub(crate) fn allows(&self, text: &[u8]) -> bool {
        self.rules.iter().find(|rule| rule.pattern.matches(text)).is_none_or(|rule| rule.allow)
    }
}

impl PrintPattern {
    fn matches(&self, text: &[u8]) -> bool {
        match self {
            Self::Prefix(prefix) => text.starts_with(prefix),
            Self::Atrace { kind, prefix } => after_pid(text, kind).is_some_and(|text| text.starts_with(prefix)),
        }
    }
}

/// Returns what follows `KIND|PID|`.
fn after_pid<'t>(text: &'t [u8], kind: &[u8]) -> Option<&'t [u8]> {
    let pid = text.strip_prefix(kind)?.strip_prefix(b"|")?;
    let digits = pid.iter().take_while(|byte| byte.is_ascii_digit()).count();
    pid[digits..].strip_prefix(b"|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pattern: PrintPattern, allow: bool) -> PrintRule {
        PrintRule { pattern, allow }
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let atrace = |kind: &str, prefix: &str| PrintPattern::Atrace { kind: kind.into(), prefix: prefix.into() };
        let prefix = |text: &str| PrintPattern::Prefix(text.into());
        let rules = vec![rule(atrace("B", "keep"), true), rule(atrace("B", ""), false), rule(prefix("x"), false)];
        let filter = PrintFilter { rules };
        for (text, expected) in [
            ("B|12|keep this", true),
            ("B|12|other", false),
            ("B|12x|other", true),
            ("B||other", false),
            ("C|12|other", true),
            ("xyz", false),
            ("", true),
        ] {
            assert_eq!(filter.allows(text.as_bytes()), expected, "{text}");
        }
        assert!(PrintFilter::default().allows(b"x"));
    }
}
