//! Writers and readers.

use prost_reflect::{Kind, MessageDescriptor};

use crate::generator::Generator;
use crate::model::Field;
use crate::names;
use crate::print::Printer;

/// What every writer has besides the methods of its fields.
const WRITER_METHODS: &[&str] = &["message", "from", "into"];
/// What every reader has besides the methods of its fields.
const READER_METHODS: &[&str] =
    &["new", "parse", "decode", "decoder", "as_bytes", "fields", "unknown_fields", "check", "from", "into"];

pub(crate) fn print(generator: &Generator<'_>, p: &mut Printer, message: &MessageDescriptor) {
    let fields = generator.fields(message);
    let file = message.parent_file();
    p.gap();
    p.block("pz::message!", |p| {
        p.doc(&format!("Appends the fields of a `{}`.", message.full_name()));
        p.remark(generator.comment(&file, message.path()));
        p.line(format!("writer {}Writer;", message.name()));
        p.doc(&format!("The fields of an encoded `{}`.", message.full_name()));
        p.remark(generator.comment(&file, message.path()));
        p.line(format!("reader {}Reader;", message.name()));
        p.line(format!("decoder {}Decoder;", message.name()));
        let mut numbers: Vec<u32> = fields.iter().map(|field| field.number).collect();
        numbers.sort_unstable();
        p.fill("fields ", &numbers.iter().map(u32::to_string).collect::<Vec<_>>(), ";");
    });
    p.gap();
    if fields.is_empty() {
        return;
    }
    p.block(format!("impl {}Writer<'_>", message.name()), |p| {
        for field in &fields {
            let setter = Setter::of(generator, field, WRITER_METHODS);
            p.doc(&field.doc);
            generator.cfg_for(p, &file, field);
            p.line("#[inline]");
            p.function(&format!("pub fn {}", setter.name), &setter.args, &setter.returns, &setter.body("self.0"));
            p.gap();
        }
    });
    p.gap();
    p.block(format!("impl<'a, I: pz::Lookup> {}Reader<'a, I>", message.name()), |p| {
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
            p.block(
                format!("pub fn {}(&self) -> Option<pz::Field<'a>>", names::method(oneof.name(), READER_METHODS)),
                |p| {
                    p.fill("self.0.last_of(&[", &numbers.iter().map(u32::to_string).collect::<Vec<_>>(), "])");
                },
            );
            p.gap();
        }
    });
    p.gap();
}

/// The method of a writer that appends a field.
pub(crate) struct Setter {
    pub(crate) name: String,
    pub(crate) args: Vec<String>,
    /// ` -> T`
    pub(crate) returns: String,
    /// The call on the message, without the receiver.
    call: String,
    chains: bool,
}

impl Setter {
    pub(crate) fn of(generator: &Generator<'_>, field: &Field, taken: &[&str]) -> Self {
        let name = names::method(&field.name, taken);
        let id = field.number;
        if let Kind::Message(target) = &field.kind {
            let returns = format!(" -> {}Writer<'_>", generator.message_path(target, field.owner.as_ref()));
            let call = format!("begin({id}).into()");
            return Self { name, args: vec!["&mut self".to_owned()], returns, call, chains: false };
        }
        let (value, call) = if field.packed {
            let element = element_type(generator, field);
            let kind = field.scalar_kind().unwrap_or_default();
            (
                format!("values: impl Iterator<Item = {element}> + Clone"),
                format!("packed::<pz::kind::{kind}>({id}, values)"),
            )
        } else {
            scalar_setter(generator, field)
        };
        let args = vec!["&mut self".to_owned(), value];
        Self { name, args, returns: " -> &mut Self".to_owned(), call, chains: true }
    }

    /// The lines of the method's body, for a message that is reached by `message`.
    pub(crate) fn body(&self, message: &str) -> Vec<String> {
        if self.chains {
            vec![format!("{message}.{};", self.call), "self".to_owned()]
        } else {
            vec![format!("{message}.{}", self.call)]
        }
    }
}

/// The argument and the call that append one scalar value.
fn scalar_setter(generator: &Generator<'_>, field: &Field) -> (String, String) {
    let id = field.number;
    let call = match &field.kind {
        Kind::Int32 => format!("int({id}, i64::from(value))"),
        Kind::Int64 => format!("int({id}, value)"),
        Kind::Uint32 => format!("varint({id}, u64::from(value))"),
        Kind::Uint64 => format!("varint({id}, value)"),
        Kind::Sint32 => format!("sint({id}, i64::from(value))"),
        Kind::Sint64 => format!("sint({id}, value)"),
        Kind::Fixed32 => format!("fixed32({id}, value)"),
        Kind::Fixed64 => format!("fixed64({id}, value)"),
        Kind::Sfixed32 => format!("fixed32({id}, value as u32)"),
        Kind::Sfixed64 => format!("fixed64({id}, value as u64)"),
        Kind::Float => format!("float({id}, value)"),
        Kind::Double => format!("double({id}, value)"),
        Kind::Bool => format!("bool({id}, value)"),
        Kind::Enum(_) => format!("int({id}, i64::from(value.0))"),
        Kind::String => return ("value: impl AsRef<[u8]>".to_owned(), format!("bytes({id}, value.as_ref())")),
        Kind::Bytes | Kind::Message(_) => return ("value: &[u8]".to_owned(), format!("bytes({id}, value)")),
    };
    (format!("value: {}", element_type(generator, field)), call)
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
            (kind, true) => {
                let kind = match kind {
                    Kind::Enum(_) => format!("Enum<{element}>"),
                    _ => field.scalar_kind().unwrap_or("Bytes").to_owned(),
                };
                ("repeated".to_owned(), format!("pz::Repeated<'a, pz::kind::{kind}>"))
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
