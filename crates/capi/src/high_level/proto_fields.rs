//! Fields that the program describes and the library encodes (`PerfettoTeHlProtoField`).

use esatto::Event;
use esatto_protozero::Message;

use crate::abi::{ProtoField, ProtoFieldVariant};
use crate::ffi::{Array, Ref};

/// Fields of one message.
pub(super) type ProtoFields<'a> = Array<'a, Ref<'a, ProtoField>>;

/// Deeper nesting of fields is left out.
const MAX_DEPTH: u32 = 100;

/// Collects the numbers of the strings that are interned, in the order of [`write_fields`].
pub(super) fn intern(event: &mut Event<'_>, fields: ProtoFields<'_>, iids: &mut Vec<u64>) {
    intern_nested(event, fields, MAX_DEPTH, iids);
}

fn intern_nested(event: &mut Event<'_>, fields: ProtoFields<'_>, depth: u32, iids: &mut Vec<u64>) {
    for field in fields.iter() {
        match field.variant() {
            ProtoFieldVariant::CstrInterned(field) => {
                let text = field.str.bytes().unwrap_or_default();
                iids.push(match field.interned_type_id {
                    0 => 0,
                    table => event.intern(table, text),
                });
            }
            ProtoFieldVariant::Nested(nested) if depth > 0 => intern_nested(event, nested.fields, depth - 1, iids),
            _ => {}
        }
    }
}

/// Writes fields of the program. Each interned one takes the next of `iids`, where 0 leaves the
/// field out.
pub(super) fn write_fields(message: &mut Message<'_>, fields: ProtoFields<'_>, iids: &mut dyn Iterator<Item = u64>) {
    write_nested(message, fields, MAX_DEPTH, iids);
}

fn write_nested(message: &mut Message<'_>, fields: ProtoFields<'_>, depth: u32, iids: &mut dyn Iterator<Item = u64>) {
    for field in fields.iter() {
        let Some(&ProtoField { id, .. }) = field.get() else { return };
        match field.variant() {
            ProtoFieldVariant::Cstr(field) => message.bytes(id, field.str.bytes().unwrap_or_default()),
            ProtoFieldVariant::Bytes(field) => message.bytes(id, field.bytes.get()),
            ProtoFieldVariant::Nested(nested) => {
                if depth > 0 {
                    write_nested(&mut message.begin(id), nested.fields, depth - 1, iids);
                }
            }
            ProtoFieldVariant::VarInt(field) => message.varint(id, field.value),
            ProtoFieldVariant::Fixed64(field) => message.fixed64(id, field.value),
            ProtoFieldVariant::Fixed32(field) => message.fixed32(id, field.value),
            ProtoFieldVariant::Double(field) => message.double(id, field.value),
            ProtoFieldVariant::Float(field) => message.float(id, field.value),
            ProtoFieldVariant::CstrInterned(_) => {
                if let Some(iid) = iids.next().filter(|&iid| iid != 0) {
                    message.varint(id, iid);
                }
            }
            ProtoFieldVariant::Unknown => {}
        }
    }
}
