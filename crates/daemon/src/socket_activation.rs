//! Listening sockets that a service manager created before it started this program.
//!
//! The manager is systemd (`LISTEN_FDS`, see sd_listen_fds(3)) or Android's init
//! (`ANDROID_SOCKET_traced_…`, `docs/spec/cli.md` §2). An inherited socket replaces the one that
//! this program would create for the same purpose. The manager owns the socket files: this program
//! does not remove them or change their group or mode.

use std::env;
use std::fmt;
use std::os::fd::{OwnedFd, RawFd};

use esatto_ipc::{Address, Listener, address, sys};

use crate::error::Error;
use crate::options::Options;
use crate::socket_role::Role;

/// Number of the first descriptor that systemd passes.
const FIRST_FD: RawFd = 3;
/// Largest plausible number of sockets; a larger one is a mistake.
const MAX_SOCKETS: RawFd = 64;
/// Variable of Android's init with the number of the producer socket.
const ANDROID_PRODUCER: &str = "ANDROID_SOCKET_traced_producer";

/// Listening sockets that were inherited.
#[derive(Debug, Default)]
pub(crate) struct Inherited {
    pub(crate) producers: Vec<Listener>,
    pub(crate) consumer: Option<Listener>,
}

/// A descriptor that the environment announces.
#[derive(Debug, PartialEq, Eq)]
struct Announced {
    number: RawFd,
    /// Name of the descriptor in `LISTEN_FDNAMES`.
    name: String,
    /// Purpose of the socket, if the variable states it.
    role: Option<Role>,
}

impl Inherited {
    /// Takes the sockets that the environment names, and removes the addresses that they replace
    /// from `options`.
    ///
    /// # Errors
    ///
    /// [`Error::Inherited`] if a descriptor is missing, is no listening socket, or has no clear
    /// purpose.
    pub(crate) fn from_environment(options: &mut Options) -> Result<Self, Error> {
        let mut inherited = Self::default();
        for announced in announced(|name| env::var(name).ok(), std::process::id())? {
            let fd = announced.take()?;
            inherited.add(&announced, fd, options).map_err(|reason| announced.unusable(reason))?;
        }
        inherited.replace(options, |variable| env::var_os(variable).is_some())?;
        Ok(inherited)
    }

    fn add(&mut self, announced: &Announced, fd: OwnedFd, options: &Options) -> Result<(), String> {
        let listener = Listener::from_fd(fd).map_err(|e| e.to_string())?;
        let address = listener.address();
        let role =
            announced.role.or_else(|| role_of_name(&announced.name)).or_else(|| role_of_address(address, options));
        match role {
            Some(Role::Producer) => self.producers.push(listener),
            Some(Role::Consumer) if self.consumer.is_none() => self.consumer = Some(listener),
            Some(Role::Consumer) => return Err("there is another consumer socket already".to_owned()),
            None => {
                return Err(format!(
                    "it listens on {address}, which is neither the producer nor the consumer address; \
                     name it with FileDescriptorName=producer or consumer"
                ));
            }
        }
        Ok(())
    }

    /// Removes the addresses that inherited sockets replace. Addresses that an environment variable
    /// names stay: their sockets are created in addition.
    fn replace(&self, options: &mut Options, is_set: impl Fn(&str) -> bool) -> Result<(), Error> {
        if !self.producers.is_empty() {
            let named = is_set(address::PRODUCER_SOCK_NAME);
            let missing = |wanted: &Address| self.producers.iter().all(|listener| listener.address() != wanted);
            options.producers.retain(|wanted| named && missing(wanted));
        }
        if let Some(consumer) = &self.consumer {
            if is_set(address::CONSUMER_SOCK_NAME) && options.consumer != *consumer.address() {
                return Err(Error::Inherited {
                    what: format!("the consumer socket {}", consumer.address()),
                    reason: format!("{} names another, {}", address::CONSUMER_SOCK_NAME, options.consumer),
                });
            }
            options.consumer = consumer.address().clone();
        }
        Ok(())
    }
}

