//! [`Check`]: a property of the machine, and what to do about it.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing is wrong.
    Ready,
    /// Worth knowing. Recording works without the remedy.
    Note,
    /// Something does not work.
    Missing,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ready => "ok",
            Self::Note => "note",
            Self::Missing => "missing",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Check {
    /// Name for scripts.
    pub(super) id: &'static str,
    pub(super) state: State,
    /// The property, and the reason if something is wrong.
    pub(super) text: String,
    /// Often a command in backquotes.
    pub(super) remedy: Option<String>,
}

impl Check {
    pub(super) fn ready(id: &'static str, text: impl Into<String>) -> Self {
        Self { id, state: State::Ready, text: text.into(), remedy: None }
    }

    pub(super) fn note(id: &'static str, text: impl Into<String>) -> Self {
        Self { state: State::Note, ..Self::ready(id, text) }
    }

    pub(super) fn missing(id: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { state: State::Missing, ..Self::ready(id, text) }.remedy(remedy)
    }

    pub(super) fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
}
