//! Fields of messages whose types are not known when they are read: the trace may describe an
//! extension of the schema after them.

use esatto_protozero::{Field, Fields, Value};

use super::proto_args::{Keys, ProtoArgs};
use super::record::{Get, Put as _};
use crate::string_table::Symbol;

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

impl ProtoArgs<'_> {
    /// Adds the arguments of what was put off, now that the trace has told all types.
    pub(super) fn add_late(&mut self, late: &[u8]) {
        let mut late = Get(late);
        let mut event_counts = Vec::new();
        // Members of lists of the message that had the field before.
        let (mut place, mut counts) = ((None, None), Vec::new());
        while !late.0.is_empty() {
            let kind = late.number();
            let (mut message, mut keys) = (None, None);
            if kind != OF_EVENT {
                message = late.symbol();
                keys = late.symbol().zip(late.symbol());
            }
            let length = late.index();
            let Some((bytes, rest)) = late.0.split_at_checked(length) else { return };
            late = Get(rest);
            let name = message.map_or_else(String::new, |message| self.strings.owned(message));
            match kind {
                OF_EVENT => {
                    for f in Fields::new(bytes) {
                        self.add_event_field(f.id, &f, &mut event_counts);
                    }
                }
                OF_MESSAGE => {
                    if (message, keys) != place {
                        place = (message, keys);
                        counts.clear();
                    }
                    let types = self.types;
                    for f in Fields::new(bytes) {
                        if let Some(field) = types.field(&name, f.id) {
                            self.add_field(field, &f, keys, &mut counts, 0);
                        }
                    }
                }
                _ => {
                    let is_known = self.add_message(&name, bytes, keys, 0);
                    self.errors += i64::from(!is_known);
                }
            }
        }
    }
}
