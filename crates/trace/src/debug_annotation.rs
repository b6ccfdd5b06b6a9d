//! Debug annotations (`docs/spec/track-event.md` §13).

use esatto_protozero::{Field, Fields};
use esatto_schema::{debug_annotation, debug_annotation::field as annotation, interned_data};
use hashbrown::HashMap;

use crate::packet_sequence::State;
use crate::string_table::{Strings, Symbol};
use crate::tables::{Arg, ArgValue};

/// Characters that separate the parts of keys. In names they are replaced.
const KEY_CHARACTERS: [char; 3] = ['.', '[', ']'];
/// Deepest nesting that is read; deeper annotations are cut off.
const MAX_DEPTH: usize = 32;

/// A named value that an event carries.
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation {
    /// Its name; empty if it could not be resolved.
    pub name: String,
    /// Its value.
    pub value: AnnotationValue,
}

/// The value of an annotation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AnnotationValue {
    /// No value: an empty dictionary, an empty array, or nothing at all.
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

/// A text of an annotation. An interned text may be long and belong to many annotations, so it is
/// not copied.
#[derive(Debug, Clone, Copy)]
enum Text<'p> {
    Missing,
    Inline(&'p [u8]),
    Interned(Symbol),
}

impl<'p> Text<'p> {
    fn of(field: &Field<'p>) -> Self {
        Self::Inline(field.as_bytes())
    }

    fn to_string(self, strings: &Strings) -> String {
        match self {
            Self::Missing => String::new(),
            Self::Inline(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Interned(symbol) => strings.owned(symbol),
        }
    }

    fn symbol(self, strings: &mut Strings) -> Symbol {
        match self {
            Self::Missing => strings.add_str(""),
            Self::Inline(bytes) => strings.add(bytes),
            Self::Interned(symbol) => symbol,
        }
    }
}

/// An [`Annotation`] in the memory of its packet.
#[derive(Debug)]
pub(crate) struct RawAnnotation<'p> {
    name: Text<'p>,
    value: RawValue<'p>,
}

/// An [`AnnotationValue`] in the memory of its packet.
#[derive(Debug)]
enum RawValue<'p> {
    Empty,
    Bool(bool),
    Uint(u64),
    Int(i64),
    Double(f64),
    String(Text<'p>),
    Pointer(u64),
    Json(Text<'p>),
    Dict(Vec<RawAnnotation<'p>>),
    Array(Vec<Self>),
    Proto { type_name: Text<'p>, bytes: &'p [u8] },
}

impl RawAnnotation<'_> {
    /// Returns a copy with all texts.
    pub(crate) fn to_owned(&self, strings: &Strings) -> Annotation {
        Annotation { name: self.name.to_string(strings), value: self.value.to_owned(strings) }
    }
}

impl RawValue<'_> {
    fn to_owned(&self, strings: &Strings) -> AnnotationValue {
        match self {
            Self::Empty => AnnotationValue::Empty,
            Self::Bool(v) => AnnotationValue::Bool(*v),
            Self::Uint(v) => AnnotationValue::Uint(*v),
            Self::Int(v) => AnnotationValue::Int(*v),
            Self::Double(v) => AnnotationValue::Double(*v),
            Self::String(text) => AnnotationValue::String(text.to_string(strings)),
            Self::Pointer(v) => AnnotationValue::Pointer(*v),
            Self::Json(text) => AnnotationValue::Json(text.to_string(strings)),
            Self::Dict(entries) => AnnotationValue::Dict(entries.iter().map(|entry| entry.to_owned(strings)).collect()),
            Self::Array(values) => AnnotationValue::Array(values.iter().map(|value| value.to_owned(strings)).collect()),
            Self::Proto { type_name, bytes } => {
                AnnotationValue::Proto { type_name: type_name.to_string(strings), bytes: bytes.to_vec() }
            }
        }
    }
}

/// Counts of mistakes in annotations.
#[derive(Debug, Default)]
pub(crate) struct AnnotationErrors {
    pub(crate) unresolved_names: u64,
    pub(crate) unresolved_strings: u64,
    pub(crate) nameless: u64,
}

