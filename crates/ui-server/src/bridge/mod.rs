//! The bridge by which a page drives a tracing service: WebSocket on one side, a socket of this
//! machine on the other (`docs/spec/cli.md` §24).

mod origins;
mod pump;

use core::fmt;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use tungstenite::handshake::derive_accept_key;

use self::origins::Origins;
use crate::http::{Answer, Body, Request, Status};
use crate::{Error, Site};

/// The port at which pages look for the bridge.
pub const PORT: u16 = 8037;

/// A function that connects to the other side, or says why it cannot.
pub type Backend = Box<dyn Fn() -> Result<OwnedFd, String> + Send + Sync>;

/// Choices of a bridge.
#[derive(Debug, Default)]
pub struct BridgeOptions {
    /// Further origins whose pages may connect.
    pub origins: Vec<String>,
}

/// The paths of a bridge, each with the other side of its connections.
pub struct Bridge {
    origins: Origins,
    backends: Vec<(&'static str, Backend)>,
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<_> = self.backends.iter().map(|(path, _)| path).collect();
        f.debug_struct("Bridge").field("origins", &self.origins).field("paths", &paths).finish()
    }
}

impl Bridge {
    /// A bridge without paths.
    ///
    /// # Errors
    ///
    /// One of the origins is none.
    pub fn new(options: &BridgeOptions) -> Result<Self, Error> {
        Ok(Self { origins: Origins::with(&options.origins)?, backends: Vec::new() })
    }

    /// Adds a path.
    #[must_use]
    pub fn path(mut self, path: &'static str, backend: Backend) -> Self {
        self.backends.push((path, backend));
        self
    }

    /// The origins whose pages may connect.
    pub fn origins(&self) -> impl Iterator<Item = &str> {
        self.origins.iter()
    }
}

impl Site for Bridge {
    fn answer(&self, request: &Request) -> Answer {
        // Nothing is said to a page of another origin, not even which paths there are.
        let Some(origin) = request.header("origin").filter(|origin| self.origins.allow(origin)) else {
            return Answer::refusal(Status::Forbidden, "pages of this origin may not connect\n");
        };
        if !request.header("host").is_some_and(names_loopback) {
            return Answer::refusal(Status::Forbidden, "another host was asked for\n");
        }
        if request.method() == "OPTIONS" {
            return Answer::new(Status::NoContent, Body::Empty)
                .header("access-control-allow-methods", "POST, GET, OPTIONS")
                .header("access-control-allow-headers", "*")
                .header("access-control-max-age", "86400")
                .header("access-control-allow-private-network", "true")
                .header("access-control-allow-origin", origin.to_owned())
                .header("vary", "Origin");
        }
        let backend = self.backends.iter().find(|(path, _)| *path == request.path());
        let is_websocket = request.method() == "GET"
            && request.lists("connection", "upgrade")
            && request.header("upgrade").is_some_and(|to| to.eq_ignore_ascii_case("websocket"));
        let Some((_, backend)) = backend.filter(|_| is_websocket) else {
            return Answer::refusal(Status::NotFound, "there is no such bridge\n");
        };
        if request.header("sec-websocket-version") != Some("13") {
            return Answer::refusal(Status::VersionNotSupported, "version 13 is the only one\n");
        }
        let Some(key) = request.header("sec-websocket-key").filter(|key| key.len() == 24) else {
            return Answer::refusal(Status::BadRequest, "the key must have 24 characters\n");
        };
        match backend() {
            Ok(backend) => {
                let takeover = move |stream, read| pump::run(stream, read, backend);
                Answer::new(Status::SwitchingProtocols, Body::Takeover(Box::new(takeover)))
                    .header("upgrade", "websocket")
                    .header("connection", "Upgrade")
                    .header("sec-websocket-accept", derive_accept_key(key.as_bytes()))
                    .admitted()
            }
            Err(why) => Answer::refusal(Status::Unavailable, format!("{why}\n")),
        }
    }
}

/// Returns whether a host is this machine, at any port: it may have been forwarded.
fn names_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Host: 127.0.0.1:8037\r\nOrigin: https://ui.perfetto.dev\r\n";
    const UPGRADE: &str = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                           Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

    fn bridge() -> Bridge {
        let backend = || std::os::unix::net::UnixStream::pair().map(|(a, _)| a.into()).map_err(|e| e.to_string());
        let bridge = Bridge::new(&BridgeOptions::default()).unwrap();
        bridge.path("/traced", Box::new(backend)).path("/down", Box::new(|| Err("no service".to_owned())))
    }

    fn ask(method: &str, path: &str, headers: &str) -> Answer {
        let head = format!("{method} {path} HTTP/1.1\r\n{headers}\r\n");
        bridge().answer(&Request::parse(head.as_bytes()).unwrap().unwrap().0)
    }

    #[test]
    fn pages_of_perfetto_may_connect() {
        let answer = ask("GET", "/traced", &format!("{HEAD}{UPGRADE}"));
        assert!(answer.status() == Status::SwitchingProtocols && answer.is_admitted);
        let accept = answer.headers.iter().find(|(name, _)| *name == "sec-websocket-accept").unwrap();
        assert_eq!(accept.1, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "the example of RFC 6455");
        assert_eq!(ask("OPTIONS", "/traced", HEAD).status(), Status::NoContent);
        assert_eq!(ask("GET", "/down", &format!("{HEAD}{UPGRADE}")).status(), Status::Unavailable);
    }

    #[test]
    fn other_pages_learn_nothing() {
        for origin in ["", "Origin: https://evil.example\r\n", "Origin: null\r\n", "Origin: \r\n"] {
            for (method, path) in [("GET", "/traced"), ("GET", "/nothing"), ("OPTIONS", "/traced")] {
                let answer = ask(method, path, &format!("Host: 127.0.0.1:8037\r\n{origin}{UPGRADE}"));
                assert_eq!(answer.status(), Status::Forbidden, "{origin}{method} {path}");
                assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("access-control")));
            }
        }
        let rebound = format!("Host: evil.example:8037\r\nOrigin: https://ui.perfetto.dev\r\n{UPGRADE}");
        assert_eq!(ask("GET", "/traced", &rebound).status(), Status::Forbidden);
    }

    #[test]
    fn handshakes_are_checked() {
        let status = |path: &str, upgrade: &str| ask("GET", path, &format!("{HEAD}{upgrade}")).status();
        assert_eq!(status("/traced", ""), Status::NotFound);
        assert_eq!(status("/adb", UPGRADE), Status::NotFound);
        assert_eq!(status("/", UPGRADE), Status::NotFound);
        assert_eq!(status("/traced", &UPGRADE.replace("13", "12")), Status::VersionNotSupported);
        assert_eq!(status("/traced", &UPGRADE.replace("ZQ==", "Z")), Status::BadRequest);
        assert_eq!(ask("POST", "/traced", &format!("{HEAD}{UPGRADE}")).status(), Status::NotFound);
    }

    #[test]
    fn hosts_of_loopback() {
        for host in ["127.0.0.1:8037", "localhost:8037", "LocalHost", "[::1]:8037", "127.0.0.1", "127.0.0.1:9999"] {
            assert!(names_loopback(host), "{host}");
        }
        for host in ["", "evil.example", "evil.example:8037", "localhost.evil.example", "192.0.2.1:8037", "[::2]:1"] {
            assert!(!names_loopback(host), "{host}");
        }
    }
}
