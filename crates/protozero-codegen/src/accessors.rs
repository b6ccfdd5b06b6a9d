//! Methods of writers and readers for one field.

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use crate::context::Context;
use crate::field::Field;
use crate::method_names::{BEGIN, ENTRY, RAW};
use esatto_rust_text::identifiers;

/// A method of a writer that appends a field.
pub(crate) struct Setter {
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) args: Vec<String>,
    /// ` -> T`
    pub(crate) returns: String,
    /// The call on the message, without the receiver.
    call: String,
    /// For an entry of a map, instead: the call that begins it, and those that write key and value.
    entry: Option<[String; 3]>,
    chains: bool,
}

impl Setter {
    /// Returns all methods of one field.
    pub(crate) fn all(cx: Context<'_>, field: &Field, taken: &[&str]) -> Vec<Self> {
        let mut setters = vec![Self::of(cx, field, taken)];
        if field.lazy && field.entry.is_none() && matches!(field.kind, Kind::Message(_)) {
            setters.push(Self::chained(
                format!("{}{RAW}", field.name),
                format!("{}\n\nTakes the encoded message.", field.doc),
                vec!["value: &[u8]".to_owned()],
                format!("bytes({}, value)", field.number),
            ));
        }
        if field.packed {
            setters.push(Self {
                name: format!("{}{BEGIN}", field.name),
                doc: format!("{}\n\nThe values are appended one by one.", field.doc),
                args: vec!["&mut self".to_owned()],
                returns: format!(" -> pz::Packed<'_, pz::kind::{}>", spelled_kind(cx, field)),
                call: format!("begin_packed({})", field.number),
                entry: None,
                chains: false,
            });
        }
        setters.extend(field.entry.as_ref().and_then(|entry| Self::of_entry(cx, field, entry)));
        setters
    }

    fn of(cx: Context<'_>, field: &Field, taken: &[&str]) -> Self {
        let (name, doc) = (identifiers::method(&field.name, taken), field.doc.clone());
        let id = field.number;
        if let Kind::Message(target) = &field.kind {
            let returns = format!(" -> {}Writer<'_>", cx.message_path(target, field.owner.as_ref()));
            let call = format!("begin({id}).into()");
            return Self { name, doc, args: vec!["&mut self".to_owned()], returns, call, entry: None, chains: false };
        }
        let (value, call) = if field.packed {
            let element = element_type(cx, field);
            let kind = field.scalar_kind().unwrap_or_default();
            (
                format!("values: impl IntoIterator<Item = {element}, IntoIter: Clone>"),
                format!("packed::<pz::kind::{kind}>({id}, values.into_iter())"),
            )
        } else {
            scalar_setter(cx, field, "value")
        };
        Self::chained(name, doc, vec![value], call)
    }

    /// Returns the method that appends a whole entry of a map; none if its values are messages.
    fn of_entry(cx: Context<'_>, field: &Field, entry: &MessageDescriptor) -> Option<Self> {
        let part = |part: &FieldDescriptor, name: &str| {
            let part = Field { owner: field.owner.clone(), ..Field::of(part, "") };
            match part.kind {
                Kind::Message(_) => None,
                _ => Some(scalar_setter(cx, &part, name)),
            }
        };
        let (key, put_key) = part(&entry.map_entry_key_field(), "key")?;
        let (value, put_value) = part(&entry.map_entry_value_field(), "value")?;
        let doc = format!("{}\n\nAppends an entry.", field.doc);
        let setter = Self::chained(format!("{}{ENTRY}", field.name), doc, vec![key, value], String::new());
        Some(Self { entry: Some([format!("begin({})", field.number), put_key, put_value]), ..setter })
    }

    fn chained(name: String, doc: String, values: Vec<String>, call: String) -> Self {
        let args = [vec!["&mut self".to_owned()], values].concat();
        Self { name, doc, args, returns: " -> &mut Self".to_owned(), call, entry: None, chains: true }
    }