pub(crate) struct AnnotationReader<'s> {
    pub(crate) state: &'s State,
    pub(crate) errors: AnnotationErrors,
}

impl AnnotationReader<'_> {
    /// Reads a top level annotation or a dictionary entry. Returns `None` if it has no name.
    pub(crate) fn read<'p>(&mut self, bytes: &'p [u8]) -> Option<RawAnnotation<'p>> {
        self.named(bytes, 0)
    }

    fn named<'p>(&mut self, bytes: &'p [u8], depth: usize) -> Option<RawAnnotation<'p>> {
        let mut name = None;
        for field in Fields::new(bytes) {
            match field.id {
                annotation::NAME => name = Some(Text::of(&field)),
                annotation::NAME_IID => {
                    let found = self.state.look_up(interned_data::field::DEBUG_ANNOTATION_NAMES, field.as_u64());
                    self.errors.unresolved_names += u64::from(found.is_none());
                    name = Some(found.map_or(Text::Missing, Text::Interned));
                }
                _ => {}
            }
        }
        self.errors.nameless += u64::from(name.is_none());
        Some(RawAnnotation { name: name?, value: self.value(bytes, depth) })
    }

    fn value<'p>(&mut self, bytes: &'p [u8], depth: usize) -> RawValue<'p> {
        let mut value = RawValue::Empty;
        let (mut dict, mut array) = (Vec::new(), Vec::new());
        let (mut type_name, mut proto) = (Text::Missing, None);
        if depth == MAX_DEPTH {
            return value;
        }
        for field in Fields::new(bytes) {
            match field.id {
                annotation::BOOL_VALUE => value = RawValue::Bool(field.as_bool()),
                annotation::UINT_VALUE => value = RawValue::Uint(field.as_u64()),
                annotation::INT_VALUE => value = RawValue::Int(field.as_i64()),
                annotation::DOUBLE_VALUE => value = RawValue::Double(field.as_f64()),
                annotation::POINTER_VALUE => value = RawValue::Pointer(field.as_u64()),
                annotation::STRING_VALUE => value = RawValue::String(Text::of(&field)),
                annotation::LEGACY_JSON_VALUE => value = RawValue::Json(Text::of(&field)),
                annotation::STRING_VALUE_IID => {
                    let table = interned_data::field::DEBUG_ANNOTATION_STRING_VALUES;
                    value = RawValue::String(self.resolve(table, field.as_u64()));
                }
                annotation::NESTED_VALUE => value = nested(field.as_bytes(), depth + 1),
                annotation::DICT_ENTRIES => dict.extend(self.named(field.as_bytes(), depth + 1)),
                annotation::ARRAY_VALUES => array.push(self.value(field.as_bytes(), depth + 1)),
                annotation::PROTO_TYPE_NAME => type_name = Text::of(&field),
                annotation::PROTO_TYPE_NAME_IID => {
                    type_name = self.resolve(interned_data::field::DEBUG_ANNOTATION_VALUE_TYPE_NAMES, field.as_u64());
                }
                annotation::PROTO_VALUE => proto = Some(field.as_bytes()),
                _ => {}
            }
        }
        match proto {
            Some(bytes) => RawValue::Proto { type_name, bytes },
            None if !dict.is_empty() => RawValue::Dict(dict),
            None if !array.is_empty() => RawValue::Array(array),
            None => value,
        }
    }

    fn resolve<'p>(&mut self, table: u32, iid: u64) -> Text<'p> {
        match self.state.look_up(table, iid) {
            Some(symbol) => Text::Interned(symbol),
            None => {
                self.errors.unresolved_strings += 1;
                Text::Missing
            }
        }
    }
}

