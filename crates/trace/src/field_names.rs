//! Names of fields, from the schema's own descriptors.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use esatto_protozero::Fields;
use esatto_schema::FILE_DESCRIPTOR_SET;

// The field numbers of google/protobuf/descriptor.proto that this module needs.
const SET_FILE: u32 = 1;
const FILE_MESSAGE: u32 = 4;
const MESSAGE_NAME: u32 = 1;
const MESSAGE_FIELD: u32 = 2;
const MESSAGE_NESTED: u32 = 3;
const FIELD_NAME: u32 = 1;
const FIELD_NUMBER: u32 = 3;

/// The names of a message's fields.
pub(crate) type FieldNames = BTreeMap<u32, String>;

/// Returns the fields of `TracePacket`.
pub(crate) fn trace_packet() -> &'static FieldNames {
    static NAMES: OnceLock<FieldNames> = OnceLock::new();
    NAMES.get_or_init(|| fields_of(&["TracePacket"]))
}

/// Returns the fields of `TracingServiceEvent`.
pub(crate) fn service_event() -> &'static FieldNames {
    static NAMES: OnceLock<FieldNames> = OnceLock::new();
    NAMES.get_or_init(|| fields_of(&["TracingServiceEvent"]))
}

/// Returns the fields of `TraceStats.BufferStats`.
pub(crate) fn buffer_stats() -> &'static FieldNames {
    static NAMES: OnceLock<FieldNames> = OnceLock::new();
    NAMES.get_or_init(|| fields_of(&["TraceStats", "BufferStats"]))
}

/// Returns the name of a field, or a stand-in with its number.
pub(crate) fn name(names: &FieldNames, number: u32) -> String {
    names.get(&number).cloned().unwrap_or_else(|| format!("field_{number}"))
}

fn fields_of(path: &[&str]) -> FieldNames {
    let messages = Fields::new(FILE_DESCRIPTOR_SET)
        .filter(|f| f.id == SET_FILE)
        .flat_map(|file| Fields::new(file.as_bytes()).filter(|f| f.id == FILE_MESSAGE))
        .map(|message| message.as_bytes());
    let found = path.iter().enumerate().fold(None, |outer: Option<&[u8]>, (depth, wanted)| {
        let named = |message: &&[u8]| string(message, MESSAGE_NAME).is_some_and(|name| name == wanted.as_bytes());
        if depth == 0 {
            messages.clone().find(named)
        } else {
            let nested = Fields::new(outer?).filter(|f| f.id == MESSAGE_NESTED).map(|f| f.as_bytes());
            nested.into_iter().find(named)
        }
    });
    let fields = Fields::new(found.unwrap_or_default()).filter(|f| f.id == MESSAGE_FIELD);
    fields
        .filter_map(|f| {
            let number = Fields::new(f.as_bytes()).find(|f| f.id == FIELD_NUMBER)?.as_u32();
            Some((number, String::from_utf8_lossy(string(f.as_bytes(), FIELD_NAME)?).into_owned()))
        })
        .collect()
}

fn string(message: &[u8], number: u32) -> Option<&[u8]> {
    Fields::new(message).find(|f| f.id == number).map(|f| f.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_has_the_names() {
        assert_eq!(name(trace_packet(), 11), "track_event");
        assert_eq!(name(trace_packet(), 900), "for_testing");
        assert_eq!(name(trace_packet(), 12345), "field_12345");
        assert_eq!(name(service_event(), 2), "tracing_started");
        assert_eq!(name(buffer_stats(), 3), "chunks_overwritten");
    }
}
