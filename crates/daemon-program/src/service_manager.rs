//! Messages to the service manager: the protocol of sd_notify(3), one datagram per message.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The service manager that started this program, if it expects messages.
#[derive(Debug, Default)]
pub struct ServiceManager {
    socket: Option<UnixDatagram>,
    /// Longest time between two signs of life that the manager accepts.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// Connects to the manager that `NOTIFY_SOCKET` names, and reads its watchdog from
    /// `WATCHDOG_USEC`.
    pub fn from_environment() -> Self {
        let Some(name) = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else { return Self::default() };
        let socket = match connect(name.as_bytes()) {
            Ok(socket) => Some(socket),
            Err(e) => {
                log::warn!("cannot reach the service manager at {}: {e}", name.to_string_lossy());
                None
            }
        };
        let variable = |name: &str| env::var(name).ok();
        Self { watchdog: watchdog(variable, std::process::id()).filter(|_| socket.is_some()), socket }
    }

    /// Reports that the program is ready.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}"));
    }

    /// Sends a status line for the user.
    pub fn status(&self, status: &str) {
        self.send(&format!("STATUS={status}"));
    }

    /// Reports that the daemon has begun to end, with a status line for the user.
    pub fn stopping(&self, status: &str) {
        self.send(&format!("STOPPING=1\nSTATUS={status}"));
    }

    /// Reports that the event loop is alive.
    pub fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    /// Returns how often to call [`alive`](Self::alive): twice as often as the manager requires.
    pub fn alive_every(&self) -> Option<Duration> {
        self.watchdog.map(|interval| interval / 2)
    }

    /// Returns whether the manager expects messages.
    pub fn listens(&self) -> bool {
        self.socket.is_some()
    }

    fn send(&self, message: &str) {
        let Some(socket) = &self.socket else { return };
        // The send never blocks: a manager that does not read must not delay the tracing service.
        if let Err(e) = socket.send(message.as_bytes()) {
            log::debug!("cannot send {message:?} to the service manager: {e}");
        }
    }
}

/// Connects to a socket. `@name` is abstract, as in our own addresses.
fn connect(name: &[u8]) -> io::Result<UnixDatagram> {
    let address = match name.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect_addr(&address)?;
    Ok(socket)
}

/// Returns the watchdog interval. Without `WATCHDOG_PID` it applies to every process of the
/// service.
fn watchdog(variable: impl Fn(&str) -> Option<String>, pid: u32) -> Option<Duration> {
    if variable("WATCHDOG_PID").is_some_and(|text| text.parse() != Ok(pid)) {
        return None;
    }
    let interval_us = variable("WATCHDOG_USEC")?.parse().ok().filter(|&us| us > 0)?;
    Some(Duration::from_micros(interval_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdog_is_for_the_process_it_names() {
        let ask = |variables: &[(&str, &str)]| {
            watchdog(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()), 42)
        };
        let two_seconds = ("WATCHDOG_USEC", "2000000");
        assert_eq!(ask(&[two_seconds]), Some(Duration::from_secs(2)));
        assert_eq!(ask(&[two_seconds, ("WATCHDOG_PID", "42")]), Some(Duration::from_secs(2)));
        assert_eq!(ask(&[two_seconds, ("WATCHDOG_PID", "41")]), None);
        assert_eq!(ask(&[("WATCHDOG_USEC", "0")]), None);
        assert_eq!(ask(&[("WATCHDOG_USEC", "soon")]), None);
        assert_eq!(ask(&[]), None);
    }

    #[test]
    fn an_abstract_socket_is_found() {
        let name = format!("esatto-manager-{}", std::process::id());
        let receiver = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let manager = ServiceManager { socket: Some(connect(format!("@{name}").as_bytes()).unwrap()), watchdog: None };
        manager.ready("Fine");
        let mut message = [0; 100];
        let len = receiver.recv(&mut message).unwrap();
        assert_eq!(&message[..len], b"READY=1\nSTATUS=Fine");
    }
}