/// Takes the socket of a relay that the environment names.
///
/// # Errors
///
/// [`Error::Inherited`] if the descriptor is missing, is no listening socket, is not the only one,
/// or if `PERFETTO_PRODUCER_SOCK_NAME` names another address.
pub(crate) fn relay_listener() -> Result<Option<Listener>, Error> {
    let mut announced = announced_to_relay(|name| env::var(name).ok(), std::process::id())?.into_iter();
    let Some(first) = announced.next() else { return Ok(None) };
    if let Some(second) = announced.next() {
        return Err(second.unusable("a relay has one socket, that of producers".to_owned()));
    }
    let listener = Listener::from_fd(first.take()?).map_err(|e| first.unusable(e.to_string()))?;
    if env::var_os(address::PRODUCER_SOCK_NAME).is_some() {
        let named = Address::producer_default()?;
        if named != *listener.address() {
            let reason = format!("it listens on {}, but PERFETTO_PRODUCER_SOCK_NAME is {named}", listener.address());
            return Err(first.unusable(reason));
        }
    }
    Ok(Some(listener))
}

impl Announced {
    fn take(&self) -> Result<OwnedFd, Error> {
        sys::inherited(self.number).map_err(|e| self.unusable(e.to_string()))
    }

    fn unusable(&self, reason: String) -> Error {
        Error::Inherited { what: self.to_string(), reason }
    }
}

impl fmt::Display for Announced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "descriptor {}", self.number)?;
        if self.name.is_empty() { Ok(()) } else { write!(f, " ({})", self.name) }
    }
}

/// Returns the descriptors that systemd announces to process `pid`.
fn announced_by_systemd(variable: impl Fn(&str) -> Option<String>, pid: u32) -> Result<Vec<Announced>, Error> {
    let mut found = Vec::new();
    // If the variables name another process, it forgot to remove them: ignore them.
    if variable("LISTEN_PID").is_some_and(|text| text.parse() == Ok(pid)) {
        if let Some(count) = variable("LISTEN_FDS") {
            let count = count.parse().ok().filter(|count| (0..=MAX_SOCKETS).contains(count));
            let count = count.ok_or_else(|| bad("LISTEN_FDS", "it is not a number from 0 to 64"))?;
            let names = variable("LISTEN_FDNAMES").unwrap_or_default();
            let mut names = names.split(':');
            found.extend((FIRST_FD..FIRST_FD + count).map(|number| {
                let name = names.next().unwrap_or_default().to_owned();
                Announced { number, name, role: None }
            }));
        }
    }
    Ok(found)
}

/// Tells whether a service manager passes sockets to this process.
pub(crate) fn is_announced() -> bool {
    let found = announced(|name| env::var(name).ok(), std::process::id());
    found.is_ok_and(|found| found.iter().any(|one| one.role.is_none()))
}

/// Returns the descriptors that the environment of the relay `pid` announces to it.
fn announced_to_relay(variable: impl Fn(&str) -> Option<String>, pid: u32) -> Result<Vec<Announced>, Error> {
    let mut found = announced_by_systemd(&variable, pid)?;
    if let Some(value) = variable(ANDROID_PRODUCER) {
        found.push(announced_by_init(ANDROID_PRODUCER, Role::Producer, &value)?);
    }
    Ok(found)
}

fn announced_by_init(name: &str, role: Role, value: &str) -> Result<Announced, Error> {
    let number = value.parse().map_err(|_| bad(name, "it is not the number of a descriptor"))?;
    Ok(Announced { number, name: name.to_owned(), role: Some(role) })
}

fn bad(what: &str, reason: &str) -> Error {
    Error::Inherited { what: what.to_owned(), reason: reason.to_owned() }
}

/// Returns the descriptors that the environment of the service `pid` announces to it.
fn announced(variable: impl Fn(&str) -> Option<String>, pid: u32) -> Result<Vec<Announced>, Error> {
    let mut found = announced_by_systemd(&variable, pid)?;
    let android = [(ANDROID_PRODUCER, Role::Producer), ("ANDROID_SOCKET_traced_consumer", Role::Consumer)];
    let set = android.map(|(name, role)| (name, role, variable(name)));
    match set.iter().filter(|(_, _, value)| value.is_some()).count() {
        0 => {}
        1 => return Err(bad("ANDROID_SOCKET_traced_…", "one of the two sockets is missing")),
        _ => {
            for (name, role, value) in set {
                found.push(announced_by_init(name, role, &value.unwrap_or_default())?);
            }
        }
    }
    Ok(found)
}

