//! The head of a request.

use super::Status;

/// Bytes of the head of a request.
pub(crate) const MAX_HEAD_BYTES: usize = 16 << 10;
/// Header fields of a request.
const MAX_HEADERS: usize = 64;

/// A request. It has no body.
#[derive(Debug)]
pub struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    is_old: bool,
}

/// A request that cannot be answered as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadRequest(pub(crate) Status);

impl Request {
    /// Reads a request from the begin of `bytes`, and returns it with its length; or `None` if it
    /// has not come whole.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, BadRequest> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let length = match request.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if bytes.len() < MAX_HEAD_BYTES => return Ok(None),
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                return Err(BadRequest(Status::HeadTooLarge));
            }
            Err(_) => return Err(BadRequest(Status::BadRequest)),
        };
        if length > MAX_HEAD_BYTES {
            return Err(BadRequest(Status::HeadTooLarge));
        }
        let bad = BadRequest(Status::BadRequest);
        let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
            return Err(bad);
        };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| bad);
        let headers = request.headers.iter();
        let headers = headers.map(|field| Ok((field.name.to_ascii_lowercase(), text(field.value)?)));
        let request = Self {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: headers.collect::<Result<_, BadRequest>>()?,
            is_old: version == 0,
        };
        let has_body = request.values("content-length").any(|value| value != "0")
            || request.values("transfer-encoding").next().is_some();
        // Programs disagree about the meaning of a request with two of these.
        let is_doubtful = ["host", "origin", "content-length"].iter().any(|name| request.values(name).count() > 1);
        if is_doubtful {
            return Err(bad);
        }
        if has_body {
            return Err(BadRequest(Status::BodyRefused));
        }
        Ok(Some((request, length)))
    }

    /// The method, in capitals.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The path, without a query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The value of a header field, whose name is in small letters. The first one, if there are
    /// several.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.values(name).next()
    }

    /// Returns whether a header field is a list that contains this word.
    pub(crate) fn lists(&self, name: &str, word: &str) -> bool {
        self.values(name).flat_map(|value| value.split(',')).any(|item| item.trim().eq_ignore_ascii_case(word))
    }

    /// Returns whether the client may send another request on the connection.
    pub(crate) fn keeps_alive(&self) -> bool {
        !self.is_old && !self.lists("connection", "close")
    }

    fn values<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.headers.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(bytes: &[u8]) -> Option<Status> {
        Request::parse(bytes).err().map(|BadRequest(status)| status)
    }

    #[test]
    fn a_head_is_read_as_far_as_it_goes() {
        let bytes = b"GET /a/b?c=d HTTP/1.1\r\nHost: x\r\nConnection: Keep-Alive, Upgrade\r\n\r\nGET";
        let (request, length) = Request::parse(bytes).unwrap().unwrap();
        assert_eq!((request.method(), request.path(), length), ("GET", "/a/b", bytes.len() - 3));
        assert_eq!(request.header("host"), Some("x"));
        assert!(request.lists("connection", "upgrade") && request.keeps_alive());
        for end in 0..length {
            assert!(Request::parse(&bytes[..end]).unwrap().is_none(), "{end}");
        }
        let (old, _) = Request::parse(b"GET / HTTP/1.0\r\n\r\n").unwrap().unwrap();
        assert!(!old.keeps_alive());
    }

    #[test]
    fn doubtful_requests_are_refused() {
        for (head, wanted) in [
            ("\0\0", Status::BadRequest),
            ("GET / HTTP/2.7\r\n\r\n", Status::BadRequest),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", Status::BadRequest),
            ("GET / HTTP/1.1\r\nOrigin: a\r\norigin: a\r\n\r\n", Status::BadRequest),
            ("GET / HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n", Status::BadRequest),
            ("GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", Status::BodyRefused),
            ("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", Status::BodyRefused),
        ] {
            assert_eq!(status(head.as_bytes()), Some(wanted), "{head}");
        }
        assert_eq!(status(b"GET / HTTP/1.1\r\nA: \xff\r\n\r\n"), Some(Status::BadRequest));
    }

    #[test]
    fn a_head_has_a_bound() {
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MAX_HEADERS + 1));
        assert_eq!(status(many.as_bytes()), Some(Status::HeadTooLarge));
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(MAX_HEAD_BYTES));
        assert_eq!(status(long.as_bytes()), Some(Status::HeadTooLarge));
        let endless = format!("GET / HTTP/1.1\r\na: {}", "b".repeat(MAX_HEAD_BYTES));
        assert_eq!(status(endless.as_bytes()), Some(Status::HeadTooLarge));
        let fine = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MAX_HEADERS));
        assert!(Request::parse(fine.as_bytes()).unwrap().is_some());
    }
}
