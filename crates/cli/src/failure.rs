//! What a command says when it cannot go on: one line with what failed, why, and what to do.

use core::fmt;

/// The end of a command that did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    why: String,
    hint: Option<String>,
}

impl Failure {
    /// `what` was attempted, `why` it failed.
    pub(crate) fn new(what: impl Into<String>, why: impl fmt::Display) -> Self {
        Self { what: what.into(), why: why.to_string(), hint: None }
    }

    /// Adds what the user can do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// Adds to an error what was attempted when it happened.
pub(crate) trait Attempt<T> {
    /// Names what was attempted; the closure runs only on failure.
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> Attempt<T> for Result<T, E> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|why| Failure::new(what(), why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_of_what_why_and_what_to_do() {
        let failed: Result<(), _> = Err("no such file");
        let failure = failed.attempt(|| "cannot open x".to_owned()).unwrap_err().hint("create it first");
        assert_eq!(failure.to_string(), "cannot open x: no such file; create it first");
    }
}
