//! Printer for encoded messages.

use core::fmt::Write as _;

use prost_reflect::prost::encoding::{WireType, decode_key, decode_varint};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use crate::parser::MAX_NESTING;
use crate::scalar_encoding::{low32, wire_type};

/// Prints an encoded message in the text format, one field per line, in the order of the encoding.
///
/// A field that the descriptor does not know, or that has another encoding than it says, is printed
/// as a comment with its number. So the text can be parsed again.
pub fn to_text(message: &MessageDescriptor, bytes: &[u8]) -> String {
    let mut out = String::new();
    fields(message, bytes, 0, &mut out);
    out
}

enum Raw<'b> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'b [u8]),
    Fixed32([u8; 4]),
    /// The bytes between the tags of a group.
    Group(&'b [u8]),
}

fn fields(message: &MessageDescriptor, mut bytes: &[u8], depth: usize, out: &mut String) {
    while !bytes.is_empty() {
        let Some((number, raw)) = next(&mut bytes) else {
            indent(depth, out);
            let _ = writeln!(out, "# {} malformed bytes", bytes.len());
            return;
        };
        let known = message.get_field(number);
        match known {
            Some(known) => field(&known, known.name(), &raw, depth, out),
            None => match message.get_extension(number) {
                Some(extension) => {
                    let name = format!("[{}]", extension.full_name());
                    value(
                        &name,
                        &extension.kind(),
                        extension.is_packed() || extension.is_list(),
                        number,
                        &raw,
                        depth,
                        out,
                    );
                }
                None => unknown(number, &raw, depth, out),
            },
        }
    }
}

fn next<'b>(bytes: &mut &'b [u8]) -> Option<(u32, Raw<'b>)> {
    let mut rest = *bytes;
    let (number, wire) = decode_key(&mut rest).ok()?;
    let raw = match wire {
        WireType::Varint => Raw::Varint(decode_varint(&mut rest).ok()?),
        WireType::SixtyFourBit => Raw::Fixed64(take(&mut rest, 8)?.try_into().ok()?),
        WireType::ThirtyTwoBit => Raw::Fixed32(take(&mut rest, 4)?.try_into().ok()?),
        WireType::LengthDelimited => {
            let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
            Raw::Bytes(take(&mut rest, length)?)
        }
        WireType::StartGroup => Raw::Group(group(number, &mut rest)?),
        WireType::EndGroup => return None,
    };
    *bytes = rest;
    Some((number, raw))
}

/// Takes the content and the end of a group that has just begun.
fn group<'b>(number: u32, bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let begin = *bytes;
    let mut open = vec![number];
    while let Some(&innermost) = open.last() {
        let before = bytes.len();
        let (number, wire) = decode_key(bytes).ok()?;
        match wire {
            WireType::StartGroup if open.len() <= MAX_NESTING => open.push(number),
            WireType::EndGroup if number == innermost => {
                open.pop();
                if open.is_empty() {
                    return Some(&begin[..begin.len() - before]);
                }
            }
            WireType::StartGroup | WireType::EndGroup => return None,
            WireType::Varint => _ = decode_varint(bytes).ok()?,
            WireType::SixtyFourBit => _ = take(bytes, 8)?,
            WireType::ThirtyTwoBit => _ = take(bytes, 4)?,
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(bytes).ok()?).ok()?;
                take(bytes, length)?;
            }
        }
    }
    None
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (head, tail) = bytes.split_at_checked(count)?;
    *bytes = tail;
    Some(head)
}

fn field(known: &FieldDescriptor, name: &str, raw: &Raw<'_>, depth: usize, out: &mut String) {
    value(name, &known.kind(), known.is_list(), known.number(), raw, depth, out);
}

