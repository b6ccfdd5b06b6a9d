//! Conversion of a scalar from its spelling into its encoding.

use prost_reflect::Kind;
use prost_reflect::prost::encoding::{WireType, encode_varint};

/// A number as it is written in the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number<'t> {
    pub(crate) negative: bool,
    pub(crate) text: &'t str,
}

/// Reason why a spelling is no value of a field.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoValue {
    /// The spelling stands for another type.
    Mismatch,
    /// The number does not fit; the text names the allowed range.
    OutOfRange(String),
}

/// Encodes a number for an integer or floating point field, without a tag.
///
/// As in the reference, digits are decimal even after a leading zero, and a decimal point cuts off
/// the fraction of an integer. A number that the type cannot hold is an error here, as in `protoc`;
/// the reference silently takes the low bits.
pub(crate) fn number(kind: &Kind, number: Number<'_>, out: &mut Vec<u8>) -> Result<(), NoValue> {
    match kind {
        Kind::Double => out.extend(float(number)?.to_le_bytes()),
        Kind::Float => {
            #[expect(clippy::cast_possible_truncation, reason = "rounds")]
            let value = float(number)? as f32;
            out.extend(value.to_le_bytes());
        }
        // Sign-extended if it is signed.
        Kind::Int32 | Kind::Uint32 | Kind::Int64 | Kind::Uint64 => encode_varint(integer(kind, number)?, out),
        Kind::Sint32 | Kind::Sint64 => encode_varint(zigzag(integer(kind, number)? as i64), out),
        Kind::Fixed32 | Kind::Sfixed32 => out.extend(low32(integer(kind, number)?).to_le_bytes()),
        Kind::Fixed64 | Kind::Sfixed64 => out.extend(integer(kind, number)?.to_le_bytes()),
        Kind::Bool => {
            let value = integer(kind, number).map_err(|_| NoValue::Mismatch)?;
            encode_varint(value, out);
        }
        Kind::Enum(_) | Kind::String | Kind::Bytes | Kind::Message(_) => return Err(NoValue::Mismatch),
    }
    Ok(())
}

/// Encodes a number as a varint, of ten bytes if it is negative.
#[expect(clippy::cast_sign_loss, reason = "two's complement")]
pub(crate) fn sign_extended(number: i32, out: &mut Vec<u8>) {
    encode_varint(i64::from(number) as u64, out);
}

#[expect(clippy::cast_sign_loss, reason = "two's complement")]
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// Parses an enum number.
pub(crate) fn enum_number(number: Number<'_>) -> Option<i32> {
    if number.text.contains('.') {
        return None;
    }
    let value = integer(&Kind::Int32, number).ok()?;
    i32::try_from(value as i64).ok()
}

/// Returns the wire type of an unpacked field of this type.
pub(crate) fn wire_type(kind: &Kind) -> WireType {
    match kind {
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => WireType::SixtyFourBit,
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => WireType::ThirtyTwoBit,
        Kind::String | Kind::Bytes | Kind::Message(_) => WireType::LengthDelimited,
        _ => WireType::Varint,
    }
}

/// Returns the name of the type for error messages.
pub(crate) fn type_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Double => "double",
        Kind::Float => "float",
        Kind::Int32 => "int32",
        Kind::Int64 => "int64",
        Kind::Uint32 => "uint32",
        Kind::Uint64 => "uint64",
        Kind::Sint32 => "sint32",
        Kind::Sint64 => "sint64",
        Kind::Fixed32 => "fixed32",
        Kind::Fixed64 => "fixed64",
        Kind::Sfixed32 => "sfixed32",
        Kind::Sfixed64 => "sfixed64",
        Kind::Bool => "bool",
        Kind::String => "string",
        Kind::Bytes => "bytes",
        Kind::Message(_) => "message",
        Kind::Enum(_) => "enum",
    }
}

pub(crate) fn low32(value: u64) -> u32 {
    (value & 0xffff_ffff) as u32
}

/// Returns the least and the largest value of an integer type.
fn range(kind: &Kind) -> (i64, u64) {
    match kind {
        Kind::Bool => (0, 1),
        Kind::Uint32 | Kind::Fixed32 => (0, u32::MAX.into()),
        Kind::Uint64 | Kind::Fixed64 => (0, u64::MAX),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => (i64::MIN, i64::MAX.unsigned_abs()),
        _ => (i32::MIN.into(), i32::MAX.unsigned_abs().into()),
    }
}