/// Returns the role that a socket name stands for: a name from the units in `packaging/systemd`, or
/// the name that systemd derives from such a unit.
fn role_of_name(name: &str) -> Option<Role> {
    match name.strip_suffix(".socket").unwrap_or(name) {
        "producer" | "traced-producer" | "traced_producer" => Some(Role::Producer),
        "consumer" | "traced-consumer" | "traced_consumer" => Some(Role::Consumer),
        _ => None,
    }
}

fn role_of_address(address: &Address, options: &Options) -> Option<Role> {
    if options.producers.contains(address) {
        Some(Role::Producer)
    } else {
        (options.consumer == *address).then_some(Role::Consumer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced_by(variables: &[(&str, &str)]) -> Result<Vec<(RawFd, String, Option<Role>)>, String> {
        let variable = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        let found = announced(variable, 42).map_err(|e| e.to_string())?;
        Ok(found.into_iter().map(|one| (one.number, one.name, one.role)).collect())
    }

    #[test]
    fn systemd_announces_numbers_from_three_on() {
        let all = [("LISTEN_PID", "42"), ("LISTEN_FDS", "3"), ("LISTEN_FDNAMES", "producer:consumer")];
        let want = [(3, "producer"), (4, "consumer"), (5, "")];
        assert_eq!(announced_by(&all).unwrap(), want.map(|(number, name)| (number, name.to_owned(), None)));
        assert_eq!(announced_by(&all[..2]).unwrap().len(), 3);
        // Announced to another process, or to none.
        assert_eq!(announced_by(&[("LISTEN_PID", "41"), all[1]]), Ok(vec![]));
        assert_eq!(announced_by(&all[1..]), Ok(vec![]));
        for count in ["-1", "x", "65", "99999999999"] {
            let error = announced_by(&[all[0], ("LISTEN_FDS", count)]).unwrap_err();
            assert!(error.contains("LISTEN_FDS"), "{error}");
        }
    }

    #[test]
    fn init_announces_both_or_none() {
        let both = [("ANDROID_SOCKET_traced_producer", "12"), ("ANDROID_SOCKET_traced_consumer", "13")];
        let want = [(12, both[0].0, Role::Producer), (13, both[1].0, Role::Consumer)];
        assert_eq!(
            announced_by(&both).unwrap(),
            want.map(|(number, name, role)| (number, name.to_owned(), Some(role)))
        );
        assert!(announced_by(&both[1..]).unwrap_err().contains("missing"));
        assert!(announced_by(&[both[0], (both[1].0, "x")]).unwrap_err().contains("traced_consumer"));
    }

    #[test]
    fn a_relay_is_announced_the_socket_of_producers() {
        let numbers = |variables: &[(&str, &str)]| {
            let variable =
                |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
            let found = announced_to_relay(variable, 42).map_err(|e| e.to_string())?;
            Ok::<Vec<RawFd>, String>(found.iter().map(|one| one.number).collect())
        };
        assert_eq!(numbers(&[]), Ok(vec![]));
        assert_eq!(numbers(&[("LISTEN_PID", "42"), ("LISTEN_FDS", "1")]), Ok(vec![3]));
        assert_eq!(numbers(&[(ANDROID_PRODUCER, "12")]), Ok(vec![12]), "init has no consumer socket for it");
        assert!(numbers(&[(ANDROID_PRODUCER, "x")]).unwrap_err().contains("traced_producer"));
    }

    #[test]
    fn names_or_addresses_decide_the_role() {
        assert_eq!(role_of_name("producer"), Some(Role::Producer));
        assert_eq!(role_of_name("traced-consumer.socket"), Some(Role::Consumer));
        assert_eq!(role_of_name("connection"), None);
        let options = Options::new("/run/p".parse().unwrap(), "@c".parse().unwrap());
        assert_eq!(role_of_address(&"/run/p".parse().unwrap(), &options), Some(Role::Producer));
        assert_eq!(role_of_address(&"@c".parse().unwrap(), &options), Some(Role::Consumer));
        assert_eq!(role_of_address(&"/run/x".parse().unwrap(), &options), None);
    }
}