fn value(name: &str, kind: &Kind, list: bool, number: u32, raw: &Raw<'_>, depth: usize, out: &mut String) {
    match (kind, raw) {
        (Kind::Message(inner), Raw::Bytes(bytes) | Raw::Group(bytes)) if depth < MAX_NESTING => {
            indent(depth, out);
            // The text format names a group by its type.
            let name = if matches!(raw, Raw::Group(_)) { inner.name() } else { name };
            let _ = writeln!(out, "{name} {{");
            fields(inner, bytes, depth + 1, out);
            indent(depth, out);
            out.push_str("}\n");
        }
        (Kind::String | Kind::Bytes, Raw::Bytes(bytes)) => {
            indent(depth, out);
            let _ = writeln!(out, "{name}: {}", quoted(bytes));
        }
        (_, Raw::Bytes(packed)) if list && wire_type(kind) != WireType::LengthDelimited => {
            let mut rest = *packed;
            while !rest.is_empty() {
                let element = match wire_type(kind) {
                    WireType::SixtyFourBit => take(&mut rest, 8).and_then(|b| b.try_into().ok()).map(Raw::Fixed64),
                    WireType::ThirtyTwoBit => take(&mut rest, 4).and_then(|b| b.try_into().ok()).map(Raw::Fixed32),
                    _ => decode_varint(&mut rest).ok().map(Raw::Varint),
                };
                let Some(element) = element else {
                    unknown(number, &Raw::Bytes(rest), depth, out);
                    return;
                };
                value(name, kind, false, number, &element, depth, out);
            }
        }
        _ => match scalar(kind, raw) {
            Some(text) => {
                indent(depth, out);
                let _ = writeln!(out, "{name}: {text}");
            }
            None => unknown(number, raw, depth, out),
        },
    }
}

fn scalar(kind: &Kind, raw: &Raw<'_>) -> Option<String> {
    Some(match (kind, raw) {
        (Kind::Int32, Raw::Varint(v)) => (low32(*v) as i32).to_string(),
        (Kind::Int64, Raw::Varint(v)) => (*v as i64).to_string(),
        (Kind::Uint32, Raw::Varint(v)) => low32(*v).to_string(),
        (Kind::Uint64, Raw::Varint(v)) => v.to_string(),
        (Kind::Sint32, Raw::Varint(v)) => {
            let v = low32(*v);
            ((v >> 1) as i32 ^ -((v & 1) as i32)).to_string()
        }
        (Kind::Sint64, Raw::Varint(v)) => ((*v >> 1) as i64 ^ -((*v & 1) as i64)).to_string(),
        (Kind::Bool, Raw::Varint(v)) => (*v != 0).to_string(),
        (Kind::Enum(of), Raw::Varint(v)) => match of.get_value(low32(*v) as i32) {
            Some(value) => value.name().to_owned(),
            // The text of a proto2 enum accepts no other numbers.
            None if of.parent_file().syntax() == prost_reflect::Syntax::Proto2 => return None,
            None => (low32(*v) as i32).to_string(),
        },
        (Kind::Fixed64, Raw::Fixed64(b)) => u64::from_le_bytes(*b).to_string(),
        (Kind::Sfixed64, Raw::Fixed64(b)) => i64::from_le_bytes(*b).to_string(),
        (Kind::Double, Raw::Fixed64(b)) => float(f64::from_le_bytes(*b)),
        (Kind::Fixed32, Raw::Fixed32(b)) => u32::from_le_bytes(*b).to_string(),
        (Kind::Sfixed32, Raw::Fixed32(b)) => i32::from_le_bytes(*b).to_string(),
        (Kind::Float, Raw::Fixed32(b)) => {
            let value = f32::from_le_bytes(*b);
            // Print the shortest digits for this float, not for the float as a double.
            if value.is_finite() { format!("{value:?}") } else { float(f64::from(value)) }
        }
        _ => return None,
    })
}

fn float(value: f64) -> String {
    if value.is_nan() {
        "nan".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "inf".to_owned() } else { "-inf".to_owned() }
    } else {
        format!("{value:?}")
    }
}

fn unknown(number: u32, raw: &Raw<'_>, depth: usize, out: &mut String) {
    indent(depth, out);
    let _ = match raw {
        Raw::Varint(v) => writeln!(out, "# {number}: {v}"),
        Raw::Fixed64(b) => writeln!(out, "# {number}: {:#018x}", u64::from_le_bytes(*b)),
        Raw::Fixed32(b) => writeln!(out, "# {number}: {:#010x}", u32::from_le_bytes(*b)),
        Raw::Bytes(bytes) => writeln!(out, "# {number}: {}", quoted(bytes)),
        Raw::Group(bytes) => writeln!(out, "# {number}: a group of {} bytes", bytes.len()),
    };
}

/// Returns a string literal. Escapes characters that are not printable, and bytes that are not
/// UTF-8.
fn quoted(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c if c.is_control() => {
                    for b in c.to_string().bytes() {
                        let _ = write!(out, "\\{b:03o}");
                    }
                }
                c => out.push(c),
            }
        }
        for b in chunk.invalid() {
            let _ = write!(out, "\\{b:03o}");
        }
    }
    out.push('"');
    out
}

fn indent(depth: usize, out: &mut String) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}
