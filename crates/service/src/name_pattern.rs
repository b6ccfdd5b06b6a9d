//! Regular expressions of configs, which match whole names (`docs/spec/service.md §6`).

use std::cell::Cell;
#[cfg(feature = "regex")]
use std::cell::RefCell;
#[cfg(feature = "regex")]
use std::sync::Arc;

#[cfg(feature = "regex")]
use esatto_filter::GaveUp;

use crate::client_text::Name;
use crate::context::Context;
use crate::ids::SessionId;

/// Regular expressions for names in one config. The service refuses a config with more.
const MAX_NAME_PATTERNS: usize = 512;

/// Steps of about a nanosecond that an expression with lookaround or back references may take for
/// one name. If that is not enough, the name does not match, and the log says so. Other expressions
/// are linear in the name.
#[cfg(feature = "regex")]
const MAX_STEPS_PER_NAME: u64 = 1 << 20;

/// Steps that the expressions of one session may take for one call of a client, bytes of names
/// included.
///
/// Protects the event loop from many expressions and many names that each stay below their bound.
/// At the bound the remaining names do not match, and the log says so.
#[cfg(feature = "regex")]
const MAX_STEPS_PER_CALL: u64 = 1 << 24;

/// Steps that cost one unit of work.
#[cfg(feature = "regex")]
const STEPS_PER_WORK: u64 = 64;

/// Limits of all expressions of one config together.
#[derive(Debug, Default)]
pub(crate) struct Quota {
    names: Cell<usize>,
    #[cfg(feature = "regex")]
    pub(crate) patterns: esatto_filter::PatternQuota,
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub(crate) struct NamePattern {
    #[cfg(feature = "regex")]
    regex: Arc<dyn esatto_filter::Regex>,
    /// The name that was tested last, and whether it matches. One producer can ask many times in a
    /// row.
    #[cfg(feature = "regex")]
    last: RefCell<Option<(Name, bool)>>,
}

impl NamePattern {
    /// Compiles an expression in ECMAScript's dialect.
    ///
    /// # Errors
    ///
    /// A text for the consumer, if it is no regular expression, if the config has too many of them,
    /// or if they are not built in.
    pub(crate) fn new(pattern: &[u8], quota: &Quota) -> Result<Self, String> {
        quota.names.set(quota.names.get() + 1);
        if quota.names.get() > MAX_NAME_PATTERNS {
            return Err(format!("the config has more than {MAX_NAME_PATTERNS} regular expressions for names"));
        }
        Self::compile(pattern, quota)
    }

    #[cfg(feature = "regex")]
    fn compile(pattern: &[u8], quota: &Quota) -> Result<Self, String> {
        use esatto_filter::{RegexEngine as _, Span};
        let regex = quota.patterns.compile(pattern, Span::Whole).map_err(|error| error.to_string())?;
        Ok(Self { regex, last: RefCell::default() })
    }

    #[cfg(not(feature = "regex"))]
    fn compile(_: &[u8], _: &Quota) -> Result<Self, String> {
        Err("regular expressions are not supported by this service (it was built without `regex`)".to_owned())
    }

    /// Tells whether the expression of a session matches the whole name. If the test takes too
    /// long, the name does not match.
    #[cfg(feature = "regex")]
    pub(crate) fn matches(&self, session: SessionId, name: &Name, cx: &mut Context<'_>) -> bool {
        if let Some((_, matches)) = self.last.borrow().as_ref().filter(|(last, _)| Arc::ptr_eq(last, name)) {
            return *matches;
        }
        let at = cx.steps_left.iter().position(|(of, ..)| *of == session).unwrap_or_else(|| {
            cx.steps_left.push((session, MAX_STEPS_PER_CALL, false));
            cx.steps_left.len() - 1
        });
        let (_, left, has_given_up) = &mut cx.steps_left[at];
        let most = MAX_STEPS_PER_NAME.min(*left);
        let mut steps = most;
        let result = if most > 0 { self.regex.is_match_within(name, &mut steps) } else { Err(GaveUp) };
        *left = left.saturating_sub(most - steps + name.len() as u64);
        // The log says it once per call.
        let is_told = core::mem::replace(has_given_up, *has_given_up || result.is_err());
        cx.charge_bytes(name.len());
        cx.charge(usize::try_from((most - steps) / STEPS_PER_WORK).unwrap_or(usize::MAX));
        if result.is_err() && !is_told {
            let name = String::from_utf8_lossy(name);
            cx.warn(format!(
                "session {}: the name {name:?}, and maybe other names, counts as not matching {:?}: {GaveUp}",
                session.0, self.regex
            ));
        }
        let matches = result.unwrap_or(false);
        *self.last.borrow_mut() = Some((Name::clone(name), matches));
        matches
    }

    /// Unreachable, because expressions are not built in.
    #[cfg(not(feature = "regex"))]
    pub(crate) fn matches(&self, _: SessionId, _: &Name, _: &mut Context<'_>) -> bool {
        false
    }
}

#[cfg(all(test, feature = "regex"))]
mod tests {
    use super::*;

    fn pattern(text: &[u8]) -> Result<NamePattern, String> {
        NamePattern::new(text, &Quota::default())
    }

    /// Tests these names one by one, and returns the results and the work.
    fn matches(pattern: &NamePattern, names: &[Name]) -> (Vec<bool>, u64) {
        let (now, mut out) = (crate::api::Now::default(), crate::api::Outputs::default());
        let mut cx = Context { now: &now, out: &mut out, work: 0, steps_left: Vec::new() };
        let matches = names.iter().map(|name| pattern.matches(SessionId(1), name, &mut cx)).collect();
        (matches, cx.work)
    }

    fn names(texts: &[&[u8]]) -> Vec<Name> {
        texts.iter().map(|text| Name::from(*text)).collect()
    }

    #[test]
    fn whole_names_match() {
        let all = names(&[b"abc", b"b", b"bc", b"xa"]);
        assert_eq!(matches(&pattern(b"a.*|b").unwrap(), &all).0, [true, true, false, false]);
        assert!(pattern(b"a(").is_err());
        assert!(pattern(b"((a{1000}){1000}){1000}").is_err());
    }

    #[test]
    fn patterns_are_ecmascript() {
        let all = names(&[b"go\n1", b"bad1"]);
        assert_eq!(matches(&pattern(br"(?!bad)[^]*\d").unwrap(), &all).0, [true, false]);
    }

    #[test]
    fn a_name_that_comes_again_is_not_tested_again() {
        let hard = pattern(br"(a*)*b\1").unwrap();
        let name = Name::from(&[b'a'; 1000][..]);
        let (once, work) = matches(&hard, &[Name::clone(&name)]);
        assert_eq!(once, [false]);
        assert!((1..20_000).contains(&work), "{work}");
        let (again, more) = matches(&hard, &vec![name; 10_000]);
        assert_eq!((again.len(), more), (10_000, 0));
    }

    #[test]
    fn a_config_has_a_bounded_number_of_patterns() {
        let quota = Quota::default();
        assert!((0..MAX_NAME_PATTERNS).all(|_| NamePattern::new(b"a.*", &quota).is_ok()));
        assert!(NamePattern::new(b"a.*", &quota).unwrap_err().contains("more than 512"));
    }
}
