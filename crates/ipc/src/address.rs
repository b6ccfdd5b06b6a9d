//! [`Address`]: the address of a service, with its syntax, environment variables and defaults.
//!
//! The rules are those of `docs/spec/wire-protocol.md §1`. In cases where upstream aborts the
//! process, this module returns an [`AddressError`] that names the text.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;

/// Environment variable with the producer address; for the service a comma-separated list.
pub const PRODUCER_SOCK_NAME: &str = "PERFETTO_PRODUCER_SOCK_NAME";
/// Environment variable with the consumer address.
pub const CONSUMER_SOCK_NAME: &str = "PERFETTO_CONSUMER_SOCK_NAME";
/// Environment variable with the address of the remote service to which a relay forwards.
pub const RELAY_SOCK_NAME: &str = "PERFETTO_RELAY_SOCK_NAME";

/// Largest size of a unix socket name in bytes: a path without its final NUL, or an abstract name
/// with its `@`.
pub const MAX_UNIX_NAME: usize = 106;

/// Directory that decides between the two sets of default addresses.
const RUN_DIR: &str = "/run/perfetto";

/// Address of a listening socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Address {
    /// A unix socket in the file system.
    Path(PathBuf),
    /// A unix socket in the abstract namespace; the name without the `@`.
    Abstract(Vec<u8>),
    /// A vsock address: `vsock://CID:PORT`.
    Vsock {
        /// Context id; 2 is the host.
        cid: u32,
        /// Port.
        port: u32,
    },
    /// IPv4 `host:port`. The host is resolved when the address is used.
    Inet {
        /// Name or dotted number.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// IPv6 `[host]:port`.
    Inet6 {
        /// The text between the brackets.
        host: String,
        /// TCP port.
        port: u16,
    },
}

/// Kind of socket of an address or a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Unix socket: same machine, credentials known to the kernel, can carry descriptors.
    Unix,
    /// TCP over IPv4.
    Inet,
    /// TCP over IPv6.
    Inet6,
    /// Virtual machine sockets.
    Vsock,
}

/// Reason why a text is not an address.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressError {
    /// The text is empty, which means "unspecified" and cannot be opened.
    Empty,
    /// A unix socket name of more than [`MAX_UNIX_NAME`] bytes, or one that contains a NUL byte.
    BadUnixName(String),
    /// `vsock://` that is not followed by `CID:PORT`, both decimal and of 32 bits.
    BadVsock(String),
    /// `host:port` with a port outside 0–65535.
    BadPort(String),
    /// `host:port` with an empty host, a host with colons, or brackets that do not match.
    BadHost(String),
    /// The host cannot be resolved to an address of the wanted family.
    Unresolved {
        /// The host as given.
        host: String,
        /// Message of the resolver.
        reason: String,
    },
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => {
                write!(f, "socket address is empty; is {PRODUCER_SOCK_NAME} or {CONSUMER_SOCK_NAME} set to nothing?")
            }
            Self::BadUnixName(s) => {
                write!(f, "{s:?} is not a unix socket name (at most {MAX_UNIX_NAME} bytes, none of them NUL)")
            }
            Self::BadVsock(s) => write!(f, "{s:?} is not a vsock address (vsock://CID:PORT)"),
            Self::BadPort(s) => write!(f, "{s:?} has no valid TCP port (0 to 65535)"),
            Self::BadHost(s) => write!(f, "{s:?} has no valid host (host:port or [IPv6]:port)"),
            Self::Unresolved { host, reason } => write!(f, "cannot resolve host {host:?}: {reason}"),
        }
    }
}

impl std::error::Error for AddressError {}

impl Address {
    /// Parses an address; the forms and their order are those of wire-protocol.md §1.
    ///
    /// A host name is not resolved here, see [`Address::resolve`].
    ///
    /// # Errors
    ///
    /// If the text is empty, or its form is recognised but its parts are not valid.
    pub fn parse(text: impl AsRef<OsStr>) -> Result<Self, AddressError> {
        let bytes = text.as_ref().as_bytes();
        if bytes.is_empty() {
            return Err(AddressError::Empty);
        }
        if let Some(name) = bytes.strip_prefix(b"@") {
            return if name.is_empty() || bytes.len() > MAX_UNIX_NAME {
                Err(AddressError::BadUnixName(lossy(bytes)))
            } else {
                Ok(Self::Abstract(name.to_vec()))
            };
        }
        if let Some(rest) = bytes.strip_prefix(b"vsock://") {
            return parse_vsock(rest).ok_or_else(|| AddressError::BadVsock(lossy(bytes)));
        }
        if let Some(colon) = bytes.iter().rposition(|&b| b == b':') {
            if is_integer(&bytes[colon + 1..]) {
                return parse_inet(bytes, colon);
            }
        }
        if bytes.len() > MAX_UNIX_NAME || bytes.contains(&0) {
            return Err(AddressError::BadUnixName(lossy(bytes)));
        }
        Ok(Self::Path(PathBuf::from(OsStr::from_bytes(bytes))))
    }

