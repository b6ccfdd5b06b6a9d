//! Debug annotations (`docs/spec/track-event.md` §13).

use core::hash::{Hash, Hasher};
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;

use esatto_protozero::{Field, Fields, ProtoString};
use esatto_schema::{debug_annotation, debug_annotation::field as annotation, interned_data};

use crate::sequence::State;
use crate::strings::Strings;

/// Deeper annotations are cut off.
const MAX_DEPTH: usize = 32;

/// A named value that an event carries.
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation {
    /// Its name; empty where it could not be resolved.
    pub name: String,
    /// Its value.
    pub value: AnnotationValue,
}

/// The value of an annotation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AnnotationValue {
    /// None was written: an empty dictionary, an empty array, or nothing at all.
    Empty,
    /// `bool_value`
    Bool(bool),
    /// `uint_value`
    Uint(u64),
    /// `int_value`
    Int(i64),
    /// `double_value`
    Double(f64),
    /// `string_value`, inline or interned
    String(String),
    /// `pointer_value`
    Pointer(u64),
    /// `legacy_json_value`
    Json(String),
    /// `dict_entries`, or a nested dictionary of the older form
    Dict(Vec<Annotation>),
    /// `array_values`, or a nested array of the older form
    Array(Vec<Self>),
    /// `proto_value`, with the name of its type
    Proto {
        /// The full name of the message's type, as written.
        type_name: String,
        /// Its encoding.
        bytes: Vec<u8>,
    },
}

/// What went wrong while annotations were read.
#[derive(Debug, Default)]
pub(crate) struct AnnotationErrors {
    pub(crate) unresolved_names: u64,
    pub(crate) unresolved_strings: u64,
    pub(crate) nameless: u64,
}

pub(crate) struct AnnotationReader<'s> {
    pub(crate) state: &'s State,
    pub(crate) strings: &'s Strings,
    pub(crate) errors: AnnotationErrors,
}

impl AnnotationReader<'_> {
    /// Reads a top level annotation, or a dictionary entry: one without a name is none.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Option<Annotation> {
        self.named(bytes, 0)
    }

    fn named(&mut self, bytes: &[u8], depth: usize) -> Option<Annotation> {
        let mut name = None;
        for field in Fields::new(bytes) {
            match field.id {
                annotation::NAME => name = Some(text(&field)),
                annotation::NAME_IID => {
                    let found = self.state.look_up(interned_data::field::DEBUG_ANNOTATION_NAMES, field.as_u64());
                    self.errors.unresolved_names += u64::from(found.is_none());
                    name = Some(found.map_or_else(String::new, |symbol| self.strings.owned(symbol)));
                }
                _ => {}
            }
        }
        self.errors.nameless += u64::from(name.is_none());
        Some(Annotation { name: name?, value: self.value(bytes, depth) })
    }

    fn value(&mut self, bytes: &[u8], depth: usize) -> AnnotationValue {
        let mut value = AnnotationValue::Empty;
        let (mut dict, mut array) = (Vec::new(), Vec::new());
        let (mut type_name, mut proto) = (String::new(), None);
        if depth == MAX_DEPTH {
            return value;
        }
        for field in Fields::new(bytes) {
            match field.id {
                annotation::BOOL_VALUE => value = AnnotationValue::Bool(field.as_bool()),
                annotation::UINT_VALUE => value = AnnotationValue::Uint(field.as_u64()),
                annotation::INT_VALUE => value = AnnotationValue::Int(field.as_i64()),
                annotation::DOUBLE_VALUE => value = AnnotationValue::Double(field.as_f64()),
                annotation::POINTER_VALUE => value = AnnotationValue::Pointer(field.as_u64()),
                annotation::STRING_VALUE => value = AnnotationValue::String(text(&field)),
                annotation::LEGACY_JSON_VALUE => value = AnnotationValue::Json(text(&field)),
                annotation::STRING_VALUE_IID => {
                    let table = interned_data::field::DEBUG_ANNOTATION_STRING_VALUES;
                    value = AnnotationValue::String(self.resolve(table, field.as_u64()));
                }
                annotation::NESTED_VALUE => value = nested(field.as_bytes(), depth + 1),
                annotation::DICT_ENTRIES => dict.extend(self.named(field.as_bytes(), depth + 1)),
                annotation::ARRAY_VALUES => array.push(self.value(field.as_bytes(), depth + 1)),
                annotation::PROTO_TYPE_NAME => type_name = text(&field),
                annotation::PROTO_TYPE_NAME_IID => {
                    type_name = self.resolve(interned_data::field::DEBUG_ANNOTATION_VALUE_TYPE_NAMES, field.as_u64());
                }
                annotation::PROTO_VALUE => proto = Some(field.as_bytes().to_vec()),
                _ => {}
            }
        }
        match proto {
            Some(bytes) => AnnotationValue::Proto { type_name, bytes },
            None if !dict.is_empty() => AnnotationValue::Dict(dict),
            None if !array.is_empty() => AnnotationValue::Array(array),
            None => value,
        }
    }

    fn resolve(&mut self, table: u32, iid: u64) -> String {
        match self.state.look_up(table, iid) {
            Some(symbol) => self.strings.owned(symbol),
            None => {
                self.errors.unresolved_strings += 1;
                String::new()
            }
        }
    }
}

