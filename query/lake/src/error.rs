//! Errors of lakes.

use std::io;
use std::path::Path;

/// An error of a lake. Errors of single traces are no errors of a lake.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation on a file or a folder failed.
    #[error("cannot {action} {path}: {source}{}", advice(source))]
    Io {
        /// The operation.
        action: &'static str,
        /// The file or folder.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// An operation on an object store failed.
    #[error("cannot {action} {path}: {}{}", brief(source), store_advice(source))]
    Store {
        /// The operation.
        action: &'static str,
        /// The URL.
        path: String,
        /// The reason.
        source: object_store::Error,
    },
    /// A file of the lake is not as it should be, or an argument does not fit the lake.
    #[error("{0}")]
    Layout(String),
    /// A file of Parquet cannot be written or read.
    #[error("cannot {action} {path}: {source}")]
    Parquet {
        /// The operation.
        action: &'static str,
        /// The file.
        path: String,
        /// The reason.
        source: parquet::errors::ParquetError,
    },
}

impl Error {
    pub(crate) fn layout(text: impl Into<String>) -> Self {
        Self::Layout(text.into())
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn parquet(
        action: &'static str,
        path: impl Into<String>,
    ) -> impl FnOnce(parquet::errors::ParquetError) -> Self {
        let path = path.into();
        move |source| match unwrap_io(source) {
            Ok(source) => Self::Io { action, path, source },
            Err(source) => Self::Parquet { action, path, source },
        }
    }
}

/// Takes the error of the file out of an error of Parquet.
fn unwrap_io(error: parquet::errors::ParquetError) -> Result<io::Error, parquet::errors::ParquetError> {
    match error {
        parquet::errors::ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => Ok(*error),
            Err(other) => Err(parquet::errors::ParquetError::External(other)),
        },
        other => Err(other),
    }
}

const CAN_REPEAT: &str = "then run the command again: it goes on where it stopped";

fn advice(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => format!("; free space there, {CAN_REPEAT}"),
        io::ErrorKind::PermissionDenied => "; run as a user who may write there, or name another folder".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "; name a folder that can be written".to_owned(),
        _ => String::new(),
    }
}

/// Returns the innermost reason, because the others only name layers of the client.
fn brief(error: &object_store::Error) -> String {
    let mut text = error.to_string();
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
        let more = inner.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
    }
    // One line: servers answer with pages.
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(LONGEST_REASON) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// Characters of a reason that are shown.
const LONGEST_REASON: usize = 600;

fn store_advice(error: &object_store::Error) -> String {
    use object_store::Error as E;
    let text = brief(error);
    let is_denied = matches!(error, E::Unauthenticated { .. } | E::PermissionDenied { .. })
        || ["403 Forbidden", "401 Unauthorized", "InvalidAccessKeyId", "SignatureDoesNotMatch"]
            .iter()
            .any(|word| text.contains(word));
    if is_denied {
        return "; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of a user who may read and write there".to_owned();
    }
    match error {
        E::NotFound { .. } => "; make the bucket, or correct its name".to_owned(),
        E::NotImplemented { .. } | E::NotSupported { .. } => "; use a folder or s3:".to_owned(),
        _ => format!("; see if the server can be reached (AWS_ENDPOINT names it), {CAN_REPEAT}"),
    }
}
