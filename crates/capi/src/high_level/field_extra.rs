//! Extras that no argument of the SDK's trace points expresses. They are written field by field.

use core::ptr;

use esatto::Event;
use esatto_schema::track_event;

use super::proto_fields::{ProtoFields, intern, write_fields};
use crate::abi::{Extra, ExtraVariant};
use crate::ffi::{Ref, Str};

#[derive(Clone, Copy)]
pub(super) enum FieldExtra<'a> {
    Correlation(u64),
    CorrelationText(&'a [u8]),
    /// An annotation without a name, or with a text that is not UTF-8; or any annotation if names
    /// are written in full.
    Annotation(Ref<'a, Extra>),
    Fields(ProtoFields<'a>),
}

impl FieldExtra<'_> {
    pub(super) fn write(&self, event: &mut Event<'_>) {
        match *self {
            Self::Correlation(id) => event.correlate(id),
            Self::CorrelationText(id) => event.correlate(&*String::from_utf8_lossy(id)),
            Self::Annotation(extra) => write_annotation(event, extra),
            Self::Fields(fields) => {
                // Strings are interned first, because the sequence does that, and later it has an
                // open message.
                let mut iids = Vec::new();
                intern(event, fields, &mut iids);
                write_fields(event.fields().message(), fields, &mut iids.into_iter());
            }
        }
    }
}

/// Writes the name of a dynamic category.
pub(super) fn write_category(event: &mut Event<'_>, name: &[u8]) {
    event.fields().message().bytes(track_event::field::CATEGORIES, name);
}

fn write_annotation(event: &mut Event<'_>, extra: Ref<'_, Extra>) {
    macro_rules! add {
        ($name:expr, $value:expr) => {{
            let name: Str<'_> = $name;
            match name.bytes() {
                Some(name) => event.annotate(&String::from_utf8_lossy(name), $value),
                None => event.annotate_nameless($value),
            }
        }};
    }
    match extra.variant() {
        ExtraVariant::DebugArgBool(arg) => add!(arg.name, arg.value == 1),
        ExtraVariant::DebugArgUint64(arg) => add!(arg.name, arg.value),
        ExtraVariant::DebugArgInt64(arg) => add!(arg.name, arg.value),
        ExtraVariant::DebugArgDouble(arg) => add!(arg.name, arg.value),
        ExtraVariant::DebugArgPointer(arg) => add!(arg.name, ptr::without_provenance::<()>(arg.value)),
        ExtraVariant::DebugArgString(arg) => {
            add!(arg.name, String::from_utf8_lossy(arg.value.bytes().unwrap_or_default()))
        }
        _ => {}
    }
}