/// The older form of dictionaries and arrays.
fn nested(bytes: &[u8], depth: usize) -> RawValue<'_> {
    use debug_annotation::nested_value::field as nested_value;
    let mut value = RawValue::Empty;
    let (mut keys, mut values, mut elements) = (Vec::new(), Vec::new(), Vec::new());
    if depth >= MAX_DEPTH {
        return value;
    }
    for field in Fields::new(bytes) {
        match field.id {
            nested_value::DICT_KEYS => keys.push(Text::of(&field)),
            nested_value::DICT_VALUES => values.push(nested(field.as_bytes(), depth + 1)),
            nested_value::ARRAY_VALUES => elements.push(nested(field.as_bytes(), depth + 1)),
            nested_value::INT_VALUE => value = RawValue::Int(field.as_i64()),
            nested_value::DOUBLE_VALUE => value = RawValue::Double(field.as_f64()),
            nested_value::BOOL_VALUE => value = RawValue::Bool(field.as_bool()),
            nested_value::STRING_VALUE => value = RawValue::String(Text::of(&field)),
            _ => {}
        }
    }
    if !keys.is_empty() {
        let entries = keys.into_iter().zip(values).map(|(name, value)| RawAnnotation { name, value });
        RawValue::Dict(entries.collect())
    } else if !elements.is_empty() {
        RawValue::Array(elements)
    } else {
        value
    }
}

/// Writer of the arguments that annotations make.
pub(crate) trait ArgWriter {
    /// Returns the keys that were made so far, and all texts.
    fn texts(&mut self) -> (&mut ArgKeys, &mut Strings);
    /// Adds an argument.
    fn push(&mut self, arg: Arg);
    /// Adds the arguments of a message with a type of this name.
    fn add_proto(&mut self, type_name: Symbol, bytes: &[u8], keys: (Symbol, Symbol));
}

impl RawAnnotation<'_> {
    /// Adds the arguments that the annotation makes, with keys that begin with `debug.`.
    pub(crate) fn flatten(&self, out: &mut impl ArgWriter) {
        let (keys, strings) = out.texts();
        let debug = keys.debug(strings);
        flatten_named((debug, debug), self, out);
    }

    /// Adds the arguments that the annotation makes, as members of others.
    pub(crate) fn flatten_below(&self, prefix: (Symbol, Symbol), out: &mut impl ArgWriter) {
        flatten_named(prefix, self, out);
    }
}

fn member(prefix: (Symbol, Symbol), name: Symbol, out: &mut impl ArgWriter) -> Option<(Symbol, Symbol)> {
    let (keys, strings) = out.texts();
    Some((keys.member(prefix.0, name, strings)?, keys.member(prefix.1, name, strings)?))
}

fn flatten_named(prefix: (Symbol, Symbol), annotation: &RawAnnotation<'_>, out: &mut impl ArgWriter) {
    if matches!(annotation.value, RawValue::Empty) {
        return;
    }
    let (known, strings) = out.texts();
    let name = annotation.name.symbol(strings);
    let name = known.plain(name, strings);
    if let Some(keys) = member(prefix, name, out) {
        flatten_value(keys, &annotation.value, out);
    }
}

fn flatten_value((flat_key, key): (Symbol, Symbol), value: &RawValue<'_>, out: &mut impl ArgWriter) {
    let value = match value {
        RawValue::Empty => return,
        RawValue::Proto { type_name, bytes } => {
            let type_name = type_name.symbol(out.texts().1);
            return out.add_proto(type_name, bytes, (flat_key, key));
        }
        RawValue::Dict(entries) => {
            for entry in entries {
                flatten_named((flat_key, key), entry, out);
            }
            return;
        }
        RawValue::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                let (keys, strings) = out.texts();
                let Some(key) = keys.element(key, index, strings) else { return };
                flatten_value((flat_key, key), value, out);
            }
            return;
        }
        RawValue::Json(text) => {
            let strings = out.texts().1;
            let symbol = text.symbol(strings);
            match serde_json::from_str(strings.get(symbol)) {
                Ok(json) => return flatten_json((flat_key, key), &json, out),
                Err(_) => ArgValue::Json(symbol),
            }
        }
        RawValue::Bool(v) => ArgValue::Bool(*v),
        RawValue::Uint(v) => ArgValue::Uint(*v),
        RawValue::Int(v) => ArgValue::Int(*v),
        RawValue::Double(v) => ArgValue::Real(*v),
        RawValue::Pointer(v) => ArgValue::Pointer(*v),
        RawValue::String(text) => ArgValue::Text(Some(text.symbol(out.texts().1))),
    };
    out.push(Arg { flat_key, key, value });
}

