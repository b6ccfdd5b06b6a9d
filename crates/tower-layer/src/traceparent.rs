//! The header `traceparent` of W3C Trace Context, which other tracing libraries send.

use http::{HeaderMap, HeaderName};

use crate::headers::single;

static NAME: HeaderName = HeaderName::from_static("traceparent");

/// Length of the fields that all versions have: `00-<trace id>-<parent id>-<flags>`.
const LENGTH: usize = 2 + 1 + 32 + 1 + 16 + 1 + 2;

/// A valid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceParent<'h> {
    /// 32 hexadecimal digits, which all calls of a distributed request have in common.
    pub(crate) trace_id: &'h str,
    /// The span that made the call.
    pub(crate) parent_id: u64,
    /// Set if the sender may have recorded it.
    pub(crate) is_sampled: bool,
}

impl<'h> TraceParent<'h> {
    /// Returns the header of a request. A header that is repeated or invalid counts as absent.
    pub(crate) fn find(headers: &'h HeaderMap) -> Option<Self> {
        Self::parse(single(headers, &NAME)?.as_bytes())
    }

    fn parse(text: &'h [u8]) -> Option<Self> {
        let version = hex(text.get(..2)?)?;
        // Later versions may add fields.
        let has_more = match text.get(LENGTH) {
            None => false,
            Some(b'-') => true,
            Some(_) => return None,
        };
        if version == 0xff || (version == 0 && has_more) {
            return None;
        }
        let [dash, trace_id, other_dash, parent_id, last_dash, flags] =
            [2..3, 3..35, 35..36, 36..52, 52..53, 53..LENGTH].map(|range| text.get(range).unwrap_or_default());
        if [dash, other_dash, last_dash].iter().any(|dash| *dash != b"-") {
            return None;
        }
        let (high, low) = trace_id.split_at_checked(16)?;
        let parent_id = hex(parent_id)?;
        let is_zero = hex(high)? | hex(low)? == 0 || parent_id == 0;
        let is_sampled = hex(flags)? & 1 != 0;
        let trace_id = core::str::from_utf8(trace_id).ok()?;
        (!is_zero).then_some(Self { trace_id, parent_id, is_sampled })
    }
}

/// Returns the number that up to 16 lower-case hexadecimal digits stand for.
fn hex(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(value))
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_valid_header_has_a_trace_a_parent_and_flags() {
        let found = TraceParent::parse(VALID.as_bytes()).expect("is valid");
        assert_eq!(found.trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!((found.parent_id, found.is_sampled), (0x00f0_67aa_0ba9_02b7, true));
        let unsampled = VALID.replace("-01", "-00");
        assert!(!TraceParent::parse(unsampled.as_bytes()).expect("is valid").is_sampled);
        let later = VALID.replacen("00", "cc", 1) + "-what-comes-later";
        assert!(TraceParent::parse(later.as_bytes()).is_some());
    }

    #[test]
    fn invalid_headers_count_as_absent() {
        let mut invalid = vec![
            VALID.replacen("00", "ff", 1),
            VALID.to_owned() + "-more",
            VALID.replace("4bf92f3577b34da6a3ce929d0e0e4736", "00000000000000000000000000000000"),
            VALID.replace("00f067aa0ba902b7", "0000000000000000"),
            VALID.to_uppercase(),
            VALID.replace('-', "_"),
            VALID.replacen("00", "cc", 1) + "x",
        ];
        invalid.extend((0..VALID.len()).map(|length| VALID[..length].to_owned()));
        for text in invalid {
            assert_eq!(TraceParent::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_repeated_header_counts_as_absent() {
        let mut headers = HeaderMap::new();
        headers.append(NAME.clone(), HeaderValue::from_static(VALID));
        assert!(TraceParent::find(&headers).is_some());
        headers.append(NAME.clone(), HeaderValue::from_static(VALID));
        assert_eq!(TraceParent::find(&headers), None);
    }
}
