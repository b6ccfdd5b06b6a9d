//! Writers and readers.

use std::collections::HashSet;

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use crate::generator::Generator;
use crate::model::Field;
use crate::names;
use crate::owned::VALUE_FIELDS;
use crate::print::Printer;

/// What every writer has besides the methods of its fields.
pub(crate) const WRITER_METHODS: &[&str] = &["message", "from", "into"];
/// What every reader has besides the methods of its fields.
pub(crate) const READER_METHODS: &[&str] =
    &["new", "parse", "decode", "decoder", "as_bytes", "fields", "unknown_fields", "check", "from", "into"];

pub(crate) fn print(generator: &Generator<'_>, p: &mut Printer, message: &MessageDescriptor) {
    let fields = generator.fields(message);
    let file = message.parent_file();
    let name = generator.names.message(message);
    let deprecated = message.descriptor_proto().options.as_ref().is_some_and(|options| options.deprecated());
    p.gap();
    p.block("pz::message!", |p| {
        p.doc(&format!("Appends the fields of a `{}`.", message.full_name()));
        p.remark(generator.comment(&file, message.path()));
        generator.deprecated(p, deprecated);
        p.line(format!("writer {name}Writer;"));
        p.doc(&format!("The fields of an encoded `{}`.", message.full_name()));
        p.remark(generator.comment(&file, message.path()));
        generator.deprecated(p, deprecated);
        p.line(format!("reader {name}Reader;"));
        p.line(format!("decoder {name}Decoder;"));
        let mut numbers: Vec<u32> = fields.iter().map(|field| field.number).collect();
        numbers.sort_unstable();
        p.fill("fields ", &numbers.iter().map(u32::to_string).collect::<Vec<_>>(), ";");
    });
    p.gap();
    if fields.is_empty() {
        return;
    }
    p.block(format!("impl {name}Writer<'_>"), |p| {
        for field in &fields {
            for setter in Setter::all(generator, field, WRITER_METHODS) {
                p.doc(&setter.doc);
                generator.cfg_for(p, &file, field);
                p.line("#[inline]");
                p.function(&format!("pub fn {}", setter.name), &setter.args, &setter.returns, &setter.body("self.0"));
                p.gap();
            }
        }
    });
    p.gap();
    p.block(format!("impl<'a, I: pz::Lookup> {name}Reader<'a, I>"), |p| {
        for field in &fields {
            let getter = Getter::of(generator, field, READER_METHODS);
            let args = ["&self".to_owned()];
            p.doc(&field.doc);
            generator.cfg_for(p, &file, field);
            p.line("#[inline]");
            p.function(&format!("pub fn {}", getter.name), &args, &getter.returns, &getter.body("self.0"));
            p.gap();
        }
        for oneof in message.oneofs().filter(|oneof| !oneof.is_synthetic()) {
            let mut numbers: Vec<u32> = oneof.fields().map(|field| field.number()).collect();
            numbers.sort_unstable();
            p.doc(&format!("The member of `oneof {}` that counts, which is the one that comes last.", oneof.name()));
            p.line("#[inline]");
            let mut name = names::method(oneof.name(), READER_METHODS);
            while fields.iter().any(|field| names::method(&field.name, READER_METHODS) == name) {
                name.push('_');
            }
            p.block(format!("pub fn {name}(&self) -> Option<pz::Field<'a>>"), |p| {
                p.short_list("self.0.last_of(&", &numbers.iter().map(u32::to_string).collect::<Vec<_>>(), ")");
            });
            p.gap();
        }
    });
    p.gap();
}

/// Ends the name of a method that takes an encoded message.
const RAW: &str = "_raw";
/// Ends the name of a method that begins a packed field, to append its values one by one.
const BEGIN: &str = "_begin";
/// Ends the name of a method that appends an entry of a map.
const ENTRY: &str = "_entry";

/// Appends underscores to the name of a field until none of its methods, nor its field of a value, has a name in `taken`.
pub(crate) fn make_unique(field: &mut Field, taken: &mut HashSet<String>) {
    loop {
        let plain = [WRITER_METHODS, READER_METHODS, VALUE_FIELDS].map(|reserved| names::method(&field.name, reserved));
        let mut wanted: Vec<String> = plain.iter().map(|name| name.trim_start_matches("r#").to_owned()).collect();
        wanted.extend(field.lazy.then(|| format!("{}{RAW}", field.name)));
        wanted.extend(field.packed.then(|| format!("{}{BEGIN}", field.name)));
        wanted.extend(field.entry.as_ref().map(|_| format!("{}{ENTRY}", field.name)));
        if wanted.iter().all(|name| !taken.contains(name)) {
            return taken.extend(wanted);
        }
        field.name.push('_');
    }
}

