//! The header that carries the id of a call's flow (`docs/spec/ipc-tracing.md` §12): eight bytes,
//! little endian, in base64, as gRPC sends binary metadata.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::headers::single;

/// Name of the header.
pub(crate) static NAME: HeaderName = HeaderName::from_static("perfetto-flow-bin");

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Characters of eight bytes without padding.
const LENGTH: usize = 11;

/// Marks a byte that is no digit.
const NO_DIGIT: u8 = 0xff;

/// The value of each digit.
const DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 64 {
        digits[ALPHABET[value] as usize] = value as u8;
        value += 1;
    }
    digits
};

/// Puts the id into the headers of a request, in place of any other.
pub(crate) fn insert(id: u64, headers: &mut HeaderMap) {
    if let Ok(value) = HeaderValue::from_bytes(&encode(id)) {
        headers.insert(NAME.clone(), value);
    }
}

/// Returns the id in the headers of a request. A header that is repeated or malformed counts as
/// absent.
pub(crate) fn find(headers: &HeaderMap) -> Option<u64> {
    decode(single(headers, &NAME)?.as_bytes())
}

/// Encodes an id, without padding.
fn encode(id: u64) -> [u8; LENGTH] {
    // The digits are of the bytes in the order in which they are sent, the first one at the top.
    // The last digit has 4 bits of its own.
    let bits = u128::from(id.swap_bytes()) << 2;
    core::array::from_fn(|place| ALPHABET[(bits >> (6 * (LENGTH - 1 - place)) & 0x3f) as usize])
}

/// Decodes an id, with or without padding. 0 is no id.
fn decode(text: &[u8]) -> Option<u64> {
    let text = text.strip_suffix(b"=").unwrap_or(text);
    if text.len() != LENGTH {
        return None;
    }
    let mut bits = 0_u128;
    for &digit in text {
        let value = DIGITS[usize::from(digit)];
        if value == NO_DIGIT {
            return None;
        }
        bits = bits << 6 | u128::from(value);
    }
    let id = ((bits >> 2) as u64).swap_bytes();
    (bits & 3 == 0 && id != 0).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_sent_as_base64_of_its_bytes() {
        assert_eq!(&encode(u64::from_le_bytes(*b"perfetto")), b"cGVyZmV0dG8");
        assert_eq!(&encode(1), b"AQAAAAAAAAA");
        assert_eq!(&encode(u64::MAX), b"//////////8");
    }

    #[test]
    fn ids_come_back_with_and_without_padding() {
        for id in [1, 2, 0xff, 0x0123_4567_89ab_cdef, u64::MAX] {
            let text = encode(id);
            assert_eq!(decode(&text), Some(id));
            assert_eq!(decode(&[&text[..], b"="].concat()), Some(id));
        }
    }

    #[test]
    fn other_texts_are_no_ids() {
        let texts: [&[u8]; 9] = [
            b"",
            b"=",
            b"AAAAAAAAAAA",
            b"AQAAAAAAAAB",
            b"AQAAAAAAAA",
            b"AQAAAAAAAAA==",
            b"AQAAAAAAAA-",
            b"AQAAAAAAAAA,AQAAAAAAAAA",
            &[b'A'; 100_000],
        ];
        for text in texts {
            assert_eq!(decode(text), None, "{:?}", text.get(..30));
        }
    }

    #[test]
    fn a_repeated_header_counts_as_absent() {
        let mut headers = HeaderMap::new();
        insert(7, &mut headers);
        assert_eq!(find(&headers), Some(7));
        insert(8, &mut headers);
        assert_eq!(find(&headers), Some(8), "replaces the other one");
        headers.append(NAME.clone(), HeaderValue::from_static("AQAAAAAAAAA"));
        assert_eq!(find(&headers), None);
    }
}