    /// Parses a comma-separated list as the service does. Empty entries are skipped.
    ///
    /// # Errors
    ///
    /// If an entry is not an address, or there is no entry.
    pub fn parse_list(text: impl AsRef<OsStr>) -> Result<Vec<Self>, AddressError> {
        let list = text
            .as_ref()
            .as_bytes()
            .split(|&b| b == b',')
            .filter(|part| !part.is_empty())
            .map(|part| Self::parse(OsStr::from_bytes(part)))
            .collect::<Result<Vec<_>, _>>()?;
        if list.is_empty() { Err(AddressError::Empty) } else { Ok(list) }
    }

    /// Returns the producer address for a *client*: [`PRODUCER_SOCK_NAME`] as one address, else the
    /// platform's default.
    ///
    /// # Errors
    ///
    /// If the variable is set to a text that is not an address.
    pub fn producer_default() -> Result<Self, AddressError> {
        match env::var_os(PRODUCER_SOCK_NAME) {
            Some(text) => Self::parse(text),
            None => Ok(default_set(run_dir_usable()).0),
        }
    }

    /// Returns the producer addresses for the *service*: [`PRODUCER_SOCK_NAME`] as a list, else the
    /// platform's default.
    ///
    /// # Errors
    ///
    /// If the variable is set to a text that is not a list of addresses.
    pub fn producer_defaults_for_service() -> Result<Vec<Self>, AddressError> {
        match env::var_os(PRODUCER_SOCK_NAME) {
            Some(text) => Self::parse_list(text),
            None => Ok(vec![default_set(run_dir_usable()).0]),
        }
    }

    /// Returns the consumer address: [`CONSUMER_SOCK_NAME`], else the platform's default.
    ///
    /// # Errors
    ///
    /// If the variable is set to a text that is not an address.
    pub fn consumer_default() -> Result<Self, AddressError> {
        match env::var_os(CONSUMER_SOCK_NAME) {
            Some(text) => Self::parse(text),
            None => Ok(default_set(run_dir_usable()).1),
        }
    }

    /// Returns the kind of socket that this address needs.
    pub fn family(&self) -> Family {
        match self {
            Self::Path(_) | Self::Abstract(_) => Family::Unix,
            Self::Vsock { .. } => Family::Vsock,
            Self::Inet { .. } => Family::Inet,
            Self::Inet6 { .. } => Family::Inet6,
        }
    }

    /// Returns the path, if this is a unix socket in the file system.
    pub fn as_path(&self) -> Option<&Path> {
        match self {
            Self::Path(p) => Some(p),
            _ => None,
        }
    }

    /// Resolves a TCP address with the system's resolver. Blocks.
    ///
    /// # Errors
    ///
    /// If there is no address of the family, or this is not a TCP address.
    pub fn resolve(&self) -> Result<SocketAddr, AddressError> {
        let (host, port, v6) = match self {
            Self::Inet { host, port } => (host, *port, false),
            Self::Inet6 { host, port } => (host, *port, true),
            other => return Err(AddressError::BadHost(other.to_string())),
        };
        let unresolved = |reason: String| AddressError::Unresolved { host: host.clone(), reason };
        (host.as_str(), port)
            .to_socket_addrs()
            .map_err(|e| unresolved(e.to_string()))?
            .find(|a| a.is_ipv6() == v6)
            .ok_or_else(|| unresolved(format!("no IPv{} address", if v6 { 6 } else { 4 })))
    }
}

impl Address {
    /// Returns the same address with a number in place of the host name, so that connecting need
    /// not look up the name. Blocks if there is a name.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve).
    pub fn to_numeric(&self) -> Result<Self, AddressError> {
        match self {
            Self::Inet { port, .. } => Ok(Self::Inet { host: self.resolve()?.ip().to_string(), port: *port }),
            Self::Inet6 { port, .. } => match self.resolve()? {
                SocketAddr::V6(to) if to.scope_id() != 0 => {
                    Ok(Self::Inet6 { host: format!("{}%{}", to.ip(), to.scope_id()), port: *port })
                }
                to => Ok(Self::Inet6 { host: to.ip().to_string(), port: *port }),
            },
            Self::Path(_) | Self::Abstract(_) | Self::Vsock { .. } => Ok(self.clone()),
        }
    }