fn flatten_json((flat_key, key): (Symbol, Symbol), value: &serde_json::Value, out: &mut impl ArgWriter) {
    let value = match value {
        serde_json::Value::Null => return,
        serde_json::Value::Bool(v) => ArgValue::Bool(*v),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(v), _) => ArgValue::Int(v),
            (None, v) => ArgValue::Real(v.unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => ArgValue::Text(Some(out.texts().1.add_str(text))),
        serde_json::Value::Array(values) => {
            // Values that make no argument have no position, as in the trace processor.
            for (index, value) in values.iter().filter(|value| !value.is_null()).enumerate() {
                let (keys, strings) = out.texts();
                let Some(key) = keys.element(key, index, strings) else { return };
                flatten_json((flat_key, key), value, out);
            }
            return;
        }
        serde_json::Value::Object(entries) => {
            for (name, value) in entries {
                let name = out.texts().1.add_str(name);
                let Some(keys) = member((flat_key, key), name, out) else { return };
                flatten_json(keys, value, out);
            }
            return;
        }
    };
    out.push(Arg { flat_key, key, value });
}

/// Keys of arguments that were made of shorter ones.
///
/// A small packet can have very many long keys, because names may be interned. So the keys of a
/// trace may only take a multiple of its size.
#[derive(Debug, Default)]
pub(crate) struct ArgKeys {
    members: HashMap<(Symbol, Symbol), Symbol>,
    /// Names, and what keys have of them.
    plain_names: HashMap<Symbol, Symbol>,
    debug: Option<Symbol>,
    used: u64,
    allowed: u64,
    /// Arguments that were left out because their keys would take too much.
    pub(crate) left_out: u64,
}

/// Bytes of keys that every trace may have.
const MIN_KEY_BYTES: u64 = 16 << 20;
/// Bytes of keys for each byte of the trace.
const KEY_BYTES_RATIO: u64 = 4;

impl ArgKeys {
    /// Notes the size of a packet.
    pub(crate) fn allow(&mut self, bytes: u64) {
        self.allowed += bytes * KEY_BYTES_RATIO;
    }

    fn debug(&mut self, strings: &mut Strings) -> Symbol {
        *self.debug.get_or_insert_with(|| strings.add_str("debug"))
    }

    fn make(&mut self, strings: &mut Strings, parts: [&str; 3]) -> Option<Symbol> {
        self.used += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        if self.used > self.allowed + MIN_KEY_BYTES {
            self.left_out += 1;
            return None;
        }
        Some(strings.add_str(&parts.concat()))
    }

    pub(crate) fn member(&mut self, prefix: Symbol, name: Symbol, strings: &mut Strings) -> Option<Symbol> {
        if let Some(&key) = self.members.get(&(prefix, name)) {
            return Some(key);
        }
        let (first, last) = (strings.get(prefix).to_owned(), strings.get(name).to_owned());
        let key = self.make(strings, [&first, ".", &last])?;
        self.members.insert((prefix, name), key);
        Some(key)
    }

    /// Returns a name without characters that have a meaning in keys. Each name is searched once,
    /// because a long one may have many uses.
    fn plain(&mut self, name: Symbol, strings: &mut Strings) -> Symbol {
        *self.plain_names.entry(name).or_insert_with(|| {
            if !strings.get(name).contains(KEY_CHARACTERS) {
                return name;
            }
            let text = strings.get(name).replace(KEY_CHARACTERS, "_");
            strings.add_str(&text)
        })
    }

    pub(crate) fn element(&mut self, prefix: Symbol, index: usize, strings: &mut Strings) -> Option<Symbol> {
        let first = strings.get(prefix).to_owned();
        self.make(strings, [&first, &format!("[{index}]"), ""])
    }
}
