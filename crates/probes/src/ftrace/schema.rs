//! Events and fields for which Perfetto's schema has a message.
//!
//! The table is text, sorted by name and group, one event per line:
//! `NAME GROUP NUMBER FIELD:NUMBER:TYPE …`. So it needs no relocations and no set-up, and only the
//! pages of it that a search touches are read.

use core::cmp::Ordering;

/// Made by `cargo xtask codegen`.
static TABLE: &str = include_str!("event_schema.txt");

/// An event that the schema has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SchemaEvent {
    pub(crate) name: &'static str,
    pub(crate) group: &'static str,
    /// Number of its field in `FtraceEvent`.
    pub(crate) number: u32,
    fields: &'static str,
}

/// A field of an event's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SchemaField {
    pub(crate) name: &'static str,
    pub(crate) number: u32,
    pub(crate) field_type: FieldType,
}

/// Type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldType {
    Int32,
    Int64,
    Uint32,
    Uint64,
    String,
    Bytes,
}

impl SchemaEvent {
    /// Finds an event.
    pub(crate) fn find(group: &str, name: &str) -> Option<Self> {
        Self::named(name).find(|event| event.group == group)
    }

    /// Iterates over all events.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        TABLE.lines().filter_map(Self::parse)
    }

    /// Iterates over the events of all groups that have this name.
    pub(crate) fn named(name: &str) -> impl Iterator<Item = Self> {
        let lines = TABLE[first_line(name)..].lines().map_while(Self::parse);
        lines.take_while(move |event| event.name == name)
    }

    /// Iterates over the fields, in the order of their numbers.
    pub(crate) fn fields(&self) -> impl Iterator<Item = SchemaField> + use<> {
        self.fields.split(' ').filter_map(SchemaField::parse)
    }

    fn parse(line: &'static str) -> Option<Self> {
        let mut words = line.splitn(4, ' ');
        let (name, group, number) = (words.next()?, words.next()?, words.next()?.parse().ok()?);
        Some(Self { name, group, number, fields: words.next().unwrap_or_default() })
    }
}

impl SchemaField {
    fn parse(word: &'static str) -> Option<Self> {
        let (name, rest) = word.split_once(':')?;
        let (number, field_type) = rest.split_once(':')?;
        let field_type = match field_type {
            "int32" => FieldType::Int32,
            "int64" => FieldType::Int64,
            "uint32" => FieldType::Uint32,
            "uint64" => FieldType::Uint64,
            "string" => FieldType::String,
            "bytes" => FieldType::Bytes,
            _ => return None,
        };
        Some(Self { name, number: number.parse().ok()?, field_type })
    }
}

/// Returns the offset of the first line whose name is not less than `name`.
fn first_line(name: &str) -> usize {
    let (mut low, mut high) = (0, TABLE.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let line = TABLE.as_bytes()[low..middle].iter().rposition(|byte| *byte == b'\n').map_or(low, |at| low + at + 1);
        let end =
            TABLE.as_bytes()[line..].iter().position(|byte| *byte == b'\n').map_or(TABLE.len(), |at| line + at + 1);
        let found = TABLE[line..end].split(' ').next().unwrap_or_default();
        match found.cmp(name) {
            Ordering::Less => low = end,
            Ordering::Equal | Ordering::Greater => high = line,
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_of_the_table_is_found() {
        for line in TABLE.lines() {
            let event = SchemaEvent::parse(line).expect("a line");
            assert_eq!(SchemaEvent::find(event.group, event.name), Some(event));
            assert_eq!(event.fields().count(), line.split(' ').count() - 3, "{line}");
        }
    }

    #[test]
    fn names_without_an_event_are_not_found() {
        for name in ["", "a", "sched", "sched_switc", "sched_switch2", "zzz", "\u{ff}", "sched_switch sched"] {
            assert_eq!(SchemaEvent::named(name).next(), None, "{name}");
        }
        assert_eq!(SchemaEvent::find("task", "sched_switch"), None);
    }

    #[test]
    fn a_name_may_be_in_several_groups() {
        let groups: Vec<_> = SchemaEvent::named("gpu_frequency").map(|event| (event.group, event.number)).collect();
        assert_eq!(groups, [("kgsl", 509), ("power", 332)]);
    }
}
