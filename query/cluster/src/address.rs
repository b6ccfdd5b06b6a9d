//! The address of a scheduler, and the question whether one is there and has executors.

use core::fmt;
use core::str::FromStr;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use ballista_core::BALLISTA_VERSION;

/// Port of a scheduler, if the address names none.
pub(crate) const DEFAULT_PORT: u16 = 50050;

/// Time for a scheduler to answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Longest answer that is read.
const MAX_ANSWER: u64 = 16 << 10;

/// The address of a scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = text.strip_prefix("df://").or_else(|| text.strip_prefix("http://")).unwrap_or(text);
        let plain = plain.strip_suffix('/').unwrap_or(plain);
        let is_only_host = plain.starts_with('[') && plain.ends_with(']') || !plain.contains(':');
        let (host, port) = match plain.rsplit_once(':').filter(|_| !is_only_host) {
            Some((host, port)) => {
                let number = port.parse().ok().filter(|port| *port != 0);
                let number = number.ok_or_else(|| {
                    format!("cluster '{text}': '{port}' is no port; write HOST:PORT, such as localhost:{DEFAULT_PORT}")
                })?;
                (host, number)
            }
            None => (plain, DEFAULT_PORT),
        };
        let is_name = |host: &str| host.chars().all(|ch| ch.is_ascii_alphanumeric() || "-._:[]".contains(ch));
        if host.is_empty() || !is_name(host) || (host.contains(':') && !host.starts_with('[')) {
            return Err(format!(
                "cluster '{text}': '{host}' is no host; write HOST:PORT, such as localhost:{DEFAULT_PORT}"
            ));
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The answer of a scheduler.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// It has executors.
    Ready,
    /// It has none.
    NoExecutors,
}

impl Address {
    /// Asks whether a scheduler of a fitting version is there, and has executors.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be used, and a remedy.
    pub(crate) fn ask(&self) -> Result<Readiness, String> {
        let answer = self.fetch("/readyz").map_err(|error| {
            format!(
                "cannot reach the scheduler at {self}: {error}; start one with 'esatto-cluster scheduler', \
                 or mend the address of --cluster"
            )
        })?;
        let foreign = || {
            format!(
                "the server at {self} is no Ballista scheduler of version {BALLISTA_VERSION}; \
                 give --cluster the address of the scheduler, not of an executor"
            )
        };
        let (head, _) = answer.split_once("\r\n\r\n").ok_or_else(foreign)?;
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).ok_or_else(foreign)?;
        let server = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("server").then(|| value.trim())?.strip_prefix("ballista/")
        });
        let version = server.ok_or_else(foreign)?;
        let major = |version: &str| version.split('.').next().map(str::to_owned);
        if major(version) != major(BALLISTA_VERSION) {
            return Err(format!(
                "the scheduler at {self} is Ballista {version}, but this program has {BALLISTA_VERSION}: \
                 the first number must be the same; install fitting versions"
            ));
        }
        match status {
            "200" => Ok(Readiness::Ready),
            "503" => Ok(Readiness::NoExecutors),
            _ => Err(foreign()),
        }
    }

    fn fetch(&self, path: &str) -> Result<String, String> {
        let end = Instant::now() + ANSWER_TIME;
        let host = self.host.trim_matches(['[', ']']);
        let mut error = "the name has no address".to_owned();
        for address in (host, self.port).to_socket_addrs().map_err(|error| error.to_string())? {
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let answer = TcpStream::connect_timeout(&address, left).and_then(|mut stream| {
                stream.set_read_timeout(Some(ANSWER_TIME))?;
                stream.set_write_timeout(Some(ANSWER_TIME))?;
                let request = format!("GET {path} HTTP/1.1\r\nHost: {self}\r\nConnection: close\r\n\r\n");
                // A server of another protocol may have closed the connection.
                match stream.write_all(request.as_bytes()) {
                    Err(error) if is_closed(&error) => Ok(String::new()),
                    written => written.and_then(|()| read_answer(&mut stream, end)),
                }
            });
            match answer {
                Ok(answer) => return Ok(answer),
                Err(found) if found.kind() == std::io::ErrorKind::WouldBlock => {
                    error = format!("no answer in {} s", ANSWER_TIME.as_secs());
                }
                Err(found) => error = found.to_string(),
            }
        }
        Err(error)
    }
}

fn is_closed(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe)
}

/// Reads an answer until its end, or until it is long enough or late enough.
fn read_answer(stream: &mut TcpStream, end: Instant) -> std::io::Result<String> {
    let mut answer = Vec::new();
    let mut bytes = [0; 4096];
    while (answer.len() as u64) < MAX_ANSWER {
        let count = match stream.read(&mut bytes) {
            Err(error) if is_closed(&error) => 0,
            count => count?,
        };
        if count == 0 {
            break;
        }
        answer.extend(&bytes[..count]);
        if Instant::now() > end {
            return Err(std::io::ErrorKind::WouldBlock.into());
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let address = |text: &str| text.parse::<Address>().map(|address| address.to_string());
        assert_eq!(address("localhost:50050"), Ok("localhost:50050".to_owned()));
        assert_eq!(address("df://host-1/"), Ok("host-1:50050".to_owned()));
        assert_eq!(address("[::1]:7"), Ok("[::1]:7".to_owned()));
        assert_eq!(address("[::1]"), Ok("[::1]:50050".to_owned()));
        for wrong in ["", ":5", "host:", "host:0", "host:99999", "ho st:1", "::1:5", "host/path:1"] {
            let error = address(wrong).unwrap_err();
            assert!(error.contains(&format!("'{wrong}'")) && error.contains("HOST:PORT"), "{error}");
        }
    }
}
