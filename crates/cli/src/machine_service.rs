//! Tracing service of this process for all programs of the machine, while a recording needs one.

use core::time::Duration;
use std::io;
use std::time::Instant;

use esatto_daemon::{Daemon, DaemonHandle, Error as DaemonError, Options};
use esatto_ipc::address::{Address, CONSUMER_SOCK_NAME, PRODUCER_SOCK_NAME};
use esatto_ipc::{Error as IpcError, Stream};
use esatto_probes::Probes;

use crate::console::say;
use crate::failure::Failure;
use crate::service_connection::admitting_option;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time in which a service that is starting has all of its sockets.
const SOON: Duration = Duration::from_secs(1);
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

/// Starts the service at the standard addresses, and says so. Starts none if another command has
/// become the service at the same moment.
///
/// With `own_sources`, this process offers the data sources of the machine: a `traced_probes` that
/// waits for a service would offer them a second time, so what it registers is ignored.
pub(crate) fn start(own_sources: bool) -> Result<Option<DaemonHandle>, Failure> {
    match try_start(own_sources) {
        Ok(service) => {
            say!(
                "No tracing service runs, so this command is one until it ends. Running programs connect within 30 s."
            );
            Ok(Some(service))
        }
        Err(DaemonError::Socket(IpcError::AddressInUse(_))) if is_there_soon() => {
            say!(
                "Another command has become the tracing service at this moment. If it ends, this recording ends, too."
            );
            Ok(None)
        }
        Err(why) => Err(failed(why)),
    }
}

/// Starts the service at the standard addresses, where programs look for it. Only this process may
/// offer the data sources of the machine. The service ends when the result is dropped.
pub(crate) fn start_quietly() -> Result<DaemonHandle, Failure> {
    try_start(true).map_err(failed)
}

fn try_start(own_sources: bool) -> Result<DaemonHandle, DaemonError> {
    let mut options = Options::from_environment()?;
    if own_sources {
        options.own_data_sources = Probes::data_sources();
    }
    if rustix::process::geteuid().is_root() {
        options.permissions = PERMISSIONS_OF_ROOT.parse().ok();
    }
    Daemon::bind(options).and_then(Daemon::spawn_thread)
}

fn failed(why: DaemonError) -> Failure {
    let failure = Failure::new("cannot start a tracing service", why);
    if rustix::process::geteuid().is_root() {
        return failure;
    }
    failure.hint(format!(
        "run the command as root, or ask root for a service that admits you: `sudo esatto traced --background {}`. \
         With the systemd units of docs/how-to/fleet-service.md it admits the group perfetto",
        admitting_option()
    ))
}

/// Waits a moment until a service listens. It makes its socket for consumers after that for
/// producers.
fn is_there_soon() -> bool {
    let deadline = Instant::now() + SOON;
    loop {
        if Address::consumer_default().is_ok_and(|address| !is_missing(&address)) {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(SOON / 100);
    }
}
