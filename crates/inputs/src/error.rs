//! Errors of inputs.

use std::io;

/// Reason for which files cannot be read as a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be opened or read.
    #[error("cannot read the trace {name}: {source}")]
    Io {
        /// Its name.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A file is of a kind that is no trace, or breaks the rules of its kind.
    #[error("cannot read {name}: {why}")]
    Unusable {
        /// Its name.
        name: String,
        /// The reason.
        why: String,
    },
    /// A manifest breaks a rule.
    #[error("perfetto_manifest: {0}")]
    Manifest(String),
}

impl Error {
    pub(crate) fn io(name: &str) -> impl FnOnce(io::Error) -> Self {
        let name = name.to_owned();
        |source| Self::Io { name, source }
    }

    pub(crate) fn unusable(name: &str, why: impl Into<String>) -> Self {
        Self::Unusable { name: name.to_owned(), why: why.into() }
    }
}
