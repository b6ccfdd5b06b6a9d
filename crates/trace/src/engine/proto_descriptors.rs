//! Descriptors of messages and enumerations: of the schema, of Chromium's own fields of track
//! events, and of extensions that a trace describes itself.

use std::sync::OnceLock;

use esatto_protozero::Fields;
use esatto_schema::FILE_DESCRIPTOR_SET;
use hashbrown::HashMap;

/// Messages are named without the package of the schema.
const PACKAGE: &str = "perfetto.protos.";
/// Chromium's fields of track events, as version 52 of the trace processor knows them: a line
/// `message NAME` or `enum NAME`, and lines of numbers, names and types.
const CHROME_FIELDS: &str = include_str!("chrome_fields.txt");
/// Deepest nesting of messages in descriptors that is read.
const MAX_NESTED_TYPES: usize = 32;

// The field numbers of google/protobuf/descriptor.proto that this module needs.
const SET_FILE: u32 = 1;
const FILE_PACKAGE: u32 = 2;
const FILE_MESSAGE: u32 = 4;
const FILE_ENUM: u32 = 5;
const FILE_EXTENSION: u32 = 7;
const NAME: u32 = 1;
const MESSAGE_FIELD: u32 = 2;
const MESSAGE_NESTED: u32 = 3;
const MESSAGE_ENUM: u32 = 4;
const MESSAGE_EXTENSION: u32 = 6;
const ENUM_VALUE: u32 = 2;
const VALUE_NUMBER: u32 = 2;
const FIELD_EXTENDEE: u32 = 2;
const FIELD_NUMBER: u32 = 3;
const FIELD_LABEL: u32 = 4;
const FIELD_TYPE: u32 = 5;
const FIELD_TYPE_NAME: u32 = 6;
const FIELD_OPTIONS: u32 = 8;
const OPTION_PACKED: u32 = 2;
const REPEATED: i32 = 3;

/// Types of fields, as numbers of `FieldDescriptorProto.Type`.
pub(super) const TYPE_MESSAGE: i32 = 11;
pub(super) const TYPE_ENUM: i32 = 14;
const TYPES: [(&str, i32); 14] = [
    ("double", 1),
    ("float", 2),
    ("int64", 3),
    ("uint64", 4),
    ("int32", 5),
    ("fixed64", 6),
    ("fixed32", 7),
    ("bool", 8),
    ("string", 9),
    ("bytes", 12),
    ("uint32", 13),
    ("sint64", 18),
    ("message", TYPE_MESSAGE),
    ("enum", TYPE_ENUM),
];

/// A field of a message.
#[derive(Debug, Clone, Default)]
pub(super) struct FieldType {
    pub(super) name: String,
    /// Its type, as a number of `FieldDescriptorProto.Type`.
    pub(super) kind: i32,
    pub(super) is_repeated: bool,
    /// True if all values are in one field.
    pub(super) is_packed: bool,
    /// True if another file than that of the message added it.
    pub(super) is_extension: bool,
    /// The name of its message or of its enumeration.
    pub(super) type_name: String,
}

/// Messages by name, and the fields of each by number.
#[derive(Debug, Default)]
pub(crate) struct ProtoTypes {
    messages: HashMap<String, HashMap<u32, FieldType>>,
    enums: HashMap<String, HashMap<i32, String>>,
    /// Fields that the trace itself added.
    extensions: HashMap<(String, u32), FieldType>,
}

fn short(name: &str) -> &str {
    let name = name.strip_prefix('.').unwrap_or(name);
    name.strip_prefix(PACKAGE).unwrap_or(name)
}

fn text(bytes: &[u8], id: u32) -> String {
    let found = Fields::new(bytes).find(|f| f.id == id);
    found.map_or_else(String::new, |f| String::from_utf8_lossy(f.as_bytes()).into_owned())
}

/// Types that every trace has.
fn built_in() -> &'static ProtoTypes {
    static TYPES: OnceLock<ProtoTypes> = OnceLock::new();
    TYPES.get_or_init(|| {
        let mut types = ProtoTypes::default();
        types.add_set(FILE_DESCRIPTOR_SET);
        types.add_lines(CHROME_FIELDS);
        types
    })
}

/// Returns the fields of a message that are messages, with the names of these.
pub(super) fn message_fields(message: &str) -> Vec<(u32, String)> {
    let fields = built_in().messages.get(message).into_iter().flatten();
    let messages = fields.filter(|(_, field)| field.kind == TYPE_MESSAGE);
    messages.map(|(&id, field)| (id, field.type_name.clone())).collect()
}

impl ProtoTypes {
    /// Returns a field of a message, and true if the message is known.
    pub(super) fn field(&self, message: &str, id: u32) -> Option<&FieldType> {
        let built_in = built_in().messages.get(message).and_then(|fields| fields.get(&id));
        built_in
            .or_else(|| self.messages.get(message).and_then(|fields| fields.get(&id)))
            .or_else(|| self.extensions.get(&(message.to_owned(), id)))
    }

    pub(super) fn has_message(&self, message: &str) -> bool {
        built_in().messages.contains_key(message) || self.messages.contains_key(message)
    }

    /// Returns the name of a value of an enumeration.
    pub(super) fn enum_name(&self, name: &str, value: i32) -> Option<&str> {
        let find = |types: &'static Self| types.enums.get(name).and_then(|values| values.get(&value));
        let own = || self.enums.get(name).and_then(|values| values.get(&value));
        find(built_in()).or_else(own).map(String::as_str)
    }