/// A method of a writer that appends a field.
pub(crate) struct Setter {
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) args: Vec<String>,
    /// ` -> T`
    pub(crate) returns: String,
    /// The call on the message, without the receiver.
    call: String,
    /// Instead: the call that begins an entry of a map, and those that fill it.
    entry: Option<[String; 3]>,
    chains: bool,
}

impl Setter {
    /// All methods of one field.
    pub(crate) fn all(generator: &Generator<'_>, field: &Field, taken: &[&str]) -> Vec<Self> {
        let mut setters = vec![Self::of(generator, field, taken)];
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
                returns: format!(" -> pz::Packed<'_, pz::kind::{}>", spelled_kind(generator, field)),
                call: format!("begin_packed({})", field.number),
                entry: None,
                chains: false,
            });
        }
        setters.extend(field.entry.as_ref().and_then(|entry| Self::of_entry(generator, field, entry)));
        setters
    }

    fn of(generator: &Generator<'_>, field: &Field, taken: &[&str]) -> Self {
        let (name, doc) = (names::method(&field.name, taken), field.doc.clone());
        let id = field.number;
        if let Kind::Message(target) = &field.kind {
            let returns = format!(" -> {}Writer<'_>", generator.message_path(target, field.owner.as_ref()));
            let call = format!("begin({id}).into()");
            return Self { name, doc, args: vec!["&mut self".to_owned()], returns, call, entry: None, chains: false };
        }
        let (value, call) = if field.packed {
            let element = element_type(generator, field);
            let kind = field.scalar_kind().unwrap_or_default();
            (
                format!("values: impl IntoIterator<Item = {element}, IntoIter: Clone>"),
                format!("packed::<pz::kind::{kind}>({id}, values.into_iter())"),
            )
        } else {
            scalar_setter(generator, field, "value")
        };
        Self::chained(name, doc, vec![value], call)
    }

    /// The method that appends a whole entry of a map; none if its values are messages.
    fn of_entry(generator: &Generator<'_>, field: &Field, entry: &MessageDescriptor) -> Option<Self> {
        let part = |part: &FieldDescriptor, name: &str| {
            let part = Field { owner: field.owner.clone(), ..Field::of(part, "") };
            match part.kind {
                Kind::Message(_) => None,
                _ => Some(scalar_setter(generator, &part, name)),
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

    /// The lines of the method's body, for a message that is reached by `message`.
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

/// The argument `name` and the call that append one scalar value.
fn scalar_setter(generator: &Generator<'_>, field: &Field, name: &str) -> (String, String) {
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
    (format!("{name}: {}", element_type(generator, field)), call)
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
    pub(crate) fn of(generator: &Generator<'_>, field: &Field, taken: &[&str]) -> Self {
        let element = element_type(generator, field);
        let (function, returns) = match (&field.kind, field.repeated) {
            (Kind::Message(_), true) => ("messages".to_owned(), format!("pz::Messages<'a, {element}>")),
            (Kind::Message(_), false) => ("message".to_owned(), format!("Option<{element}>")),
            (_, true) => {
                ("repeated".to_owned(), format!("pz::Repeated<'a, pz::kind::{}>", spelled_kind(generator, field)))
            }
            (_, false) => {
                let kind = field.scalar_kind().unwrap_or("Bytes");
                (format!("last::<pz::kind::{kind}>"), format!("Option<{element}>"))
            }
        };
        Self { name: names::method(&field.name, taken), returns: format!(" -> {returns}"), function, id: field.number }
    }

    /// The lines of the method's body, for a message that is reached by `view`.
    pub(crate) fn body(&self, view: &str) -> Vec<String> {
        vec![format!("{view}.{}({})", self.function, self.id)]
    }
}

/// The type that a reader returns for one value, which is also what a writer takes for numbers and enumerations.
fn element_type(generator: &Generator<'_>, field: &Field) -> String {
    match &field.kind {
        Kind::Message(target) => format!("{}Reader<'a>", generator.message_path(target, field.owner.as_ref())),
        Kind::Enum(target) => generator.enum_path(target, field.owner.as_ref()),
        Kind::String | Kind::Bytes => "&'a [u8]".to_owned(),
        _ => field.primitive().unwrap_or_default().to_owned(),
    }
}

/// The runtime's name of the kind of a field that is not a message, where nothing can be inferred.
fn spelled_kind(generator: &Generator<'_>, field: &Field) -> String {
    match field.kind {
        Kind::Enum(_) => format!("Enum<{}>", element_type(generator, field)),
        _ => field.scalar_kind().unwrap_or("Bytes").to_owned(),
    }
}
