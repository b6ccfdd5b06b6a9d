//! The table of notes about fields, values and names.

use std::collections::HashMap;

use prost_reflect::{EnumDescriptor, FieldDescriptor};

const TABLE: &str = include_str!("field_notes.txt");
/// Package of the schema, with the dot.
const PACKAGE: &str = "perfetto.protos.";

#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    pub(super) text: &'static str,
    /// Effect of the field if it is not set; empty if that is not worth a line.
    pub(super) default: &'static str,
}

/// All notes, by section and name.
#[derive(Debug)]
pub(super) struct Notes {
    notes: HashMap<(&'static str, &'static str), Note>,
    /// Names of each section, in their order.
    names: HashMap<&'static str, Vec<&'static str>>,
}

impl Notes {
    pub(super) fn read() -> Self {
        let mut notes = Self { notes: HashMap::new(), names: HashMap::new() };
        let mut section = "";
        for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[') {
                section = name.trim_end_matches(']');
                continue;
            }
            let mut cells = line.split('|').map(str::trim);
            let (Some(name), Some(text)) = (cells.next(), cells.next()) else { continue };
            notes.notes.insert((section, name), Note { text, default: cells.next().unwrap_or_default() });
            notes.names.entry(section).or_default().push(name);
        }
        notes
    }

    pub(super) fn of_field(&self, field: &FieldDescriptor) -> Option<Note> {
        self.find(field.parent_message().full_name(), field.name())
    }

    pub(super) fn of_value(&self, of: &EnumDescriptor, value: &str) -> Option<&'static str> {
        self.find(of.full_name(), value).map(|note| note.text)
    }

    /// Returns the note about a name in a string.
    pub(super) fn of_name(&self, section: &str, name: &str) -> Option<&'static str> {
        self.find(section, name).map(|note| note.text)
    }

    /// Returns the fields of a message that have a default, in the order of the table.
    pub(super) fn with_default(&self, message: &str) -> impl Iterator<Item = (&'static str, Note)> {
        let section = message.strip_prefix(PACKAGE).unwrap_or(message).to_owned();
        let names = self.names.get(&section[..]).into_iter().flatten();
        let notes = names.filter_map(move |&name| Some((name, *self.notes.get(&(&section[..], name))?)));
        notes.filter(|(_, note)| !note.default.is_empty())
    }

    fn find(&self, section: &str, name: &str) -> Option<Note> {
        self.notes.get(&(section.strip_prefix(PACKAGE).unwrap_or(section), name)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_config;

    #[test]
    fn each_note_is_about_something_in_the_schema() {
        let pool = trace_config::message().unwrap().parent_pool().clone();
        let notes = Notes::read();
        assert!(notes.notes.len() > 200);
        for (section, name) in notes.notes.keys() {
            if section.contains(' ') {
                continue;
            }
            let full = format!("{PACKAGE}{section}");
            let message = pool.get_message_by_name(&full);
            let of = pool.get_enum_by_name(&full);
            let is_there = match (&message, &of) {
                (Some(message), _) => message.get_field_by_name(name).is_some(),
                (None, Some(of)) => of.get_value_by_name(name).is_some(),
                (None, None) => false,
            };
            assert!(is_there, "{section}.{name} is not in the schema");
        }
    }

    #[test]
    fn the_notes_are_ascii_and_short() {
        for ((section, name), note) in Notes::read().notes {
            assert!(note.text.is_ascii() && !note.text.ends_with('.'), "{section}.{name}");
            assert!((1..120).contains(&note.text.len()), "{section}.{name}");
        }
    }
}
