//! Comments about the fields of a text.

use esatto_text_format::Places;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use super::notes::Notes;

pub(super) struct Comments<'a> {
    pub(super) notes: &'a Notes,
    pub(super) places: &'a Places,
    /// The field at each place.
    pub(super) fields: &'a [Option<FieldDescriptor>],
    pub(super) content: &'a [u8],
}

impl Comments<'_> {
    /// Returns the comments about the field at a place, and about the fields that its message does
    /// not set. If it is alone in its line, its name is left out.
    pub(super) fn of(&self, index: usize, is_alone: bool) -> Vec<String> {
        let Some(field) = &self.fields[index] else { return Vec::new() };
        let note = self.notes.of_field(field);
        let value = self.value(index, field);
        let is_off = matches!(field.kind(), Kind::Bool) && matches!(self.written(index), b"false" | b"f" | b"0");
        let mut text = match (note, value) {
            (Some(note), None) if is_off => format!("Switched off: {}", note.text),
            (Some(note), None) => note.text.to_owned(),
            (Some(note), Some(value)) => format!("{}: {value}", note.text),
            (None, value) => {
                let value = value.map(|value| format!(": {value}")).unwrap_or_default();
                format!("{} of {}{value}", field.name(), field.parent_message().name())
            }
        };
        if field.name() == "buffers" && field.parent_message().name() == "TraceConfig" {
            text += &format!(". This is buffer {}", self.places[index].index);
        }
        if !is_alone && note.is_some() {
            text = format!("{}: {text}", field.name());
        }
        let mut comments = vec![text + "."];
        if let Kind::Message(message) = field.kind() {
            comments.extend(self.defaults(Some(index), &message));
        }
        comments
    }

    /// Returns the comments about the fields that a message does not set.
    pub(super) fn defaults(&self, parent: Option<usize>, message: &MessageDescriptor) -> Vec<String> {
        let is_set = |name: &str| {
            let number = message.get_field_by_name(name).map(|field| field.number());
            number.is_some_and(|number| self.places.find(parent, number, 0).is_some())
        };
        let has_effect = |name: &str| match name {
            // The counters of a group that is not read.
            name if name.ends_with("_counters") => is_set(&name.replace("_counters", "_period_ms")),
            "target_buffer" => !is_set("target_buffer_name"),
            "compression" => !is_set("compression_type"),
            "incremental_state_config" | "flush_period_ms" => !self.sets("write_into_file"),
            "duration_ms" => !self.sets("trigger_config"),
            _ => true,
        };
        let unset = self.notes.with_default(message.full_name());
        let unset = unset.filter(|(name, _)| !is_set(name) && has_effect(name));
        unset.map(|(name, note)| format!("{name} is not set: {}.", note.default)).collect()
    }

    /// Returns whether the whole config has this field.
    fn sets(&self, name: &str) -> bool {
        let is_it = |index: usize| self.fields[index].as_ref().is_some_and(|field| field.name() == name);
        (0..self.places.len()).any(|index| self.places[index].parent.is_none() && is_it(index))
    }

    /// Returns a value as the text has it.
    fn written(&self, index: usize) -> &[u8] {
        &self.content[self.places[index].value.clone()]
    }

    /// Returns a value in words, if there are better ones than those of the text.
    fn value(&self, index: usize, field: &FieldDescriptor) -> Option<String> {
        let written = String::from_utf8_lossy(self.written(index));
        match field.kind() {
            Kind::Enum(of) => {
                // The text may have the number of a value.
                let by_number = written.parse().ok().and_then(|number| of.get_value(number));
                let name = by_number.as_ref().map_or(&*written, |value| value.name());
                Some(format!("{name}, {}", self.notes.of_value(&of, name)?))
            }
            Kind::String => {
                let name = written.trim_matches(['"', '\'']);
                let section = match field.name() {
                    "name" if field.parent_message().name() == "DataSourceConfig" => "data source",
                    "ftrace_events" => "ftrace event",
                    "atrace_categories" => "atrace category",
                    _ => return None,
                };
                self.notes.of_name(section, name).map(str::to_owned)
            }
            Kind::Uint32 | Kind::Uint64 => amount(field.name(), written.parse().ok()?),
            _ => None,
        }
    }
}

/// Returns an amount with its unit, which the name of the field tells.
fn amount(name: &str, value: u64) -> Option<String> {
    if value == 0 {
        return Some("0".to_owned());
    }
    let (value, unit) = if name.ends_with("_kb") {
        largest(value, &[("KiB", 1024), ("MiB", 1024), ("GiB", 1024)])
    } else if name.ends_with("_bytes") {
        largest(value, &[("bytes", 1024), ("KiB", 1024), ("MiB", 1024), ("GiB", 1024)])
    } else if name.ends_with("_ms") {
        largest(value, &[("ms", 1000), ("s", 60), ("minutes", 60), ("hours", 24), ("days", 365)])
    } else {
        return None;
    };
    let unit = if value == 1 && unit.len() > 2 { unit.trim_end_matches('s') } else { unit };
    Some(format!("{value} {unit}"))
}

/// Returns a value in the largest unit that keeps it a whole number. Each unit comes with the
/// number of them that make the next one.
fn largest(mut value: u64, units: &[(&'static str, u64)]) -> (u64, &'static str) {
    let mut name = "";
    for (index, (unit, in_next)) in units.iter().enumerate() {
        name = unit;
        if value == 0 || value % in_next != 0 || index + 1 == units.len() {
            break;
        }
        value /= in_next;
    }
    (value, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_their_largest_unit() {
        assert_eq!(amount("size_kb", 131_072).as_deref(), Some("128 MiB"));
        assert_eq!(amount("size_kb", 100).as_deref(), Some("100 KiB"));
        assert_eq!(amount("max_file_size_bytes", 1 << 40).as_deref(), Some("1024 GiB"));
        assert_eq!(amount("duration_ms", 0).as_deref(), Some("0"));
        assert_eq!(amount("duration_ms", 1000).as_deref(), Some("1 s"));
        assert_eq!(amount("duration_ms", 1500).as_deref(), Some("1500 ms"));
        assert_eq!(amount("duration_ms", 60_000).as_deref(), Some("1 minute"));
        assert_eq!(amount("duration_ms", 7_200_000).as_deref(), Some("2 hours"));
        assert_eq!(amount("level", 3), None);
    }
}
