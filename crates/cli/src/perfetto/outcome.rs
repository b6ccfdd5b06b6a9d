//! The end of a run, and the exit code for it (`docs/spec/cli.md` §15).

use std::process::ExitCode;

use super::log_line::log_line;

/// Environment variable that brings back the exit codes of Perfetto's own command, which is 0 for
/// refused sessions, failed clones and traces that could not be written.
pub(crate) const ODDITIES: &str = "ESATTO_PERFETTO_ODDITIES";

/// The end of a run. A message has been written before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// The service refused the session or the clone, or the trace is not complete. Perfetto's
    /// command calls this a success.
    Refused,
    Failed,
    /// There is no such detached session.
    NotFound,
}

impl Outcome {
    /// The exit code, with or without the oddities of Perfetto's command.
    pub(crate) const fn code(self, with_oddities: bool) -> u8 {
        match self {
            Self::Done => 0,
            Self::Refused if with_oddities => 0,
            Self::Refused | Self::Failed => 1,
            Self::NotFound => 2,
        }
    }

    pub(crate) fn exit_code(self) -> ExitCode {
        self.code(oddities_are_wanted()).into()
    }

    pub(crate) fn is_success(self) -> bool {
        self.code(oddities_are_wanted()) == 0
    }
}

/// Says why the command fails.
pub(crate) fn failed(why: impl core::fmt::Display) -> Outcome {
    log_line!("{why}");
    Outcome::Failed
}

/// Returns whether the environment asks for the oddities of Perfetto's command.
pub(crate) fn oddities_are_wanted() -> bool {
    std::env::var_os(ODDITIES).is_some_and(|value| !value.is_empty() && value != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_depends_on_the_oddities() {
        for (outcome, ours, theirs) in
            [(Outcome::Done, 0, 0), (Outcome::Refused, 1, 0), (Outcome::Failed, 1, 1), (Outcome::NotFound, 2, 2)]
        {
            assert_eq!((outcome.code(false), outcome.code(true)), (ours, theirs), "{outcome:?}");
        }
    }
}
