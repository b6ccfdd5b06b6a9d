//! Fields of messages whose types are not known when they are read: the trace may describe an
//! extension of the schema after them.

use esatto_protozero::{Field, Value};

use super::record::{Get, Put as _};
use crate::string_table::Symbol;

/// Keys of an argument: without positions in lists, and with them. None at the top.
pub(super) type Keys = Option<(Symbol, Symbol)>;

/// A field of a track event.
const OF_EVENT: u64 = 0;
/// A field of a message inside, with the message's type and keys.
const OF_MESSAGE: u64 = 1;
/// A message with its type and keys.
const MESSAGE: u64 = 2;

/// Appends a field of a track event.
pub(super) fn put_event_field(out: &mut Vec<u8>, f: &Field<'_>) {
    out.number(OF_EVENT);
    put_field(out, f);
}

/// Appends a field of a message that has keys.
pub(super) fn put_message_field(out: &mut Vec<u8>, message: Symbol, keys: Keys, f: &Field<'_>) {
    out.number(OF_MESSAGE);
    put_place(out, message, keys);
    put_field(out, f);
}

/// Appends a message of an unknown type.
pub(super) fn put_message(out: &mut Vec<u8>, message: Symbol, keys: Keys, bytes: &[u8]) {
    out.number(MESSAGE);
    put_place(out, message, keys);
    out.index(bytes.len());
    out.extend(bytes);
}

fn put_place(out: &mut Vec<u8>, message: Symbol, keys: Keys) {
    out.symbol(Some(message));
    out.symbol(keys.map(|(flat_key, _)| flat_key));
    out.symbol(keys.map(|(_, key)| key));
}

fn put_field(out: &mut Vec<u8>, f: &Field<'_>) {
    let mut field = Vec::new();
    field.number(u64::from(f.id) << 3 | f.value.wire_type() as u64);
    match f.value {
        Value::Varint(v) => field.number(v),
        Value::Fixed64(v) => field.extend(v.to_le_bytes()),
        Value::Fixed32(v) => field.extend(v.to_le_bytes()),
        Value::Bytes(bytes) => {
            field.index(bytes.len());
            field.extend(bytes);
        }
    }
    out.index(field.len());
    out.extend(field);
}

/// A thing that was put off.
pub(super) enum Late<'l> {
    /// Fields of a track event.
    OfEvent(&'l [u8]),
    /// Fields of a message with this type and these keys.
    OfMessage(Symbol, Keys, &'l [u8]),
    /// A message with this type and these keys.
    Message(Symbol, Keys, &'l [u8]),
}

/// Iterates over what was put off.
pub(super) fn read(late: &[u8]) -> impl Iterator<Item = Late<'_>> {
    let mut late = Get(late);
    core::iter::from_fn(move || {
        if late.0.is_empty() {
            return None;
        }
        let kind = late.number();
        let place = (kind != OF_EVENT).then(|| (late.symbol(), late.symbol().zip(late.symbol())));
        let length = late.index();
        let (bytes, rest) = late.0.split_at_checked(length)?;
        late = Get(rest);
        match place {
            None => Some(Late::OfEvent(bytes)),
            Some((message, keys)) if kind == OF_MESSAGE => Some(Late::OfMessage(message?, keys, bytes)),
            Some((message, keys)) => Some(Late::Message(message?, keys, bytes)),
        }
    })
}
