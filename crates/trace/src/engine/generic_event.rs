//! Kernel events that the schema does not know, as a trace describes them.

use super::descriptors::{FieldInfo, MessageInfo};

/// Fields of events have lower numbers.
const END_OF_FIELDS: u32 = 32;
/// The field with this name is the owner of the track: a process, a processor, or any number.
const SCOPE_PREFIX: &str = "scope_";

/// A kernel event that the schema does not have, as its trace describes it.
#[derive(Debug)]
pub(crate) struct GenericEvent {
    pub(super) name: String,
    pub(super) fields: MessageInfo,
    pub(super) track: Option<TrackFields>,
}

/// Numbers of the fields that make an event a slice or the value of a counter.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrackFields {
    pub(super) content: Content,
    pub(super) track_name: Option<u32>,
    pub(super) scope: Option<(Scope, u32)>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Content {
    Slice { phase: u32, name: u32 },
    Counter { value: u32 },
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Scope {
    Process,
    Cpu,
    Custom,
}

impl GenericEvent {
    /// Returns `None` if the event has more fields than a kernel event can have.
    pub(crate) fn new((name, fields): (String, MessageInfo)) -> Option<Self> {
        let track = TrackFields::find(&fields);
        fields.keys().all(|number| *number < END_OF_FIELDS).then_some(Self { name, fields, track })
    }
}

impl TrackFields {
    fn find(fields: &MessageInfo) -> Option<Self> {
        let named = |name: &str, fits: fn(&FieldInfo) -> bool| {
            fields.iter().find(|(_, field)| field.name == name && fits(field)).map(|(number, _)| *number)
        };
        let phase = named("track_event_type", FieldInfo::is_varint);
        let name = named("slice_name", FieldInfo::is_text);
        let content = match (phase.zip(name), named("counter_value", FieldInfo::is_varint)) {
            (Some((phase, name)), _) => Content::Slice { phase, name },
            (None, Some(value)) => Content::Counter { value },
            (None, None) => return None,
        };
        // The last such field counts.
        let scopes = fields.iter().filter(|(_, field)| field.name.starts_with(SCOPE_PREFIX) && field.is_varint());
        let scope = scopes.max_by_key(|(number, _)| **number).map(|(number, field)| {
            let scope = match &*field.name {
                "scope_tgid" => Scope::Process,
                "scope_cpu" => Scope::Cpu,
                _ => Scope::Custom,
            };
            (scope, *number)
        });
        Some(Self { content, track_name: named("track_name", FieldInfo::is_text), scope })
    }
}
