//! Tracing service of this process for all programs of the machine, while a recording needs one.

use core::time::Duration;
use std::io;

use esatto_daemon::{Daemon, DaemonHandle, Options};
use esatto_ipc::address::{Address, CONSUMER_SOCK_NAME, PRODUCER_SOCK_NAME};
use esatto_ipc::{Error as IpcError, Stream};

use crate::console::say;
use crate::failure::{Attempt as _, Failure};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// As the unit of systemd has it: programs of all users may be recorded, root records.
const PERMISSIONS_OF_ROOT: &str = "0:0666:0:0600";

/// Returns whether no service listens at the standard addresses. If the user names another address
/// in the environment, a service is expected there.
pub(crate) fn is_needed() -> bool {
    !is_named() && Address::consumer_default().is_ok_and(|address| is_missing(&address))
}

/// Returns whether the user names an address in the environment.
pub(crate) fn is_named() -> bool {
    [PRODUCER_SOCK_NAME, CONSUMER_SOCK_NAME].into_iter().any(|name| std::env::var_os(name).is_some())
}

/// Returns whether no service listens at the address.
pub(crate) fn is_missing(address: &Address) -> bool {
    match Stream::connect(address, CONNECT_TIMEOUT) {
        Err(IpcError::Socket { source, .. }) => {
            matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
        }
        _ => false,
    }
}

/// Starts the service at the standard addresses, and says so.
pub(crate) fn start() -> Result<DaemonHandle, Failure> {
    let service = start_quietly()?;
    say!("No tracing service runs, so this command is one until it ends. Running programs connect within 30 s.");
    Ok(service)
}

/// Starts the service at the standard addresses, where programs look for it. It ends when the
/// result is dropped.
pub(crate) fn start_quietly() -> Result<DaemonHandle, Failure> {
    let what = || "cannot start a tracing service".to_owned();
    let mut options = Options::from_environment().attempt(what)?;
    if rustix::process::geteuid().is_root() {
        options.permissions = PERMISSIONS_OF_ROOT.parse().ok();
    }
    Daemon::bind(options).and_then(Daemon::spawn_thread).map_err(|why| {
        Failure::new(what(), why)
            .hint("run the command as root, or ask for a service: `sudo esatto traced --background`")
    })
}
