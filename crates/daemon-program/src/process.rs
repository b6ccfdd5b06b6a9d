//! Steps that the daemons share: output, limits, signals, readiness.

use std::fs::File;
use std::io;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;

use esatto_ipc::sys;
use rustix::process::{Resource, Rlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

/// Prints a text that the user asked for.
///
/// # Errors
///
/// A line that says why stdout does not take it.
pub(crate) fn print(text: &str) -> Result<ExitCode, String> {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(e) => Err(format!("cannot write to stdout: {e}")),
    }
}

/// Raises the limit of descriptors as far as allowed. A connection takes two or three. The usual
/// limit is low because of programs that use `select`.
pub fn raise_descriptor_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(e) = rustix::process::setrlimit(Resource::Nofile, raised) {
        log::debug!("cannot raise the limit of descriptors: {e}");
    }
}

/// Handles the signals of a daemon. Returns a descriptor that gets a byte with each SIGTERM and
/// SIGINT.
///
/// SIGHUP is ignored, which the end of a terminal or of an ssh connection sends: there is no log
/// file to open again, because the log goes to stderr. SIGXFSZ is ignored, so that a write beyond
/// the limit of the size of files fails as on a full disk.
///
/// # Errors
///
/// If signals cannot be handled.
pub fn stop_signal() -> io::Result<OwnedFd> {
    for signal in [SIGHUP, SIGXFSZ] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    // A signal handler may do very little, so it writes into a socket that the loop watches.
    let (read_end, write_end) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT] {
        let pipe = write_end.try_clone()?;
        signal_hook::low_level::pipe::register(signal, pipe)?;
    }
    Ok(read_end.into())
}

/// Tells the process that started this one, by the descriptor that `variable` names, that this one
/// is ready.
pub fn notify_readiness(variable: &str) {
    let Some(text) = std::env::var_os(variable) else { return };
    let number = text.to_str().and_then(|text| text.parse().ok()).unwrap_or(-1);
    if let Err(e) = sys::inherited(number).and_then(|fd| File::from(fd).write_all(b"1")) {
        log::warn!("cannot write to {variable} {}: {e}", text.to_string_lossy());
    }
}
