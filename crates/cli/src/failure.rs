//! Error of a command: one line with what failed, why, and what to do.

use core::fmt;

use esatto_trace::escape::{Line, Lines};

/// A failure of a command.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    why: String,
    /// `why` has several lines. They begin on a line of their own.
    is_list: bool,
    hint: Option<String>,
}

impl Failure {
    /// `what` names the attempted action, `why` the reason of the failure.
    pub(crate) fn new(what: impl Into<String>, why: impl fmt::Display) -> Self {
        let why = why.to_string();
        Self { what: what.into(), is_list: false, hint: limit_advice(&why).map(str::to_owned), why }
    }

    /// Like [`new`](Self::new), for a reason of several lines.
    pub(crate) fn list(what: impl Into<String>, why: impl fmt::Display) -> Self {
        Self { is_list: true, ..Self::new(what, why) }
    }

    /// Returns what failed and why, and the advice.
    pub(crate) fn into_parts(mut self) -> (String, Option<String>) {
        let hint = self.hint.take();
        (self.to_string(), hint)
    }

    /// Adds advice for the user.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Any part may contain text from a service, a file or a file name.
        if self.is_list {
            write!(f, "{}:\n{}", Line(&self.what), Lines(&self.why))?;
        } else {
            write!(f, "{}: {}", Line(&self.what), Line(&self.why))?;
        }
        match &self.hint {
            Some(hint) => write!(f, "; {}", Line(hint)),
            None => Ok(()),
        }
    }
}

/// Returns advice about an error whose reason is a limit of the shell.
pub(crate) fn limit_advice(why: &str) -> Option<&'static str> {
    // Errors of other processes come as texts.
    if why.contains("(os error 24)") {
        Some("raise the limit of open files: `ulimit -n 1024`")
    } else if why.contains("(os error 27)") {
        Some("raise the limit of the size of files, which holds for shared memory too: `ulimit -f unlimited`")
    } else {
        None
    }
}

/// Adds the attempted action to an error.
pub(crate) trait Attempt<T> {
    /// Names the attempted action. The closure runs only after an error.
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
    fn a_failure_is_one_line_with_its_reason_and_advice() {
        let failed: Result<(), _> = Err("no such file");
        let failure = failed.attempt(|| "cannot open x".to_owned()).unwrap_err().hint("create it first");
        assert_eq!(failure.to_string(), "cannot open x: no such file; create it first");
    }

    #[test]
    fn limits_of_the_shell_come_with_advice() {
        let failed = |code| Failure::new("cannot open x", std::io::Error::from_raw_os_error(code)).to_string();
        assert!(failed(24).ends_with("(os error 24); raise the limit of open files: `ulimit -n 1024`"));
        assert!(failed(27).ends_with("`ulimit -f unlimited`") && failed(2).ends_with("(os error 2)"));
    }

    #[test]
    fn nothing_in_a_failure_acts_on_the_terminal() {
        let failure = Failure::new("cannot\u{1b}[2J", "no\nesatto: all is well\u{202e}").hint("\u{9b}31m");
        let shown = r"cannot\u{1b}[2J: no\nesatto: all is well\u{202e}; \u{9b}31m";
        assert_eq!(failure.to_string(), shown);
        assert_eq!(Failure::list("x", "1\r\n2").to_string(), "x:\n1\\r\n2");
    }
}
