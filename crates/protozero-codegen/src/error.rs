use std::path::PathBuf;

/// Why no code could be generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The `.proto` files do not compile.
    #[error("{0}")]
    Proto(#[from] protox::Error),
    /// The descriptors handed over are not consistent.
    #[error("bad descriptors: {0}")]
    Descriptors(#[from] prost_reflect::DescriptorError),
    /// Two things would get the same Rust name.
    #[error("`{name}` would be generated twice in `{scope}`, the second time for `{proto}`")]
    Collision {
        /// The Rust name.
        name: String,
        /// The proto scope whose Rust module would hold both.
        scope: String,
        /// The full proto name of the second one.
        proto: String,
    },
    /// A feature of the schema language that has no counterpart.
    #[error("{what} of `{proto}` is not supported")]
    Unsupported {
        /// What is not supported.
        what: &'static str,
        /// The full proto name.
        proto: String,
    },
    /// An owned type that is always there would need one behind a feature.
    #[error("owned type `{owner}` needs `{target}`, which is behind a feature")]
    OwnedBehindFeature {
        /// The message.
        owner: String,
        /// The type of one of its fields.
        target: String,
    },
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
    #[error("`{0}` matches no file and no message")]
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
