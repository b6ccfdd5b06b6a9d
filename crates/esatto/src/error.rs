//! The error of this crate.

use core::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The reason why something could not be set up or why a session failed: a [kind](Error::kind) for
/// code and a line for people.
///
/// Cheap to clone: several callers may receive the same failure.
#[derive(Clone)]
pub struct Error {
    inner: Arc<Inner>,
}

/// The sort of failure that an [`Error`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An address does not parse.
    Address,
    /// No thread could be started.
    Thread,
    /// The service cannot be reached, went away, or the program's own policy forbids its use.
    Disconnected,
    /// This user may not use the service's socket. The text names the socket's owner and a remedy.
    Denied,
    /// The service refused the configuration or ended the session. The text gives the reason.
    Session,
    /// The service did not answer in time.
    TimedOut,
    /// The operation is not possible in this state: starting without a set-up, flushing while
    /// nothing runs, two reads at once.
    State,
    /// A callback made a call that waits, on the thread that would have to do the work.
    WouldDeadlock,
    /// A file could not be opened or written, or was removed while it was written.
    File,
    /// An environment variable has a value that is not allowed.
    Variable,
    /// The service is too old for the operation.
    Unsupported,
    /// A data source cannot be registered or described like this.
    DataSource,
}

struct Inner {
    kind: ErrorKind,
    text: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    fn new(kind: ErrorKind, text: String) -> Self {
        Self::boxed(kind, text, None)
    }

    fn caused(kind: ErrorKind, text: String, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::boxed(kind, text, Some(Box::new(source)))
    }

    #[cold]
    #[inline(never)]
    fn boxed(kind: ErrorKind, text: String, source: Option<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { inner: Arc::new(Inner { kind, text, source }) }
    }

    #[cold]
    pub(crate) fn address(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::caused(ErrorKind::Address, format!("cannot use the address of the tracing service: {error}"), error)
    }

    #[cold]
    pub(crate) fn thread(error: io::Error) -> Self {
        Self::caused(ErrorKind::Thread, format!("cannot start the control thread: {error}"), error)
    }

    #[cold]
    pub(crate) fn session(why: &str) -> Self {
        Self::new(ErrorKind::Session, format!("the tracing session failed: {why}"))
    }

    #[cold]
    pub(crate) fn disconnected(why: &str) -> Self {
        Self::new(ErrorKind::Disconnected, format!("no connection to the tracing service: {why}"))
    }

    #[cold]
    pub(crate) fn denied(why: &str) -> Self {
        Self::new(ErrorKind::Denied, why.to_owned())
    }

    #[cold]
    pub(crate) fn timed_out(what: &str) -> Self {
        Self::new(ErrorKind::TimedOut, format!("the tracing service did not {what} in time"))
    }

    #[cold]
    pub(crate) fn state(text: &str) -> Self {
        Self::new(ErrorKind::State, text.to_owned())
    }

    #[cold]
    pub(crate) fn no_backend() -> Self {
        let ways = match cfg!(feature = "in-process") {
            true => "`system()`, `in_process()` or `file_from_env()`",
            false => "`system()`",
        };
        Self::state(&format!("no backend chosen: call {ways} before `start()`"))
    }

    #[cold]
    pub(crate) fn would_deadlock() -> Self {
        let text = "cannot wait for the control thread on the control thread: use `then` or `.await` in callbacks";
        Self::new(ErrorKind::WouldDeadlock, text.to_owned())
    }

    #[cold]
    pub(crate) fn unsupported(what: &str) -> Self {
        Self::new(ErrorKind::Unsupported, format!("the tracing service cannot {what}: it is too old"))
    }

    pub(crate) fn variable(name: &str, value: &str, wanted: &str) -> Self {
        Self::new(ErrorKind::Variable, format!("{name} is '{value}', which is not {wanted}"))
    }

    #[cold]
    pub(crate) fn file(what: &str, error: io::Error) -> Self {
        Self::caused(ErrorKind::File, format!("{what}: {error}"), error)
    }

    #[cold]
    pub(crate) fn create_file(path: &Path, error: io::Error) -> Self {
        let remedy = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "; name a file that this user may write, in a folder where it may create files"
            }
            // In /proc the folder exists, but takes no files.
            io::ErrorKind::NotFound if has_folder(path) => "; name a file in a folder that takes files",
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "; create its folder first",
            io::ErrorKind::IsADirectory => "; name a file in this folder",
            _ => "",
        };
        let text = format!("cannot create {}: {error}{remedy}", path.display());
        Self::caused(ErrorKind::File, text, error)
    }

    #[cfg(feature = "in-process")]
    #[cold]
    pub(crate) fn no_trace(path: &Path) -> Self {
        let remedy = "remove it, or name another file";
        Self::new(
            ErrorKind::File,
            format!("cannot write {}: it has content that is no trace; {remedy}", path.display()),
        )
    }

    #[cold]
    pub(crate) fn lost_file(path: &Path, why: &str) -> Self {
        Self::new(ErrorKind::File, format!("lost the trace file {}: {why}", path.display()))
    }

    /// Returns the sort of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    pub(crate) fn data_source(name: &str, why: &str) -> Self {
        Self::new(ErrorKind::DataSource, format!("the data source `{name}` {why}"))
    }

    pub(crate) fn interceptor(name: &str, names: &[&str]) -> Self {
        let names = names.join("`, `");
        Self::new(
            ErrorKind::State,
            format!("cannot register the interceptor `{name}`: the name must be one of `{names}`"),
        )
    }

    pub(crate) fn startup(why: &str) -> Self {
        Self::new(ErrorKind::State, format!("startup tracing {why}"))
    }

    /// Returns true if the service could not be reached or went away.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        matches!(self.kind(), ErrorKind::Disconnected | ErrorKind::Denied)
    }

    /// Returns true if the service did not answer in time.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::TimedOut
    }
}

/// Returns whether the folder of a file exists.
fn has_folder(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.as_os_str().is_empty() || folder.is_dir())
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `main` shows this to the user when it returns the error.
        f.write_str(&self.inner.text)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.text)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn main_prints_the_text_of_an_error() {
        let error = Error::session("no space in the buffer");
        assert_eq!(format!("{error:?}"), "the tracing session failed: no space in the buffer");
        assert_eq!(format!("{error:?}"), error.to_string());
    }
}
