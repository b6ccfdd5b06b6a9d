//! [`EventLayout`]: how the fields of an event become fields of a message.

use super::field_copy::FieldCopy;
use super::field_kind::{FieldKind, Origin};
use super::format::{EventFormat, FormatField};
use super::generic_event::GenericEvent;
use super::schema::SchemaEvent;
use super::wire_buffer::Tag;

/// Number of `kprobe_event` in `FtraceEvent`.
pub(crate) const KPROBE_EVENT: u32 = 542;

/// How the fields of an event become fields of a message. It is compiled once per event.
#[derive(Clone, Debug)]
pub(crate) struct EventLayout {
    pub(crate) group: Box<str>,
    pub(crate) name: Box<str>,
    /// Number of the event's message in `FtraceEvent`.
    pub(crate) number: u32,
    /// Tag of the event's message.
    pub(crate) tag: Tag,
    /// The data of an event has at least so many bytes, or it is invalid.
    pub(crate) min_len: usize,
    /// Offset of the pid of the thread that was running.
    pub(crate) common_pid_at: Option<u16>,
    /// Offset of `common_flags`.
    pub(crate) common_flags_at: Option<u16>,
    /// Fields to write, in this order.
    pub(crate) copies: Box<[FieldCopy]>,
    /// True if a field says where in the event its data is.
    pub(crate) has_dynamic_fields: bool,
    /// Description of an event that the schema does not have.
    pub(crate) generic: Option<GenericEvent>,
}

impl EventLayout {
    /// Compiles the layout of an event that the schema has. Fields that the kernel does not have,
    /// or whose type in the schema cannot take all their values, are left out.
    pub(crate) fn from_schema(schema: &SchemaEvent, format: &EventFormat<'_>) -> Self {
        let mut min_len = end_of(&format.common);
        let mut copies = Vec::new();
        for field in schema.fields() {
            let Some(found) = format.fields.iter().find(|found| found.name == field.name) else { continue };
            let Some(copy) = FieldCopy::new(found, field.number, is_function(schema, found)) else { continue };
            min_len = min_len.max(copy.end());
            if copy.kind.fits(field.field_type) {
                copies.push(copy);
            }
        }
        Self::new(schema.group, schema.name, schema.number, min_len, format, copies, None)
    }

    /// Compiles the layout of an event that the schema does not have: its fields get numbers from 1
    /// on in the order of the file. `number` is that of the event's message.
    pub(crate) fn generic(group: &str, name: &str, number: u32, format: &EventFormat<'_>) -> Self {
        let mut named: Vec<(&str, FieldCopy)> = Vec::new();
        for field in format.fields.iter().filter(|field| !field.name.is_empty()) {
            named.extend(FieldCopy::new(field, named.len() as u32 + 1, false).map(|copy| (field.name, copy)));
        }
        let min_len = end_of(&format.common).max(end_of(&format.fields));
        let generic = GenericEvent::new(group, name, number, &named);
        let copies = named.into_iter().map(|(_, copy)| copy).collect();
        Self::new(group, name, number, min_len, format, copies, Some(generic))
    }

    /// Makes the layout of an event of a kernel probe: its fields are not written.
    pub(crate) fn kprobe(group: &str, name: &str, format: &EventFormat<'_>) -> Self {
        Self::new(group, name, KPROBE_EVENT, end_of(&format.common), format, Vec::new(), None)
    }

    fn new(
        group: &str,
        name: &str,
        number: u32,
        min_len: usize,
        format: &EventFormat<'_>,
        copies: Vec<FieldCopy>,
        generic: Option<GenericEvent>,
    ) -> Self {
        let common = |name: &str, width: u32| {
            let field = format.common.iter().find(|field| field.name == name && field.size == width)?;
            u16::try_from(field.offset).ok()
        };
        Self {
            group: group.into(),
            name: name.into(),
            number,
            tag: Tag::bytes(number),
            min_len,
            common_pid_at: common("common_pid", 4),
            common_flags_at: common("common_flags", 1),
            has_dynamic_fields: copies.iter().any(|copy| copy.kind.is_dynamic()),
            copies: copies.into(),
            generic,
        }
    }

    /// Finds the field that is written as `number`, if it is of one of `kinds`.
    pub(crate) fn copy_of(&self, number: u32, kinds: &[FieldKind]) -> Option<&FieldCopy> {
        self.copies.iter().find(|copy| copy.number == number && kinds.contains(&copy.kind))
    }
}

/// True for the functions in the events of the function graph, which the kernel declares as
/// numbers.
fn is_function(schema: &SchemaEvent, field: &FormatField<'_>) -> bool {
    schema.group == "ftrace" && schema.name.starts_with("funcgraph_") && field.name == "func"
}

/// End of the last field.
fn end_of(fields: &[FormatField<'_>]) -> usize {
    fields.iter().map(|field| (field.offset as usize).saturating_add(field.size as usize)).max().unwrap_or(0)
}

impl Origin {
    /// Returns the place from which an offset in the field at `offset` counts.
    pub(crate) const fn base(self, offset: u16) -> usize {
        match self {
            Self::Event => 0,
            // The field itself has four bytes.
            Self::Field => offset as usize + 4,
        }
    }
}