/// Returns the two's complement of the number, if the type can hold it.
fn integer(kind: &Kind, number: Number<'_>) -> Result<u64, NoValue> {
    let magnitude = magnitude(number.text)?;
    let (least, most) = range(kind);
    let out_of_range = || {
        let sign = if number.negative { "-" } else { "" };
        NoValue::OutOfRange(format!("{sign}{} is out of range, allowed is {least} to {most}", number.text))
    };
    let magnitude = magnitude.ok_or_else(out_of_range)?;
    if number.negative {
        if magnitude > least.unsigned_abs() {
            return Err(out_of_range());
        }
        Ok(magnitude.wrapping_neg())
    } else if magnitude > most {
        Err(out_of_range())
    } else {
        Ok(magnitude)
    }
}

/// Returns the digits before a decimal point as a number; `Ok(None)` if it exceeds 64 bits.
fn magnitude(text: &str) -> Result<Option<u64>, NoValue> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
            if fraction.bytes().any(|b| !b.is_ascii_digit() && b != b'.') {
                return Err(NoValue::Mismatch);
            }
            (whole, 10)
        }
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(NoValue::Mismatch);
    }
    Ok(u64::from_str_radix(digits, radix).ok())
}

fn float(number: Number<'_>) -> Result<f64, NoValue> {
    let text = number.text.strip_suffix(['f', 'F']).unwrap_or(number.text);
    // Rust's parser also accepts words, but a number begins with a digit or a dot.
    let value: f64 = match text.parse() {
        Ok(value) => value,
        Err(_) if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') => {
            let second_dot = text.match_indices('.').nth(1).map_or(text.len(), |(at, _)| at);
            text[..second_dot].parse().map_err(|_| NoValue::Mismatch)?
        }
        Err(_) => return Err(NoValue::Mismatch),
    };
    Ok(if number.negative { -value } else { value })
}

/// An invalid escape: its position and length in the string, and its kind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadEscape {
    pub(crate) at: usize,
    pub(crate) length: usize,
    pub(crate) unknown: bool,
}

/// Resolves the escapes of a string's content (without quotes) and appends the bytes. Continues
/// after an invalid escape.
pub(crate) fn unescape(content: &[u8], out: &mut Vec<u8>, bad: &mut Vec<BadEscape>) {
    let mut at = 0;
    while let Some(&b) = content.get(at) {
        if b != b'\\' {
            out.push(b);
            at += 1;
            continue;
        }
        let rest = &content[at + 1..];
        let simple = match rest.first() {
            Some(b'a') => Some(0x07),
            Some(b'b') => Some(0x08),
            Some(b'f') => Some(0x0c),
            Some(b'n') => Some(b'\n'),
            Some(b'r') => Some(b'\r'),
            Some(b't') => Some(b'\t'),
            Some(b'v') => Some(0x0b),
            Some(b @ (b'\\' | b'\'' | b'"' | b'?')) => Some(*b),
            _ => None,
        };
        let (length, good) = match rest.first() {
            _ if simple.is_some() => {
                out.extend(simple);
                (1, true)
            }
            Some(b'0'..=b'7') => digits(rest, 8, 3, out, |value| u8::try_from(value).ok().map(|b| vec![b])),
            Some(b'x' | b'X') => {
                let (length, good) = digits(&rest[1..], 16, 2, out, |value| u8::try_from(value).ok().map(|b| vec![b]));
                (length + 1, good)
            }
            Some(marker @ (b'u' | b'U')) => {
                let wanted = if *marker == b'u' { 4 } else { 8 };
                let character = |value| char::from_u32(value).map(|c| c.to_string().into_bytes());
                let (length, good) = digits(&rest[1..], 16, wanted, out, character);
                (length + 1, good && length == wanted)
            }
            _ => {
                bad.push(BadEscape { at, length: 2, unknown: true });
                at += 1 + usize::from(!rest.is_empty());
                continue;
            }
        };
        if !good {
            bad.push(BadEscape { at, length: 1 + length, unknown: false });
        }
        at += 1 + length;
    }
}

/// Reads up to `most` digits. Returns how many there were, and whether they made bytes.
fn digits(
    text: &[u8],
    radix: u32,
    most: usize,
    out: &mut Vec<u8>,
    bytes: impl Fn(u32) -> Option<Vec<u8>>,
) -> (usize, bool) {
    let is_digit = |b: &&u8| char::from(**b).is_digit(radix);
    let count = text.iter().take(most).take_while(is_digit).count();
    let value = text[..count]
        .iter()
        .try_fold(0u32, |value, &b| value.checked_mul(radix)?.checked_add(char::from(b).to_digit(radix)?));
    match value.filter(|_| count > 0).and_then(bytes) {
        Some(bytes) => {
            out.extend(bytes);
            (count, true)
        }
        None => (count, false),
    }
}
