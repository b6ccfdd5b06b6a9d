//! Answers to requests.

use core::fmt;
use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

/// Bytes that are copied at a time.
const PIECE: usize = 64 << 10;

/// Status of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// 101: the connection speaks WebSocket from here on.
    SwitchingProtocols,
    /// 200.
    Ok,
    /// 204: there is nothing to say.
    NoContent,
    /// 308: the same is at another place.
    Moved,
    /// 400: this is no request.
    BadRequest,
    /// 403: this page or program may not ask.
    Forbidden,
    /// 404.
    NotFound,
    /// 405: only GET and HEAD are answered.
    MethodNotAllowed,
    /// 413: requests have no body.
    BodyRefused,
    /// 431: the head of the request is too long.
    HeadTooLarge,
    /// 500: the server is to blame.
    Failed,
    /// 503: there is no place, or no service.
    Unavailable,
    /// 505: the client speaks another version.
    VersionNotSupported,
}

impl Status {
    /// The line that begins an answer.
    const fn line(self) -> &'static str {
        match self {
            Self::SwitchingProtocols => "101 Switching Protocols",
            Self::Ok => "200 OK",
            Self::NoContent => "204 No Content",
            Self::Moved => "308 Permanent Redirect",
            Self::BadRequest => "400 Bad Request",
            Self::Forbidden => "403 Forbidden",
            Self::NotFound => "404 Not Found",
            Self::MethodNotAllowed => "405 Method Not Allowed",
            Self::BodyRefused => "413 Content Too Large",
            Self::HeadTooLarge => "431 Request Header Fields Too Large",
            Self::Failed => "500 Internal Server Error",
            Self::Unavailable => "503 Service Unavailable",
            Self::VersionNotSupported => "505 HTTP Version Not Supported",
        }
    }
}

/// A function that goes on with the connection. It gets the bytes that came after the request.
pub(crate) type Takeover = Box<dyn FnOnce(TcpStream, Vec<u8>) + Send>;

/// The body of an answer.
pub(crate) enum Body {
    Empty,
    Text(Cow<'static, str>),
    Shared(Arc<[u8]>),
    Stream(u64, Box<dyn Read + Send>),
    /// No length: the body lasts until the function returns.
    Takeover(Takeover),
}

impl Body {
    pub(crate) fn stream(size: u64, bytes: impl Read + Send + 'static) -> Self {
        Self::Stream(size, Box::new(bytes))
    }

    fn size(&self) -> Option<u64> {
        match self {
            Self::Empty => Some(0),
            Self::Text(text) => Some(text.len() as u64),
            Self::Shared(bytes) => Some(bytes.len() as u64),
            Self::Stream(size, _) => Some(*size),
            Self::Takeover(_) => None,
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size() {
            Some(size) => write!(f, "{size} bytes"),
            None => f.write_str("a takeover"),
        }
    }
}

/// An answer to a request.
#[derive(Debug)]
pub struct Answer {
    pub(crate) status: Status,
    pub(crate) headers: Vec<(&'static str, Cow<'static, str>)>,
    pub(crate) body: Body,
    /// The client has shown that it may be here. Its connection gets one of the better places.
    pub(crate) is_admitted: bool,
    /// It is what the client came for, so the server has delivered once it is sent.
    pub(crate) is_delivery: bool,
}

impl Answer {
    /// A refusal, which ends the connection.
    #[must_use]
    pub fn refusal(status: Status, why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(status, Body::Text(why.into())).header("content-type", "text/plain; charset=utf-8")
    }

    pub(crate) fn new(status: Status, body: Body) -> Self {
        Self { status, headers: Vec::new(), body, is_admitted: false, is_delivery: false }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn admitted(mut self) -> Self {
        self.is_admitted = true;
        self
    }

    pub(crate) fn delivery(mut self) -> Self {
        self.is_delivery = true;
        self
    }

    /// The status, for tests of a site.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.status
    }

    /// Writes the answer, and returns the function that goes on with the connection, if there is
    /// one.
    pub(crate) fn write(self, out: &mut impl Write, is_head: bool, keeps_alive: bool) -> io::Result<Option<Takeover>> {
        let mut head = format!("HTTP/1.1 {}\r\n", self.status.line());
        for (name, value) in &self.headers {
            // Values are ours, but may contain names of files.
            debug_assert!(!value.contains(['\r', '\n']), "{name}: {value}");
            head.extend([name, ": ", &value.replace(['\r', '\n'], " "), "\r\n"]);
        }
        if let Some(size) = self.body.size() {
            if self.status != Status::NoContent {
                head.push_str(&format!("content-length: {size}\r\n"));
            }
            head.push_str(if keeps_alive { "connection: keep-alive\r\n" } else { "connection: close\r\n" });
        } else if self.status != Status::SwitchingProtocols {
            head.push_str("connection: close\r\n");
        }
        head.push_str("\r\n");
        out.write_all(head.as_bytes())?;
        if is_head {
            return Ok(None);
        }
        match self.body {
            Body::Empty => {}
            Body::Text(text) => out.write_all(text.as_bytes())?,
            Body::Shared(bytes) => out.write_all(&bytes)?,
            Body::Stream(size, bytes) => copy(size, bytes, out)?,
            Body::Takeover(takeover) => return Ok(Some(takeover)),
        }
        Ok(None)
    }
}

/// Copies as many bytes as the head has promised.
fn copy(mut size: u64, mut bytes: impl Read, out: &mut impl Write) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    while size > 0 {
        let most = usize::try_from(size).unwrap_or(PIECE).min(PIECE);
        let read = bytes.read(&mut piece[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        out.write_all(&piece[..read])?;
        size -= read as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(answer: Answer, is_head: bool) -> Result<String, io::ErrorKind> {
        let mut out = Vec::new();
        answer.write(&mut out, is_head, true).map_err(|error| error.kind())?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn an_answer_has_its_length() {
        let answer = || Answer::new(Status::Ok, Body::stream(3, &b"abcd"[..])).header("x", "y");
        let head = "HTTP/1.1 200 OK\r\nx: y\r\ncontent-length: 3\r\nconnection: keep-alive\r\n\r\n";
        assert_eq!(written(answer(), false), Ok(format!("{head}abc")));
        assert_eq!(written(answer(), true), Ok(head.to_owned()));
        let nothing = written(Answer::new(Status::NoContent, Body::Empty), false);
        assert_eq!(nothing.as_deref(), Ok("HTTP/1.1 204 No Content\r\nconnection: keep-alive\r\n\r\n"));
    }

    #[test]
    fn a_body_that_is_too_short_ends_the_connection() {
        let answer = Answer::new(Status::Ok, Body::stream(5, &b"abcd"[..]));
        assert_eq!(written(answer, false), Err(io::ErrorKind::UnexpectedEof));
    }
}