    /// Returns the lines of the method's body. `message` is the expression for the message.
    pub(crate) fn body(&self, message: &str) -> Vec<String> {
        if let Some([begin, key, value]) = &self.entry {
            let lines =
                [format!("let mut entry = {message}.{begin};"), format!("entry.{key};"), format!("entry.{value};")];
            [&lines[..], &["drop(entry);".to_owned(), "self".to_owned()]].concat()
        } else if self.chains {
            vec![format!("{message}.{};", self.call), "self".to_owned()]
        } else {
            vec![format!("{message}.{}", self.call)]
        }
    }
}

/// Returns the argument `name` and the call that appends one scalar value.
fn scalar_setter(cx: Context<'_>, field: &Field, name: &str) -> (String, String) {
    let id = field.number;
    let call = match &field.kind {
        Kind::Int32 => format!("int({id}, i64::from({name}))"),
        Kind::Int64 => format!("int({id}, {name})"),
        Kind::Uint32 => format!("varint({id}, u64::from({name}))"),
        Kind::Uint64 => format!("varint({id}, {name})"),
        Kind::Sint32 => format!("sint({id}, i64::from({name}))"),
        Kind::Sint64 => format!("sint({id}, {name})"),
        Kind::Fixed32 => format!("fixed32({id}, {name})"),
        Kind::Fixed64 => format!("fixed64({id}, {name})"),
        Kind::Sfixed32 => format!("fixed32({id}, {name} as u32)"),
        Kind::Sfixed64 => format!("fixed64({id}, {name} as u64)"),
        Kind::Float => format!("float({id}, {name})"),
        Kind::Double => format!("double({id}, {name})"),
        Kind::Bool => format!("bool({id}, {name})"),
        Kind::Enum(_) => format!("int({id}, i64::from({name}.0))"),
        Kind::String => return (format!("{name}: impl AsRef<[u8]>"), format!("bytes({id}, {name}.as_ref())")),
        Kind::Bytes | Kind::Message(_) => return (format!("{name}: &[u8]"), format!("bytes({id}, {name})")),
    };
    (format!("{name}: {}", element_type(cx, field)), call)
}

/// The method of a reader that finds a field.
pub(crate) struct Getter {
    pub(crate) name: String,
    /// ` -> T`
    pub(crate) returns: String,
    function: String,
    id: u32,
}

impl Getter {
    pub(crate) fn of(cx: Context<'_>, field: &Field, taken: &[&str]) -> Self {
        let element = element_type(cx, field);
        let (function, returns) = match (&field.kind, field.repeated) {
            (Kind::Message(_), true) => ("messages".to_owned(), format!("pz::Messages<'a, {element}>")),
            (Kind::Message(_), false) => ("message".to_owned(), format!("Option<{element}>")),
            (_, true) => ("repeated".to_owned(), format!("pz::Repeated<'a, pz::kind::{}>", spelled_kind(cx, field))),
            (_, false) => {
                let kind = field.scalar_kind().unwrap_or("Bytes");
                (format!("last::<pz::kind::{kind}>"), format!("Option<{element}>"))
            }
        };
        Self {
            name: identifiers::method(&field.name, taken),
            returns: format!(" -> {returns}"),
            function,
            id: field.number,
        }
    }

    /// Returns the lines of the method's body. `view` is the expression for the message.
    pub(crate) fn body(&self, view: &str) -> Vec<String> {
        vec![format!("{view}.{}({})", self.function, self.id)]
    }
}

/// Returns the type of one value in a reader. For numbers and enumerations it is also that of a
/// writer's argument.
fn element_type(cx: Context<'_>, field: &Field) -> String {
    match &field.kind {
        Kind::Message(target) => format!("{}Reader<'a>", cx.message_path(target, field.owner.as_ref())),
        Kind::Enum(target) => cx.enum_path(target, field.owner.as_ref()),
        Kind::String | Kind::Bytes => "&'a [u8]".to_owned(),
        _ => field.primitive().unwrap_or_default().to_owned(),
    }
}

/// Returns the runtime's name of the kind of a field that is not a message, with all generic
/// arguments.
fn spelled_kind(cx: Context<'_>, field: &Field) -> String {
    match field.kind {
        Kind::Enum(_) => format!("Enum<{}>", element_type(cx, field)),
        _ => field.scalar_kind().unwrap_or("Bytes").to_owned(),
    }
}
