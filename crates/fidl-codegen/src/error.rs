//! The error of this crate.

use std::fmt;
use std::path::PathBuf;

/// Error of the compiler or the generator.
///
/// `Debug` prints the same as `Display`, because cargo shows the `Debug` text of an error that a
/// build script returns.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Something in a `.fidl` file is wrong, or is outside the supported part of the language; or a
    /// file of Fuchsia's compiler is not the expected JSON.
    #[error("{file}:{line}:{column}: {message}")]
    Fidl {
        /// The file, as it was named.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The mistake, and what was expected.
        message: String,
    },
    /// A file of Fuchsia's compiler (JSON IR) is not as expected.
    #[error("{file}: {message}")]
    Ir {
        /// The file, as it was named.
        file: String,
        /// The mistake.
        message: String,
    },
    /// A library that a file uses is not among the files.
    #[error("{file}:{line}:{column}: library `{library}` is not among the files; known are {}", known.join(", "))]
    UnknownLibrary {
        /// The file, as it was named.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The missing library.
        library: String,
        /// The libraries that exist.
        known: Vec<String>,
    },
    /// Code for a library is wanted that no file declares.
    #[error("no file declares the library `{library}`; declared are {}", known.join(", "))]
    NoLibrary {
        /// The library.
        library: String,
        /// The libraries that exist.
        known: Vec<String>,
    },
    /// Two names of a schema become one name in Rust.
    #[error("`{first}` and `{second}` would both be `{rust}` in Rust")]
    Names {
        /// The one.
        first: String,
        /// The other.
        second: String,
        /// The name in Rust.
        rust: String,
    },
    /// No file was named.
    #[error("no .fidl file and no file of Fuchsia's compiler is named")]
    NoFiles,
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// Cargo's `OUT_DIR` is not set.
    #[error("OUT_DIR is not set: this is not a build script")]
    NoOutDir,
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
