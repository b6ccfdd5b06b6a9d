//! What is written field by field.

use esatto::Event;
use esatto_protozero::Message;
use esatto_schema::{debug_annotation, track_event};

use super::{Annotation, Rest};
use crate::abi::{self, extra, proto};
use crate::text;

/// Deeper nesting of fields is left out.
const MAX_DEPTH: u32 = 100;

/// Adds an annotation whose name is written in full.
pub(super) fn annotate(event: &mut Event<'_>, name: &str, value: Annotation<'_>) {
    match value {
        Annotation::U64(v) => event.annotate(name, v),
        Annotation::I64(v) => event.annotate(name, v),
        Annotation::F64(v) => event.annotate(name, v),
        Annotation::Bool(v) => event.annotate(name, v),
        Annotation::Str(v) => event.annotate(name, v),
        Annotation::Pointer(v) => event.annotate(name, core::ptr::without_provenance::<()>(v as usize)),
    }
}

/// Adds the name of a dynamic category.
pub(super) fn category(event: &mut Event<'_>, name: &[u8]) {
    event.fields().message().bytes(track_event::field::CATEGORIES, name);
}

/// Adds a name that is not UTF-8.
pub(super) fn name(event: &mut Event<'_>, name: &[u8]) {
    event.fields().message().string(track_event::field::NAME, &String::from_utf8_lossy(name));
}

/// Adds something else.
///
/// # Safety
///
/// It is as the program handed it over, and valid.
pub(super) unsafe fn write(event: &mut Event<'_>, rest: &Rest<'_>) {
    match rest {
        Rest::Correlation(id) => event.correlate(*id),
        Rest::CorrelationText(id) => event.correlate(&*String::from_utf8_lossy(id)),
        // SAFETY: the caller's promise.
        Rest::Annotation(name, extra) => unsafe { odd_annotation(event.fields().message(), *name, *extra) },
        Rest::Fields(fields) => {
            // Numbers first: they are the sequence's, and the message is open later.
            let mut iids = Vec::new();
            // SAFETY: the caller's promise.
            unsafe { intern(event, *fields, MAX_DEPTH, &mut iids) };
            // SAFETY: as above.
            unsafe { write_fields(event.fields().message(), *fields, MAX_DEPTH, &mut iids.into_iter()) };
        }
    }
}

/// An annotation without name, or with strings that are not UTF-8.
///
/// # Safety
///
/// `extra` begins one of the struct that its type says.
unsafe fn odd_annotation(event: &mut Message<'_>, name: Option<&[u8]>, extra: *const abi::Extra) {
    use debug_annotation::field;
    let mut annotation = event.begin(track_event::field::DEBUG_ANNOTATIONS);
    if let Some(name) = name {
        annotation.string(field::NAME, &String::from_utf8_lossy(name));
    }
    macro_rules! value {
        ($type:ident) => {
            // SAFETY: the type says that it is one.
            unsafe { (*extra.cast::<abi::$type>()).value }
        };
    }
    // SAFETY: the caller's promise.
    match unsafe { (*extra).kind } {
        extra::DEBUG_ARG_BOOL => annotation.bool(field::BOOL_VALUE, value!(ExtraDebugArgBool) == 1),
        extra::DEBUG_ARG_UINT64 => annotation.varint(field::UINT_VALUE, value!(ExtraDebugArgUint64)),
        extra::DEBUG_ARG_INT64 => annotation.int(field::INT_VALUE, value!(ExtraDebugArgInt64)),
        extra::DEBUG_ARG_DOUBLE => annotation.double(field::DOUBLE_VALUE, value!(ExtraDebugArgDouble)),
        extra::DEBUG_ARG_POINTER => annotation.varint(field::POINTER_VALUE, value!(ExtraDebugArgPointer) as u64),
        extra::DEBUG_ARG_STRING => {
            let value = value!(ExtraDebugArgString);
            // SAFETY: a string, or null.
            let value = unsafe { text::bytes(value) }.unwrap_or_default();
            annotation.string(field::STRING_VALUE, &String::from_utf8_lossy(value));
        }
        _ => {}
    }
}

/// Collects the numbers of the strings that are interned, in the order of [`write_fields`].
///
/// # Safety
///
/// As [`write_fields`].
unsafe fn intern(event: &mut Event<'_>, fields: *const *const abi::ProtoField, depth: u32, iids: &mut Vec<u64>) {
    // SAFETY: the caller's promise.
    for field in unsafe { text::pointers(fields) } {
        // SAFETY: as above.
        match unsafe { (*field).kind } {
            proto::CSTR_INTERNED => {
                // SAFETY: the type says that it is one.
                let field = unsafe { &*field.cast::<abi::ProtoFieldCstrInterned>() };
                // SAFETY: the caller's promise.
                let text = unsafe { text::bytes(field.str) }.unwrap_or_default();
                iids.push(match field.interned_type_id {
                    0 => 0,
                    table => event.intern(table, text),
                });
            }
            proto::NESTED if depth > 0 => {
                // SAFETY: the type says that it is one.
                let nested = unsafe { (*field.cast::<abi::ProtoFieldNested>()).fields };
                // SAFETY: the caller's promise.
                unsafe { intern(event, nested, depth - 1, iids) };
            }
            _ => {}
        }
    }
}

/// Writes fields of the program. Interned ones take the next number; 0 leaves them out.
///
/// # Safety
///
/// An array that ends with null, of fields that each begin one of the struct that its type says.
pub(super) unsafe fn write_fields(
    message: &mut Message<'_>,
    fields: *const *const abi::ProtoField,
    depth: u32,
    iids: &mut dyn Iterator<Item = u64>,
) {
    // SAFETY: the caller's promise.
    for field in unsafe { text::pointers(fields) } {
        macro_rules! as_struct {
            ($type:ident) => {
                // SAFETY: the type says that it is one.
                unsafe { &*field.cast::<abi::$type>() }
            };
        }
        // SAFETY: the caller's promise.
        let abi::ProtoField { kind, id } = *unsafe { &*field };
        match kind {
            proto::CSTR => {
                let text = as_struct!(ProtoFieldCstr).str;
                // SAFETY: the caller's promise: a string, or null.
                let text = unsafe { text::bytes(text) }.unwrap_or_default();
                message.bytes(id, text);
            }
            proto::BYTES => {
                let field = as_struct!(ProtoFieldBytes);
                // SAFETY: the caller's promise: as many bytes, or null.
                message.bytes(id, unsafe { text::block(field.buf, field.len) });
            }
            proto::NESTED if depth > 0 => {
                let nested = as_struct!(ProtoFieldNested).fields;
                // SAFETY: the caller's promise.
                unsafe { write_fields(&mut message.begin(id), nested, depth - 1, iids) };
            }
            proto::VARINT => message.varint(id, as_struct!(ProtoFieldVarInt).value),
            proto::FIXED64 => message.fixed64(id, as_struct!(ProtoFieldFixed64).value),
            proto::FIXED32 => message.fixed32(id, as_struct!(ProtoFieldFixed32).value),
            proto::DOUBLE => message.double(id, as_struct!(ProtoFieldDouble).value),
            proto::FLOAT => message.float(id, as_struct!(ProtoFieldFloat).value),
            proto::CSTR_INTERNED => {
                if let Some(iid) = iids.next().filter(|&iid| iid != 0) {
                    message.varint(id, iid);
                }
            }
            _ => {}
        }
    }
}