    /// Returns true if connecting looks up no name.
    pub fn is_numeric(&self) -> bool {
        match self {
            Self::Inet { host, .. } => host.parse::<std::net::Ipv4Addr>().is_ok(),
            Self::Inet6 { host, .. } => host.parse::<std::net::Ipv6Addr>().is_ok(),
            Self::Path(_) | Self::Abstract(_) | Self::Vsock { .. } => true,
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;
    fn from_str(s: &str) -> Result<Self, AddressError> {
        Self::parse(s)
    }
}

/// Writes the text that [`Address::parse`] reads (lossy for names that are not UTF-8).
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(p) => p.display().fmt(f),
            Self::Abstract(name) => write!(f, "@{}", String::from_utf8_lossy(name)),
            Self::Vsock { cid, port } => write!(f, "vsock://{cid}:{port}"),
            Self::Inet { host, port } => write!(f, "{host}:{port}"),
            Self::Inet6 { host, port } => write!(f, "[{host}]:{port}"),
        }
    }
}

impl Address {
    /// Returns the bytes that [`Address::parse`] reads back to this address; for environment
    /// variables.
    pub fn to_os_string(&self) -> std::ffi::OsString {
        match self {
            Self::Path(p) => p.clone().into_os_string(),
            Self::Abstract(name) => std::ffi::OsString::from_vec([b"@", name.as_slice()].concat()),
            other => other.to_string().into(),
        }
    }
}

impl Address {
    /// Returns true for a default address in a folder that any user can write to. Any user may
    /// listen there while no service runs.
    pub fn is_open_to_all(&self) -> bool {
        let (producer, consumer) = default_set(false);
        !cfg!(target_os = "android") && (*self == producer || *self == consumer)
    }
}

/// Returns the default addresses of producer and consumer. They depend on the access to
/// `/run/perfetto`.
fn default_set(run_dir: bool) -> (Address, Address) {
    let path = |p: &str| Address::Path(PathBuf::from(p));
    if cfg!(target_os = "android") {
        (path("/dev/socket/traced_producer"), path("/dev/socket/traced_consumer"))
    } else if run_dir {
        (path("/run/perfetto/traced-producer.sock"), path("/run/perfetto/traced-consumer.sock"))
    } else {
        (path("/tmp/perfetto-producer"), path("/tmp/perfetto-consumer"))
    }
}

/// Returns the reason why the folder of the standard sockets cannot be used although it exists. The
/// addresses in `/tmp` are used instead, where peers may not look.
pub fn unusable_run_dir() -> Option<(&'static str, std::io::Error)> {
    let why = enter_run_dir().err()?;
    (why.kind() != std::io::ErrorKind::NotFound && !cfg!(target_os = "android")).then_some((RUN_DIR, why))
}

/// Decides once per process, so that producer and consumer address never come from different sets.
fn run_dir_usable() -> bool {
    static USABLE: OnceLock<bool> = OnceLock::new();
    *USABLE.get_or_init(|| cfg!(any(target_os = "linux", target_os = "android")) && enter_run_dir().is_ok())
}

