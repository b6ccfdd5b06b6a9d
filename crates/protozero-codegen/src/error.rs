use std::fmt;
use std::path::{Path, PathBuf};

/// Why no code could be generated.
///
/// `Debug` prints the same as `Display`, because that is what a build script shows of the error that its `main` returns.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The `.proto` files do not compile: the message begins with the file and, where known, line and column.
    #[error("{0:?}")]
    Proto(#[from] protox::Error),
    /// A `.proto` file to be compiled is in none of the folders.
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
    /// A feature of the schema language that has no counterpart.
    #[error("{what} of `{proto}` is not supported")]
    Unsupported {
        /// What is not supported.
        what: &'static str,
        /// The full proto name.
        proto: String,
    },
    /// Two files would be written to one path.
    #[error("`{path}` would be generated twice, the second time for `{proto}`")]
    SamePath {
        /// The generated file.
        path: String,
        /// The second `.proto` file.
        proto: String,
    },
    /// A name that is not one, in descriptors that no compiler has checked.
    #[error("`{0}` is not a name")]
    Name(String),
    /// A type of an imported file is used, and neither is that file to be generated nor was it elsewhere.
    #[error(
        "`{user}` uses `{target}` of `{file}`, which is not among the files to generate: add it, switch `imports` on, or tell where its code is (`external`)"
    )]
    Imported {
        /// The field, extension or message.
        user: String,
        /// The type it uses.
        target: String,
        /// The file that declares that type.
        file: String,
    },
    /// A generated file would lie outside of its folder.
    #[error("`{0}` is not a path inside of a folder")]
    Outside(String),
    /// Cargo's `OUT_DIR` is not set.
    #[error("OUT_DIR is not set: this is not a build script")]
    NoOutDir,
    /// An option that is not known, or its value is not.
    #[error("{0}")]
    Option(String),
    /// A line of a configuration file that means nothing.
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
        /// What went wrong.
        source: std::io::Error,
    },
    /// What protoc sent is not a request for a plugin.
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
