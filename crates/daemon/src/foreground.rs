//! `traced`: the daemon as a program, until SIGTERM or SIGINT.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::thread;

use log::LevelFilter;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::daemon::Daemon;
use crate::error::Error;
use crate::options::Options;
use crate::permissions::SocketPermissions;
use crate::stderr_log;

/// Serves on the standard sockets, or those of the environment, and logs to stderr, until a signal asks for the end.
///
/// `verbosity` 0 logs the life of sessions and what goes wrong, 1 connections too, 2 every call. If
/// `TRACED_NOTIFY_FD` names a descriptor, it gets one byte `1` as soon as clients can connect.
///
/// # Errors
///
/// If the sockets cannot be made.
pub fn foreground(verbosity: u8, permissions: Option<SocketPermissions>) -> Result<(), Error> {
    stderr_log::init(match verbosity {
        0 => LevelFilter::Info,
        1 => LevelFilter::Debug,
        _ => LevelFilter::Trace,
    });
    let options = Options { permissions, ..Options::from_environment()? };
    let producers = options.producers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let consumer = options.consumer.to_string();
    let daemon = Daemon::bind(options)?;
    stop_on_signals(&daemon)?;
    log::info!("Started traced, listening on {producers} {consumer}");
    notify_readiness();
    daemon.run()?;
    log::info!("Stopped");
    Ok(())
}

/// Lets SIGTERM and SIGINT end the daemon. A handler may do next to nothing, so it writes into a pipe.
fn stop_on_signals(daemon: &Daemon) -> Result<(), Error> {
    let failed = || Error::system("handle signals");
    let (mut read_end, write_end) = UnixStream::pair().map_err(failed())?;
    for signal in [SIGTERM, SIGINT] {
        let pipe = write_end.try_clone().map_err(failed())?;
        signal_hook::low_level::pipe::register(signal, pipe).map_err(failed())?;
    }
    let stopper = daemon.stopper();
    let wait = move || {
        let mut byte = [0];
        if std::io::Read::read_exact(&mut read_end, &mut byte).is_ok() {
            stopper.stop();
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(failed())?;
    Ok(())
}

/// Tells whoever started us that clients can connect.
fn notify_readiness() {
    let Some(fd) = std::env::var("TRACED_NOTIFY_FD").ok().and_then(|text| text.parse::<u32>().ok()) else { return };
    // A descriptor number in a variable cannot be taken over safely; the same file opened anew can.
    let opened = File::options().write(true).open(format!("/proc/self/fd/{fd}"));
    if let Err(e) = opened.and_then(|mut file| file.write_all(b"1")) {
        log::warn!("cannot write to TRACED_NOTIFY_FD {fd}: {e}");
    }
}
