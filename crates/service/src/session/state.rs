//! States of a session (`docs/spec/service.md §4`).

/// State of a session, as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Disabled,
    Configured,
    Started,
    WaitingForStop,
    /// A clone of another session. It records nothing.
    Cloned,
}

impl State {
    /// Returns the name that queries show.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Disabled => "DISABLED",
            Self::Configured => "CONFIGURED",
            Self::Started => "STARTED",
            Self::WaitingForStop => "STOP_WAIT",
            Self::Cloned => "CLONED_READ_ONLY",
        }
    }
}
