//! States of a session (`docs/spec/service.md §4`).

/// Where a session is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Disabled,
    Configured,
    Started,
    WaitingForStop,
    /// A snapshot of another session.
    Cloned,
}

impl State {
    /// The name in queries.
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
