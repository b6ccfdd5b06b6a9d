//! The end of a call: its status, and the time that it was allowed to take.

use core::time::Duration;

use http::{HeaderMap, HeaderName, StatusCode};

use crate::headers::single;

static STATUS: HeaderName = HeaderName::from_static("grpc-status");
static MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
static TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Texts for the codes of gRPC.
const NAMES: [&str; 17] = [
    "ok",
    "cancelled",
    "unknown",
    "invalid_argument",
    "deadline_exceeded",
    "not_found",
    "already_exists",
    "permission_denied",
    "resource_exhausted",
    "failed_precondition",
    "aborted",
    "out_of_range",
    "unimplemented",
    "internal",
    "unavailable",
    "data_loss",
    "unauthenticated",
];

/// The status that a call ends with, as a text for the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(&'static str);

impl Status {
    pub(crate) const OK: Self = Self(NAMES[0]);
    pub(crate) const CANCELLED: Self = Self(NAMES[1]);
    pub(crate) const UNKNOWN: Self = Self(NAMES[2]);
    pub(crate) const DEADLINE_EXCEEDED: Self = Self(NAMES[4]);
    /// The call failed without a status: the connection, or the body.
    pub(crate) const ERROR: Self = Self("error");

    /// Returns the status in headers or trailers of gRPC, if there is one.
    pub(crate) fn find(headers: &HeaderMap) -> Option<Self> {
        let code = core::str::from_utf8(headers.get(&STATUS)?.as_bytes()).ok();
        let code: Option<usize> = code.and_then(|code| code.parse().ok());
        Some(Self(code.and_then(|code| NAMES.get(code)).unwrap_or(&Self::UNKNOWN.0)))
    }

    /// Returns the status of a response that is not of gRPC.
    pub(crate) fn of_http(code: StatusCode) -> Self {
        if code.is_client_error() || code.is_server_error() { Self::ERROR } else { Self::OK }
    }

    /// Returns the status of a call of gRPC whose response has none. Proxies answer in this way.
    pub(crate) fn of_http_for_grpc(code: StatusCode) -> Self {
        Self(match code.as_u16() {
            401 => "unauthenticated",
            403 => "permission_denied",
            404 => "unimplemented",
            429 | 502..=504 => "unavailable",
            _ => Self::UNKNOWN.0,
        })
    }

    pub(crate) const fn text(self) -> &'static str {
        self.0
    }
}

/// Returns the message for people that belongs to the status.
pub(crate) fn message(headers: &HeaderMap) -> Option<&str> {
    single(headers, &MESSAGE)?.to_str().ok()
}

/// Returns the time that the caller allows: up to eight digits and a unit.
pub(crate) fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let (unit, digits) = single(headers, &TIMEOUT)?.as_bytes().split_last()?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    Some(match unit {
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn with(name: &HeaderName, value: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name.clone(), HeaderValue::from_static(value));
        headers
    }

    #[test]
    fn codes_of_grpc_have_names() {
        let of = |code| Status::find(&with(&STATUS, code));
        assert_eq!(of("0"), Some(Status::OK));
        assert_eq!(of("4"), Some(Status::DEADLINE_EXCEEDED));
        assert_eq!(of("16").map(Status::text), Some("unauthenticated"));
        for code in ["17", "-1", "", "99999999999999999999", "ok"] {
            assert_eq!(of(code), Some(Status::UNKNOWN), "{code}");
        }
        assert_eq!(Status::find(&HeaderMap::new()), None);
    }

    #[test]
    fn timeouts_have_digits_and_a_unit() {
        let of = |text| timeout(&with(&TIMEOUT, text));
        assert_eq!(of("100m"), Some(Duration::from_millis(100)));
        assert_eq!(of("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        assert_eq!(of("7u"), Some(Duration::from_micros(7)));
        for text in ["", "m", "1", "1x", "123456789S", "-1S", "1 S", "1.5S"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