/// Fails with the reason if this process may not use the files in that folder.
fn enter_run_dir() -> std::io::Result<()> {
    // To find the dot, the kernel must look into the folder. It does so only for processes that may
    // use the folder.
    std::fs::metadata("/run/perfetto/.").map(drop)
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns true for an optional sign and at least one digit, without anything else.
fn is_integer(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Parses decimal digits without a sign.
fn decimal<T: FromStr>(text: &[u8]) -> Option<T> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    core::str::from_utf8(text).ok()?.parse().ok()
}

fn parse_vsock(rest: &[u8]) -> Option<Address> {
    let colon = rest.iter().position(|&b| b == b':')?;
    Some(Address::Vsock { cid: decimal(&rest[..colon])?, port: decimal(&rest[colon + 1..])? })
}

fn parse_inet(bytes: &[u8], colon: usize) -> Result<Address, AddressError> {
    let bad_host = || AddressError::BadHost(lossy(bytes));
    let port = decimal(&bytes[colon + 1..]).ok_or_else(|| AddressError::BadPort(lossy(bytes)))?;
    let host = core::str::from_utf8(&bytes[..colon]).map_err(|_| bad_host())?;
    if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.strip_suffix(']').filter(|h| !h.is_empty()).ok_or_else(bad_host)?;
        return Ok(Address::Inet6 { host: inner.to_owned(), port });
    }
    if host.is_empty() || host.contains(':') {
        return Err(bad_host());
    }
    Ok(Address::Inet { host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_recognised_in_the_order_of_the_spec() {
        let path = |p: &str| Address::Path(p.into());
        for (text, want) in [
            ("/tmp/perfetto-producer", path("/tmp/perfetto-producer")),
            ("relative", path("relative")),
            ("/tmp/with:colon", path("/tmp/with:colon")),
            ("@name:12", Address::Abstract(b"name:12".to_vec())),
            ("vsock://2:10000", Address::Vsock { cid: 2, port: 10000 }),
            ("vsock://4294967295:1", Address::Vsock { cid: u32::MAX, port: 1 }),
            ("127.0.0.1:32278", Address::Inet { host: "127.0.0.1".into(), port: 32278 }),
            ("/a/path:123", Address::Inet { host: "/a/path".into(), port: 123 }),
            ("[::1]:1234", Address::Inet6 { host: "::1".into(), port: 1234 }),
        ] {
            let got = Address::parse(text).unwrap();
            assert_eq!(got, want, "{text}");
            assert_eq!(got.to_string(), text);
            assert_eq!(Address::parse(got.to_os_string()).unwrap(), got);
        }
    }

    #[test]
    fn bad_addresses_are_errors_that_name_the_text() {
        for (text, want) in [
            ("", AddressError::Empty),
            ("@", AddressError::BadUnixName("@".into())),
            ("vsock://", AddressError::BadVsock("vsock://".into())),
            ("vsock://2", AddressError::BadVsock("vsock://2".into())),
            ("vsock://-1:5", AddressError::BadVsock("vsock://-1:5".into())),
            ("vsock://1:4294967296", AddressError::BadVsock("vsock://1:4294967296".into())),
            ("host:65536", AddressError::BadPort("host:65536".into())),
            ("host:-1", AddressError::BadPort("host:-1".into())),
            (":80", AddressError::BadHost(":80".into())),
            ("a:b:80", AddressError::BadHost("a:b:80".into())),
            ("::1:80", AddressError::BadHost("::1:80".into())),
            ("[::1:80", AddressError::BadHost("[::1:80".into())),
            ("[]:80", AddressError::BadHost("[]:80".into())),
        ] {
            assert_eq!(Address::parse(text), Err(want), "{text}");
        }
    }

    #[test]
    fn unix_names_have_at_most_106_bytes() {
        let name = "x".repeat(MAX_UNIX_NAME);
        assert!(Address::parse(&name).is_ok());
        assert!(Address::parse(format!("@{}", &name[1..])).is_ok());
        assert!(matches!(Address::parse(format!("{name}x")), Err(AddressError::BadUnixName(_))));
        assert!(matches!(Address::parse(format!("@{name}x")), Err(AddressError::BadUnixName(_))));
    }

    #[test]
    fn a_list_is_split_at_commas() {
        let list = Address::parse_list("/a,@b,127.0.0.1:1").unwrap();
        assert_eq!(list.iter().map(ToString::to_string).collect::<Vec<_>>(), ["/a", "@b", "127.0.0.1:1"]);
        assert_eq!(Address::parse_list(","), Err(AddressError::Empty));
        // A client does not split.
        assert_eq!(Address::parse("/a,/b").unwrap(), Address::Path("/a,/b".into()));
    }

    #[test]
    fn defaults_come_from_one_set() {
        let (p, c) = default_set(true);
        assert_eq!(p.to_string(), "/run/perfetto/traced-producer.sock");
        assert_eq!(c.to_string(), "/run/perfetto/traced-consumer.sock");
        let (p, c) = default_set(false);
        assert_eq!(p.to_string(), "/tmp/perfetto-producer");
        assert_eq!(c.to_string(), "/tmp/perfetto-consumer");
    }

    #[test]
    fn numbers_need_no_resolver() {
        for (text, numeric) in [("127.0.0.1:5", true), ("[::1]:5", true), ("localhost:5", false), ("vsock://2:5", true)]
        {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.is_numeric(), numeric, "{text}");
            if numeric {
                assert_eq!(address.to_numeric(), Ok(address));
            }
        }
    }

    #[test]
    fn hosts_resolve_in_their_own_family_only() {
        assert!(Address::parse("127.0.0.1:5").unwrap().resolve().unwrap().is_ipv4());
        assert!(Address::parse("[::1]:5").unwrap().resolve().unwrap().is_ipv6());
        assert!(matches!(Address::parse("/x/y:5").unwrap().resolve(), Err(AddressError::Unresolved { .. })));
    }
}
