//! Steps that `traced` and `traced_relay` share: log, limits, signals, readiness.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use esatto_ipc::sys;
use log::LevelFilter;
use rustix::process::{Resource, Rlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

use crate::error::Error;
use crate::shared_secret::SharedSecret;
use crate::stderr_log;

/// Prints a text that the user asked for.
pub(crate) fn print(text: &str) -> Result<ExitCode, String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(e) => Err(format!("cannot write to stdout: {e}")),
    }
}

/// Level of the log, as the command line chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verbosity(pub(crate) LevelFilter);

impl Default for Verbosity {
    fn default() -> Self {
        Self(LevelFilter::Info)
    }
}

impl Verbosity {
    /// Logs more: the meaning of `-v`.
    pub(crate) fn raise(&mut self) {
        self.0 = if self.0 < LevelFilter::Debug { LevelFilter::Debug } else { LevelFilter::Trace };
    }

    /// Parses the value of `--log-level`.
    ///
    /// # Errors
    ///
    /// A line that names the value and the possible ones.
    pub(crate) fn parse(level: &str) -> Result<Self, String> {
        let level = match level {
            "error" => LevelFilter::Error,
            "warn" => LevelFilter::Warn,
            "info" => LevelFilter::Info,
            "debug" => LevelFilter::Debug,
            other => return Err(format!("cannot use --log-level {other:?}: it must be error, warn, info or debug")),
        };
        Ok(Self(level))
    }

    /// Starts to log to stderr.
    pub(crate) fn start_log(self) {
        stderr_log::init(self.0);
    }
}

/// Raises the limit of descriptors as far as allowed. A connection takes two or three. The usual
/// limit is low because of programs that use `select`.
pub(crate) fn raise_descriptor_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(e) = rustix::process::setrlimit(Resource::Nofile, raised) {
        log::debug!("cannot raise the limit of descriptors: {e}");
    }
}

/// Ignores SIGHUP, which the end of a terminal or of an ssh connection sends: there is no log file
/// to open again, because the log goes to stderr. Ignores SIGXFSZ too, so that a write beyond the
/// limit of the size of files fails as on a full disk.
pub(crate) fn ignore_signals() -> Result<(), Error> {
    for signal in [SIGHUP, SIGXFSZ] {
        signal_hook::flag::register(signal, Arc::default()).map_err(Error::system("handle signals"))?;
    }
    Ok(())
}

/// Returns a descriptor that gets a byte with each SIGTERM and SIGINT. A signal handler may do very
/// little, so it writes into a socket that the loop watches.
pub(crate) fn stop_signal() -> Result<OwnedFd, Error> {
    let failed = || Error::system("handle signals");
    let (read_end, write_end) = UnixStream::pair().map_err(failed())?;
    for signal in [SIGTERM, SIGINT] {
        let pipe = write_end.try_clone().map_err(failed())?;
        signal_hook::low_level::pipe::register(signal, pipe).map_err(failed())?;
    }
    Ok(read_end.into())
}

/// Reads the secret of `--secret-file`.
pub(crate) fn read_secret(file: Option<&Path>) -> Result<Option<SharedSecret>, Error> {
    let Some(path) = file else { return Ok(None) };
    let failed = |source| Error::Secret { path: path.display().to_string(), source };
    SharedSecret::read(path).map(Some).map_err(failed)
}

/// Tells the process that started this one that clients can connect.
pub(crate) fn notify_readiness(variable: &str) {
    let Some(text) = std::env::var_os(variable) else { return };
    let number = text.to_str().and_then(|text| text.parse().ok()).unwrap_or(-1);
    if let Err(e) = sys::inherited(number).and_then(|fd| File::from(fd).write_all(b"1")) {
        log::warn!("cannot write to {variable} {}: {e}", text.to_string_lossy());
    }
}
