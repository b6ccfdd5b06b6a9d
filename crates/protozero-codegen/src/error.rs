//! The error of this crate.

use std::fmt;
use std::path::{Path, PathBuf};

/// An error of the generator.
///
/// `Debug` prints the same as `Display`, because cargo shows the `Debug` text of an error that a
/// build script returns.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The `.proto` files do not compile: the message begins with the file and, where known, line
    /// and column.
    #[error("{0:?}")]
    Proto(#[from] protox::Error),
    /// A `.proto` file to compile is in none of the folders.
    #[error("`{}` is in none of the folders {}", path.display(), list(includes))]
    NotFound {
        /// The file, as it was named.
        path: PathBuf,
        /// The folders that were searched.
        includes: Vec<PathBuf>,
    },
    /// The descriptors handed over are not consistent.
    #[error("bad descriptors: {0}")]
    Descriptors(#[from] prost_reflect::DescriptorError),
    /// A feature of the schema language that the generator does not support.
    #[error("{what} of `{proto}` is not supported")]
    Unsupported {
        /// The feature.
        what: &'static str,
        /// The full proto name.
        proto: String,
    },
    /// A method or a field that bindings of services cannot have.
    #[error("{place}: {what} `{name}` {why}")]
    Refused {
        /// The file, and where known line and column.
        place: String,
        /// `method` or `field`.
        what: &'static str,
        /// The full proto name.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// Two files would be written to one path.
    #[error("`{path}` would be generated twice, the second time for `{proto}`")]
    SamePath {
        /// The generated file.
        path: String,
        /// The second `.proto` file.
        proto: String,
    },
    /// A string that is no name, in descriptors that no compiler has checked.
    #[error("`{0}` is not a name")]
    Name(String),
    /// A type of an imported file is used. That file is not among the files to generate, and the
    /// code for it is not elsewhere.
    #[error(
        "`{user}` uses `{target}` of `{file}`, which is not among the files to generate: add it, switch `imports` on, or name the module of its code (`external`)"
    )]
    Imported {
        /// The field, extension or message.
        user: String,
        /// The type it uses.
        target: String,
        /// The file that declares that type.
        file: String,
    },
    /// A generated file would lie outside its folder.
    #[error("`{0}` is not a path inside a folder")]
    Outside(String),
    /// Cargo's `OUT_DIR` is not set.
    #[error("OUT_DIR is not set: this is not a build script")]
    NoOutDir,
    /// An unknown option, or an unknown value of one.
    #[error("{0}")]
    Option(String),
    /// A line of a configuration file that is no directive.
    #[error("{}:{line}: unknown directive or wrong number of words: `{text}`", path.display())]
    Directive {
        /// The configuration file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// A pattern that selects nothing, most likely a typing error.
    #[error("`{0}` matches no file and no message (written `shop/*.proto` and `.shop.Order`)")]
    UnusedPattern(String),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The input of the plugin is not a request of protoc.
    #[error("not a code generator request: {0}")]
    Request(#[from] prost::DecodeError),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn list(folders: &[PathBuf]) -> String {
    if folders.is_empty() {
        return "(there are none)".to_owned();
    }
    let folder =
        |path: &PathBuf| format!("`{}`{}", path.display(), if Path::is_dir(path) { "" } else { " (no such folder)" });
    folders.iter().map(folder).collect::<Vec<_>>().join(", ")
}
