//! What is written field by field.

use core::ptr;

use esatto::Event;
use esatto_protozero::Message;
use esatto_schema::track_event;

use super::scan::Rest;
use crate::abi::{self, extra, proto};
use crate::text;

/// Deeper nesting of fields is left out.
const MAX_DEPTH: u32 = 100;

/// Adds the name of a dynamic category.
pub(super) fn category(event: &mut Event<'_>, name: &[u8]) {
    event.fields().message().bytes(track_event::field::CATEGORIES, name);
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
        Rest::Annotation(extra) => unsafe { annotation(event, *extra) },
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

/// An annotation that the trace point does not know.
///
/// # Safety
///
/// `extra` begins one of the struct that its type says.
unsafe fn annotation(event: &mut Event<'_>, extra: *const abi::Extra) {
    macro_rules! add {
        ($type:ident, $value:expr) => {{
            // SAFETY: the type says that it is one.
            let whole = unsafe { &*extra.cast::<abi::$type>() };
            // SAFETY: a string, or null.
            match unsafe { text::bytes(whole.name) } {
                Some(name) => event.annotate(&String::from_utf8_lossy(name), $value(whole.value)),
                None => event.annotate_nameless($value(whole.value)),
            }
        }};
    }
    // SAFETY: the caller's promise.
    match unsafe { (*extra).kind } {
        extra::DEBUG_ARG_BOOL => add!(ExtraDebugArgBool, |value| value == 1),
        extra::DEBUG_ARG_UINT64 => add!(ExtraDebugArgUint64, |value: u64| value),
        extra::DEBUG_ARG_INT64 => add!(ExtraDebugArgInt64, |value: i64| value),
        extra::DEBUG_ARG_DOUBLE => add!(ExtraDebugArgDouble, |value: f64| value),
        extra::DEBUG_ARG_POINTER => add!(ExtraDebugArgPointer, ptr::without_provenance::<()>),
        extra::DEBUG_ARG_STRING => add!(ExtraDebugArgString, |value| {
            // SAFETY: a string, or null.
            String::from_utf8_lossy(unsafe { text::bytes(value) }.unwrap_or_default())
        }),
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