    /// Adds the types of a `FileDescriptorSet`.
    pub(crate) fn add_set(&mut self, set: &[u8]) {
        for file in Fields::new(set).filter(|f| f.id == SET_FILE) {
            let file = file.as_bytes();
            let package = text(file, FILE_PACKAGE);
            let prefix = if package.is_empty() { String::new() } else { format!("{package}.") };
            let prefix = short(&prefix).to_owned();
            for f in Fields::new(file) {
                match f.id {
                    FILE_MESSAGE => self.add_message(&prefix, f.as_bytes(), 0),
                    FILE_ENUM => self.add_enum(&prefix, f.as_bytes()),
                    FILE_EXTENSION => self.add_extension(f.as_bytes()),
                    _ => {}
                }
            }
        }
    }

    fn add_message(&mut self, prefix: &str, bytes: &[u8], depth: usize) {
        if depth == MAX_NESTED_TYPES {
            return;
        }
        let name = format!("{prefix}{}", text(bytes, NAME));
        let inner = format!("{name}.");
        let mut fields = HashMap::new();
        for f in Fields::new(bytes) {
            match f.id {
                MESSAGE_FIELD => {
                    let (number, field) = read_field(f.as_bytes());
                    fields.insert(number, field);
                }
                MESSAGE_NESTED => self.add_message(&inner, f.as_bytes(), depth + 1),
                MESSAGE_ENUM => self.add_enum(&inner, f.as_bytes()),
                MESSAGE_EXTENSION => self.add_extension(f.as_bytes()),
                _ => {}
            }
        }
        self.messages.entry(name).or_insert(fields);
    }

    fn add_enum(&mut self, prefix: &str, bytes: &[u8]) {
        let values = self.enums.entry(format!("{prefix}{}", text(bytes, NAME))).or_default();
        for value in Fields::new(bytes).filter(|f| f.id == ENUM_VALUE) {
            let number = Fields::new(value.as_bytes()).find(|f| f.id == VALUE_NUMBER).map_or(0, |f| f.as_i32());
            values.entry(number).or_insert_with(|| text(value.as_bytes(), NAME));
        }
    }

    fn add_extension(&mut self, bytes: &[u8]) {
        let extendee = text(bytes, FIELD_EXTENDEE);
        let (number, field) = read_field(bytes);
        let field = FieldType { is_extension: true, ..field };
        self.extensions.entry((short(&extendee).to_owned(), number)).or_insert(field);
    }

    fn add_lines(&mut self, lines: &str) {
        let (mut owner, mut is_enum) = ("", false);
        for line in lines.lines() {
            let Some(entry) = line.strip_prefix(' ') else {
                let (kind, name) = line.split_once(' ').unwrap_or_default();
                (owner, is_enum) = (name, kind == "enum");
                // Messages may have no fields.
                if !is_enum {
                    self.messages.entry(owner.to_owned()).or_default();
                }
                continue;
            };
            let words: Vec<&str> = entry.split(' ').collect();
            let (&number, &name) = (&words[0], &words[1]);
            if is_enum {
                let number = number.parse().unwrap_or_default();
                self.enums.entry(owner.to_owned()).or_default().entry(number).or_insert_with(|| name.to_owned());
                continue;
            }
            let is_repeated = words[2] == "repeated";
            let kind = words[if is_repeated { 3 } else { 2 }];
            let type_name = words.last().copied().unwrap_or_default();
            let field = FieldType {
                name: name.to_owned(),
                kind: TYPES.iter().find(|(name, _)| *name == kind).map_or(0, |(_, kind)| *kind),
                is_repeated,
                is_packed: false,
                is_extension: owner == "TrackEvent",
                type_name: type_name.to_owned(),
            };
            let fields = self.messages.entry(owner.to_owned()).or_default();
            fields.entry(number.parse().unwrap_or_default()).or_insert(field);
        }
    }
}

fn read_field(bytes: &[u8]) -> (u32, FieldType) {
    let mut field = FieldType { name: text(bytes, NAME), ..FieldType::default() };
    let mut number = 0;
    for f in Fields::new(bytes) {
        match f.id {
            FIELD_NUMBER => number = f.as_u32(),
            FIELD_LABEL => field.is_repeated = f.as_i32() == REPEATED,
            FIELD_TYPE => field.kind = f.as_i32(),
            FIELD_TYPE_NAME => field.type_name = short(&String::from_utf8_lossy(f.as_bytes())).to_owned(),
            FIELD_OPTIONS => {
                let packed = Fields::new(f.as_bytes()).find(|f| f.id == OPTION_PACKED);
                field.is_packed = packed.is_some_and(|f| f.as_bool());
            }
            _ => {}
        }
    }
    (number, field)
}

#[cfg(test)]
mod tests {
    use super::{CHROME_FIELDS, ProtoTypes, TYPE_ENUM, TYPE_MESSAGE, TYPES};

    #[test]
    fn all_types_of_chromiums_fields_are_known() {
        let types = ProtoTypes::default();
        let mut owner = "";
        for line in CHROME_FIELDS.lines() {
            let Some(entry) = line.strip_prefix(' ') else {
                owner = line.strip_prefix("message ").unwrap_or_default();
                continue;
            };
            if owner.is_empty() {
                continue;
            }
            let number = entry.split(' ').next().unwrap().parse().unwrap();
            let field = types.field(owner, number).unwrap_or_else(|| panic!("{owner}: {entry}"));
            assert!(TYPES.iter().any(|(_, kind)| *kind == field.kind), "{owner}: {entry}");
            match field.kind {
                TYPE_MESSAGE => assert!(types.has_message(&field.type_name), "{owner}: {entry}"),
                TYPE_ENUM => {
                    let is_named = |value| types.enum_name(&field.type_name, value).is_some();
                    assert!((0..100).any(is_named), "{owner}: {entry}");
                }
                _ => {}
            }
        }
    }
}
