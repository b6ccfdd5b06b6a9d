//! Arguments that the fields of messages make.

use esatto_protozero::{Field, Fields};
use esatto_schema::interned_data;

use super::late_fields::{self, Keys, Late};
use super::proto_descriptors::{FieldType, ProtoTypes, TYPE_ENUM, TYPE_MESSAGE};
use crate::debug_annotation::{AnnotationErrors, AnnotationReader, ArgKeys, ArgWriter};
use crate::packet_sequence::State;
use crate::string_table::{Strings, Symbol};
use crate::tables::{Arg, ArgValue, Row};

/// Deepest nesting of messages that is read; deeper ones are cut off.
const MAX_MESSAGE_DEPTH: usize = 32;
/// Fields with these names are numbers of interned places in the source.
const LOCATION_FIELDS: [&str; 4] = [
    "begin_impl_frame_args.current_args.source_location_iid",
    "begin_impl_frame_args.last_args.source_location_iid",
    "begin_frame_observer_state.last_begin_frame_args.source_location_iid",
    "chrome_memory_pressure_notification.creation_location_iid",
];

/// Fields of track events that make arguments, beside extensions and those that have a meaning.
const EVENT_FIELDS: [u32; 15] = {
    use esatto_schema::track_event::field;
    [
        field::CC_SCHEDULER_STATE,
        field::CHROME_USER_EVENT,
        field::CHROME_KEYED_SERVICE,
        field::CHROME_LEGACY_IPC,
        field::CHROME_HISTOGRAM_SAMPLE,
        field::CHROME_LATENCY_INFO,
        field::CHROME_FRAME_REPORTER,
        field::CHROME_MESSAGE_PUMP,
        field::CHROME_MOJO_EVENT_INFO,
        field::CHROME_APPLICATION_STATE_INFO,
        field::CHROME_RENDERER_SCHEDULER_STATE,
        field::CHROME_WINDOW_HANDLE_EVENT_INFO,
        field::CHROME_CONTENT_SETTINGS_EVENT_INFO,
        field::CHROME_ACTIVE_PROCESSES,
        field::SCREENSHOT,
    ]
};

/// Writer of the arguments of messages.
pub(super) struct ProtoArgs<'t> {
    pub(super) types: &'t ProtoTypes,
    pub(super) state: &'t State,
    pub(super) keys: &'t mut ArgKeys,
    pub(super) strings: &'t mut Strings,
    pub(super) args: &'t mut Vec<Arg>,
    /// Fields whose types are not known yet; `None` if there is no later time.
    pub(super) late: Option<&'t mut Vec<u8>>,
    /// Number of messages around the annotation that is being read.
    pub(super) depth: usize,
    /// The method that a message of Chromium's IPC calls: its file and its address.
    pub(super) native: Option<(Row, u64)>,
    /// Number of messages of unknown types.
    pub(super) errors: i64,
}

impl ArgWriter for ProtoArgs<'_> {
    fn texts(&mut self) -> (&mut ArgKeys, &mut Strings) {
        (self.keys, self.strings)
    }

    fn push(&mut self, arg: Arg) {
        self.args.push(arg);
    }

    fn add_proto(&mut self, type_name: Symbol, bytes: &[u8], keys: (Symbol, Symbol)) {
        let name = self.strings.owned(type_name);
        let name = name.strip_prefix('.').unwrap_or(&name);
        let name = name.strip_prefix("perfetto.protos.").unwrap_or(name);
        let depth = self.depth;
        if self.add_message(name, bytes, Some(keys), depth) {
            return;
        }
        match &mut self.late {
            Some(late) => late_fields::put_message(late, self.strings.add_str(name), Some(keys), bytes),
            None => self.errors += 1,
        }
    }
}