fn text(field: &Field<'_>) -> String {
    String::from_utf8_lossy(field.as_bytes()).into_owned()
}

/// The older form of dictionaries and arrays.
fn nested(bytes: &[u8], depth: usize) -> AnnotationValue {
    use debug_annotation::nested_value::field as nested_value;
    let mut value = AnnotationValue::Empty;
    let (mut keys, mut values, mut elements) = (Vec::new(), Vec::new(), Vec::new());
    if depth >= MAX_DEPTH {
        return value;
    }
    for field in Fields::new(bytes) {
        match field.id {
            nested_value::DICT_KEYS => keys.push(text(&field)),
            nested_value::DICT_VALUES => values.push(nested(field.as_bytes(), depth + 1)),
            nested_value::ARRAY_VALUES => elements.push(nested(field.as_bytes(), depth + 1)),
            nested_value::INT_VALUE => value = AnnotationValue::Int(field.as_i64()),
            nested_value::DOUBLE_VALUE => value = AnnotationValue::Double(field.as_f64()),
            nested_value::BOOL_VALUE => value = AnnotationValue::Bool(field.as_bool()),
            nested_value::STRING_VALUE => value = AnnotationValue::String(text(&field)),
            _ => {}
        }
    }
    if !keys.is_empty() {
        let entries = keys.into_iter().zip(values).map(|(name, value)| Annotation { name, value });
        AnnotationValue::Dict(entries.collect())
    } else if !elements.is_empty() {
        AnnotationValue::Array(elements)
    } else {
        value
    }
}

/// The arguments that annotations make: by key (`a.b[0]`) the value as text. Of two with one name the later
/// one counts, and one without a value makes none.
pub(crate) fn arguments(annotations: &[Annotation]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for annotation in annotations {
        flatten(annotation.name.clone(), &annotation.value, &mut found);
    }
    found
}

fn flatten(key: String, value: &AnnotationValue, found: &mut BTreeMap<String, String>) {
    let text = match value {
        AnnotationValue::Empty => return,
        AnnotationValue::Dict(entries) => {
            for entry in entries {
                flatten(format!("{key}.{}", entry.name), &entry.value, found);
            }
            return;
        }
        AnnotationValue::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                flatten(format!("{key}[{index}]"), value, found);
            }
            return;
        }
        AnnotationValue::Bool(v) => v.to_string(),
        AnnotationValue::Uint(v) => v.to_string(),
        AnnotationValue::Int(v) => v.to_string(),
        AnnotationValue::Double(v) => format!("{v:?}"),
        AnnotationValue::Pointer(v) => format!("{v:#x}"),
        AnnotationValue::String(v) | AnnotationValue::Json(v) => v.clone(),
        AnnotationValue::Proto { type_name, bytes } => format!("{type_name} {:?}", ProtoString::from(bytes.clone())),
    };
    found.insert(key, text);
}

/// A number for a set of arguments: equal sets have equal numbers.
pub(crate) fn fingerprint(arguments: &BTreeMap<String, String>) -> u64 {
    let mut hasher = DefaultHasher::new();
    arguments.hash(&mut hasher);
    hasher.finish()
}
