//! Errors of this crate.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// An error, with what failed and the value that was wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server cannot listen.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where it tried to.
        address: SocketAddr,
        /// Why it cannot.
        source: io::Error,
    },
    /// The server cannot go on.
    #[error("cannot wait for connections: {0}")]
    Wait(io::Error),
    /// A file or a folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why it cannot be read.
        source: io::Error,
    },
    /// A file or a folder is not a copy of Perfetto's UI.
    #[error("{} is not a copy of Perfetto's UI: {why}", path.display())]
    NotTheUi {
        /// The file or folder.
        path: PathBuf,
        /// The part that it lacks.
        why: String,
    },
    /// The system has no random bytes.
    #[error("cannot get random bytes: {0}")]
    Random(io::Error),
    /// An origin is not one that a browser sends.
    #[error("'{0}' is not an origin such as https://ui.example.com")]
    Origin(String),
}