impl ProtoArgs<'_> {
    /// Adds the arguments of all fields of a message. Returns false if its type is unknown.
    pub(super) fn add_message(&mut self, message: &str, bytes: &[u8], keys: Keys, depth: usize) -> bool {
        if !self.types.has_message(message) {
            return false;
        }
        let types = self.types;
        let mut counts: Vec<(u32, usize)> = Vec::new();
        let mut is_empty = true;
        for f in Fields::new(bytes) {
            is_empty = false;
            if let Some(field) = types.field(message, f.id) {
                self.add_field(field, &f, keys, &mut counts, depth);
            } else if let Some(late) = &mut self.late {
                late_fields::put_message_field(late, self.strings.add_str(message), keys, &f);
            }
        }
        if let (true, Some((flat_key, key))) = (is_empty, keys) {
            self.args.push(Arg { flat_key, key, value: ArgValue::Null });
        }
        true
    }

    /// Keeps a field of a track event until the trace has told all types.
    pub(super) fn put_off_event_field(&mut self, f: &Field<'_>) {
        if let Some(late) = &mut self.late {
            late_fields::put_event_field(late, f);
        }
    }

    /// Adds the arguments of what was put off, now that the trace has told all types.
    pub(super) fn add_late(&mut self, late: &[u8]) {
        let types = self.types;
        let mut event_counts = Vec::new();
        // Members of lists of the message that had the field before.
        let (mut place, mut counts) = (None, Vec::new());
        for late in late_fields::read(late) {
            match late {
                Late::OfEvent(fields) => {
                    for f in Fields::new(fields) {
                        self.add_event_field(f.id, &f, &mut event_counts);
                    }
                }
                Late::OfMessage(message, keys, fields) => {
                    if place != Some((message, keys)) {
                        place = Some((message, keys));
                        counts.clear();
                    }
                    let name = self.strings.owned(message);
                    for f in Fields::new(fields) {
                        if let Some(field) = types.field(&name, f.id) {
                            self.add_field(field, &f, keys, &mut counts, 0);
                        }
                    }
                }
                Late::Message(message, keys, bytes) => {
                    let name = self.strings.owned(message);
                    let is_known = self.add_message(&name, bytes, keys, 0);
                    self.errors += i64::from(!is_known);
                }
            }
        }
    }

    /// Adds the arguments of a field of a track event, if it is one that makes arguments. Returns
    /// false if its type is unknown.
    pub(super) fn add_event_field(&mut self, id: u32, f: &Field<'_>, counts: &mut Vec<(u32, usize)>) -> bool {
        use esatto_schema::{chrome_histogram_sample, track_event::field};
        let types = self.types;
        let Some(field) = types.field("TrackEvent", id) else { return false };
        if !field.is_extension && !EVENT_FIELDS.contains(&id) {
            return true;
        }
        self.add_field(field, f, None, counts, 0);
        if id == field::CHROME_HISTOGRAM_SAMPLE {
            let iid = Fields::new(f.as_bytes()).find(|f| f.id == chrome_histogram_sample::field::NAME_IID);
            let table = interned_data::field::HISTOGRAM_NAMES;
            let entry = iid.and_then(|iid| self.state.entry(table, iid.as_u64()));
            if let Some(name) = entry.and_then(|entry| Fields::new(entry).find(|f| f.id == 2)) {
                let key = self.strings.add_str("chrome_histogram_sample.name");
                let name = self.strings.add(name.as_bytes());
                self.args.push(Arg::new(key, ArgValue::Text(Some(name))));
            }
        }
        true
    }

    /// Adds the arguments of a field. `counts` has the number of values of each list so far.
    pub(super) fn add_field(
        &mut self,
        field: &FieldType,
        f: &Field<'_>,
        keys: Keys,
        counts: &mut Vec<(u32, usize)>,
        depth: usize,
    ) {
        if field.is_packed {
            self.add_packed(field, f, keys, counts);
            return;
        }
        if depth >= MAX_MESSAGE_DEPTH {
            return;
        }
        let name = self.strings.add_str(&field.name);
        let Some(keys) = self.inner_keys(keys, name, field.is_repeated.then_some((f.id, counts))) else { return };
        if field.kind != TYPE_MESSAGE {
            self.add_value(field, f, keys);
        } else if field.type_name == "DebugAnnotation" {
            self.add_annotation(f.as_bytes(), keys, depth);
        } else {
            self.add_message(&field.type_name, f.as_bytes(), Some(keys), depth + 1);
        }
    }

    /// Returns the keys of a member, and of the next position if it is a list.
    fn inner_keys(
        &mut self,
        keys: Keys,
        name: Symbol,
        list: Option<(u32, &mut Vec<(u32, usize)>)>,
    ) -> Option<(Symbol, Symbol)> {
        let (flat_key, mut key) = match keys {
            Some((flat_key, key)) => {
                (self.keys.member(flat_key, name, self.strings)?, self.keys.member(key, name, self.strings)?)
            }
            None => (name, name),
        };
        if let Some((id, counts)) = list {
            let index = match counts.iter_mut().find(|(own, _)| *own == id) {
                Some((_, count)) => {
                    *count += 1;
                    *count - 1
                }
                None => {
                    counts.push((id, 1));
                    0
                }
            };
            key = self.keys.element(key, index, self.strings)?;
        }
        Some((flat_key, key))
    }

    fn add_packed(&mut self, field: &FieldType, f: &Field<'_>, keys: Keys, counts: &mut Vec<(u32, usize)>) {
        let name = self.strings.add_str(&field.name);
        let mut values = Vec::new();
        match field.kind {
            1 | 6 | 16 => {
                let words = f.as_bytes().chunks_exact(8).filter_map(|word| word.try_into().ok());
                values.extend(words.map(u64::from_le_bytes));
            }
            2 | 7 | 15 => {
                let words = f.as_bytes().chunks_exact(4).filter_map(|word| word.try_into().ok());
                values.extend(words.map(|word| u64::from(u32::from_le_bytes(word))));
            }
            _ => values.extend(varints(f.as_bytes())),
        }
        for bits in values {
            let Some(keys) = self.inner_keys(keys, name, Some((f.id, counts))) else { return };
            let value = self.scalar(field, bits);
            self.push_value(keys, value);
        }
    }

    fn push_value(&mut self, (flat_key, key): (Symbol, Symbol), value: Option<ArgValue>) {
        self.args.extend(value.map(|value| Arg { flat_key, key, value }));
    }

    /// Returns a value of its bits.
    fn scalar(&mut self, field: &FieldType, bits: u64) -> Option<ArgValue> {
        let low = (bits & 0xffff_ffff) as u32;
        Some(match field.kind {
            1 => ArgValue::Real(f64::from_bits(bits)),
            2 => ArgValue::Real(f64::from(f32::from_bits(low))),
            3 | 16 => ArgValue::Int(crate::tables::signed(bits)),
            5 | 15 => ArgValue::Int(i64::from(i32::from_ne_bytes(low.to_ne_bytes()))),
            17 | 18 => ArgValue::Int(esatto_protozero::wire::unzigzag(bits)),
            4 | 6 => ArgValue::Uint(bits),
            7 | 13 => ArgValue::Uint(u64::from(low)),
            8 => ArgValue::Bool(bits != 0),
            TYPE_ENUM => {
                let value = i32::from_ne_bytes(low.to_ne_bytes());
                let name = self.types.enum_name(&field.type_name, value);
                let text = name.map_or_else(|| value.to_string(), str::to_owned);
                ArgValue::Text(Some(self.strings.add_str(&text)))
            }
            _ => return None,
        })
    }

    fn add_value(&mut self, field: &FieldType, f: &Field<'_>, keys: (Symbol, Symbol)) {
        let value = match field.kind {
            9 => Some(ArgValue::Text(Some(self.strings.add(f.as_bytes())))),
            12 => Some(ArgValue::Text(Some(self.strings.add_str(&base64(f.as_bytes()))))),
            1 => Some(ArgValue::Real(f.as_f64())),
            2 => Some(ArgValue::Real(f64::from(f.as_f32()))),
            _ => {
                if self.add_location(f, keys.0) || self.add_mojo_method(keys.0) {
                    return;
                }
                self.scalar(field, f.as_u64())
            }
        };
        self.push_value(keys, value);
    }

    /// Adds the parts of an interned place in the source, if the field names one.
    fn add_location(&mut self, f: &Field<'_>, flat_key: Symbol) -> bool {
        use esatto_schema::source_location::field;
        let name = self.strings.get(flat_key);
        if !LOCATION_FIELDS.contains(&name) {
            return false;
        }
        let Some((prefix, _)) = name.rsplit_once('.') else { return false };
        let prefix = prefix.to_owned();
        let Some(entry) = self.state.entry(interned_data::field::SOURCE_LOCATIONS, f.as_u64()) else { return false };
        let find = |id: u32| Fields::new(entry).filter(|f| f.id == id).last();
        let text = |id: u32| find(id).map_or(&[][..], |f| f.as_bytes());
        let file = String::from_utf8_lossy(text(field::FILE_NAME)).replace('\\', "/");
        let function = self.strings.add(text(field::FUNCTION_NAME));
        let file = self.strings.add_str(&file);
        let mut add = |name: &str, value| {
            let key = self.strings.add_str(&format!("{prefix}.{name}"));
            self.args.push(Arg::new(key, value));
        };
        add("file_name", ArgValue::Text(Some(file)));
        add("function_name", ArgValue::Text(Some(function)));
        if let Some(line) = find(field::LINE_NUMBER) {
            add("line_number", ArgValue::Int(line.as_i64()));
        }
        true
    }

    /// Adds file and address of a method of Chromium's IPC, if the field names one.
    fn add_mojo_method(&mut self, flat_key: Symbol) -> bool {
        const FIELD: &str = "chrome_mojo_event_info.mojo_interface_method_iid";
        const PREFIX: &str = "chrome_mojo_event_info.mojo_interface_method.native_symbol";
        let Some((mapping, rel_pc)) = self.native.filter(|_| self.strings.get(flat_key) == FIELD) else { return false };
        for (name, value) in [("mapping_id", u64::from(mapping.number()) - 1), ("rel_pc", rel_pc)] {
            let key = self.strings.add_str(&format!("{PREFIX}.{name}"));
            self.args.push(Arg::new(key, ArgValue::Uint(value)));
        }
        true
    }

    /// Adds an annotation inside a message.
    fn add_annotation(&mut self, bytes: &[u8], (flat_key, key): (Symbol, Symbol), depth: usize) {
        /// An annotation has many levels itself, so a message inside counts as deep.
        const LEVELS_OF_ANNOTATION: usize = 8;
        // The name of the list is no part of the keys.
        let parent = |text: &str| text.rsplit_once('.').map(|(parent, _)| parent.to_owned());
        let (Some(flat_key), Some(key)) = (parent(self.strings.get(flat_key)), parent(self.strings.get(key))) else {
            return;
        };
        let prefix = (self.strings.add_str(&flat_key), self.strings.add_str(&key));
        let mut reader = AnnotationReader { state: self.state, errors: AnnotationErrors::default() };
        if let Some(annotation) = reader.read(bytes) {
            let outer = core::mem::replace(&mut self.depth, depth + LEVELS_OF_ANNOTATION);
            annotation.flatten_below(prefix, self);
            self.depth = outer;
        }
    }
}

/// Returns the varints of a packed field, up to the first malformed one.
fn varints(mut bytes: &[u8]) -> Vec<u64> {
    const LONGEST: usize = 10;
    let mut values = Vec::new();
    while !bytes.is_empty() {
        let Some(end) = bytes.iter().take(LONGEST).position(|byte| byte & 0x80 == 0) else { break };
        let bits = bytes[..=end].iter().rev().fold(0_u64, |bits, byte| bits << 7 | u64::from(byte & 0x7f));
        values.push(bits);
        bytes = &bytes[end + 1..];
    }
    values
}

/// Returns bytes in base 64.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{base64, varints};

    #[test]
    fn bytes_are_written_in_base_64() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("ok", "b2s="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }

    #[test]
    fn packed_numbers_end_at_a_malformed_one() {
        assert_eq!(varints(&[1, 0x80, 1, 0x7f]), [1, 128, 127]);
        assert_eq!(varints(&[5, 0x80]), [5]);
        assert_eq!(varints(&[0x80; 20]), [0_u64; 0]);
    }
}
