//! Value types.

use std::collections::HashSet;

use prost_reflect::{Cardinality, FieldDescriptor, FileDescriptor, Kind, MessageDescriptor, OneofDescriptor};

use crate::config::OneofStyle;
use crate::generator::Generator;
use crate::model::Field;
use crate::print::Printer;
use crate::{names, oneof};

/// The fields that every value type has besides those of the schema.
pub(crate) const VALUE_FIELDS: &[&str] = &["unknown_fields"];

pub(crate) fn print(generator: &Generator<'_>, p: &mut Printer, message: &MessageDescriptor) {
    let name = generator.names.message(message);
    let file = message.parent_file();
    let slots = slots(generator, message);
    p.gap();
    p.doc(&format!("A `{}` as a value.", message.full_name()));
    p.remark(generator.comment(&file, message.path()));
    let options = message.descriptor_proto().options.as_ref();
    generator.deprecated(p, options.is_some_and(|options| options.deprecated()));
    p.line("#[derive(Clone, Debug, Default, PartialEq)]");
    p.block(format!("pub struct {name}"), |p| {
        for slot in &slots {
            p.doc(&slot.doc);
            slot.field.iter().for_each(|field| generator.cfg_for(p, &file, field));
            p.field(&format!("pub {}", slot.name), &slot.type_name);
        }
        p.doc("Fields that the schema does not know, encoded.");
        p.line("pub unknown_fields: pz::rt::Vec<u8>,");
    });
    p.gap();
    p.block(format!("impl pz::DecodeFields for {name}"), |p| {
        if slots.is_empty() {
            let args = ["&mut self".to_owned(), "_: pz::Field<'_>".to_owned(), "_: u32".to_owned()];
            p.function("fn merge_field", &args, MERGE_RETURNS, &["Ok(false)".to_owned()]);
        } else {
            merge_field(generator, p, &file, &slots);
        }
        p.gap();
        p.block("fn unknown_fields_mut(&mut self) -> &mut pz::rt::Vec<u8>", |p| {
            p.line("&mut self.unknown_fields");
        });
    });
    p.gap();
    p.block(format!("impl pz::EncodeFields for {name}"), |p| {
        p.block("fn write_to(&self, message: &mut pz::Message<'_>)", |p| {
            for slot in &slots {
                slot.cfg(generator, p, &file);
                p.call("", &slot.put, &slot.put_args, ";");
            }
            p.line("message.raw(&self.unknown_fields);");
        });
    });
    p.gap();
}

const MERGE_RETURNS: &str = " -> Result<bool, pz::DecodeError>";

fn merge_field(generator: &Generator<'_>, p: &mut Printer, file: &FileDescriptor, slots: &[Slot]) {
    let depth = if slots.iter().any(|slot| slot.nests) { "depth: u32" } else { "_: u32" };
    let args = ["&mut self".to_owned(), "field: pz::Field<'_>".to_owned(), depth.to_owned()];
    p.function_with("fn merge_field", &args, MERGE_RETURNS, |p| {
        p.block("match field.id", |p| {
            for slot in slots {
                slot.cfg(generator, p, file);
                let mut args = vec![format!("&mut self.{}", slot.name), "field".to_owned()];
                args.extend(slot.nests.then(|| "depth".to_owned()));
                p.arm_call(&slot.numbers, &slot.take, &args);
            }
            p.line("_ => Ok(false),");
        });
    });
}

/// A field of a value type and the functions that fill and write it.
struct Slot {
    name: String,
    /// The numbers of the fields of the message, as a pattern.
    numbers: String,
    doc: String,
    type_name: String,
    take: String,
    /// True if filling it can recurse.
    nests: bool,
    put: String,
    put_args: Vec<String>,
    /// The field of the message, if there is exactly one.
    field: Option<Field>,
}

/// The fields of the value type of a message, without those that every value has.
fn slots(generator: &Generator<'_>, message: &MessageDescriptor) -> Vec<Slot> {
    let fields = generator.fields(message);
    let mut oneofs = oneof::of(generator, message);
    let mut slots = Vec::new();
    for field in &fields {
        match field.oneof.as_ref().filter(|_| generator.config.oneofs == OneofStyle::Enum) {
            None => slots.push(Slot::of(generator, message, field)),
            Some(name) => {
                // At the place of its first member.
                let found = oneofs.iter().position(|oneof| oneof.full_name() == name);
                slots
                    .extend(found.map(|index| Slot::of_oneof(generator, message, &oneofs.swap_remove(index), &fields)));
            }
        }
    }
    slots
}

impl Slot {
    /// Writes the `cfg` of what needs the type of this slot.
    fn cfg(&self, generator: &Generator<'_>, p: &mut Printer, file: &FileDescriptor) {
        self.field.iter().for_each(|field| generator.cfg_for_type(p, file, field));
    }

    fn of(generator: &Generator<'_>, owner: &MessageDescriptor, field: &Field) -> Self {
        let name = names::method(&field.name, VALUE_FIELDS);
        let number = field.number;
        let plural = if field.repeated { "s" } else { "" };
        let reference = |name: &str| vec!["message".to_owned(), number.to_string(), format!("&self.{name}")];
        let slot = Self {
            numbers: number.to_string(),
            doc: field.doc.clone(),
            type_name: String::new(),
            take: String::new(),
            nests: matches!(field.kind, Kind::Message(_)),
            put: String::new(),
            put_args: reference(&name),
            field: Some(field.clone()),
            name,
        };
        if let Some(entry) = &field.entry {
            let part = |part: &FieldDescriptor| {
                let part = Field { owner: field.owner.clone(), repeated: true, ..Field::of(part, "") };
                Element::of(generator, owner, &part)
            };
            let (key, value) = (part(&entry.map_entry_key_field()), part(&entry.map_entry_value_field()));
            let markers = format!("{}, {}", key.marker, value.marker);
            return Self {
                type_name: format!("pz::rt::BTreeMap<{}, {}>", key.type_name, value.type_name),
                take: format!("pz::take::map::<{markers}>"),
                put: format!("pz::put::map::<{markers}>"),
                ..slot
            };
        }
        let element = Element::of(generator, owner, field).type_name;
        let (take, put) = match &field.kind {
            Kind::Message(_) => (format!("message{plural}"), "messages".to_owned()),
            Kind::String => (format!("string{plural}"), "bytes".to_owned()),
            Kind::Bytes => (if field.repeated { "byte_strings" } else { "bytes" }.to_owned(), "bytes".to_owned()),
            _ => {
                let kind = field.scalar_kind().unwrap_or_default();
                let put = if field.packed { "packed".to_owned() } else { format!("scalar{plural}") };
                (format!("scalar{plural}::<pz::kind::{kind}>"), format!("{put}::<pz::kind::{kind}>"))
            }
        };
        let by_value = !field.repeated && field.scalar_kind().is_some();
        let mut put_args = slot.put_args;
        if by_value {
            put_args[2] = format!("self.{}", slot.name);
        }
        Self {
            type_name: if field.repeated { format!("pz::rt::Vec<{element}>") } else { format!("Option<{element}>") },
            take: format!("pz::take::{take}"),
            put: format!("pz::put::{put}"),
            put_args,
            ..slot
        }
    }

    fn of_oneof(
        generator: &Generator<'_>,
        message: &MessageDescriptor,
        oneof: &OneofDescriptor,
        fields: &[Field],
    ) -> Self {
        let members = || fields.iter().filter(|field| field.oneof.as_deref() == Some(oneof.full_name()));
        let numbers: Vec<String> = members().map(|field| field.number.to_string()).collect();
        let mut name = names::method(oneof.name(), VALUE_FIELDS);
        while fields.iter().any(|field| names::method(&field.name, VALUE_FIELDS) == name) {
            name.push('_');
        }
        let module = names::ident(generator.names.module(message));
        let mut doc = format!("`oneof {}`", oneof.name());
        let comment = generator.comment(&message.parent_file(), oneof.path());
        if !comment.is_empty() {
            doc = format!("{doc}\n\n{comment}");
        }
        Self {
            numbers: numbers.join(" | "),
            doc,
            type_name: format!("Option<{module}::{}>", names::ident(generator.names.other(oneof.full_name()))),
            take: "pz::take::oneof".to_owned(),
            nests: true,
            put: "pz::put::oneof".to_owned(),
            put_args: vec!["message".to_owned(), format!("&self.{name}")],
            field: None,
            name,
        }
    }
}

/// One value of a field, or a key or a value of a map.
pub(crate) struct Element {
    pub(crate) type_name: String,
    /// The runtime's type that knows how it is decoded and encoded.
    pub(crate) marker: String,
    pub(crate) nests: bool,
}

impl Element {
    pub(crate) fn of(generator: &Generator<'_>, owner: &MessageDescriptor, field: &Field) -> Self {
        let (type_name, marker) = match &field.kind {
            Kind::Message(target) => {
                let path = generator.message_path(target, field.owner.as_ref());
                let boxed = !field.repeated && is_boxed(generator, owner, target);
                let type_name = if boxed { format!("pz::rt::Box<{path}>") } else { path };
                let marker = format!("pz::element::Nested<{type_name}>");
                (type_name, marker)
            }
            Kind::String => ("pz::ProtoString".to_owned(), "pz::element::Text".to_owned()),
            Kind::Bytes => ("pz::rt::Vec<u8>".to_owned(), "pz::element::Bytes".to_owned()),
            Kind::Enum(target) => {
                let path = generator.enum_path(target, field.owner.as_ref());
                let marker = format!("pz::element::Scalar<pz::kind::Enum<{path}>>");
                (path, marker)
            }
            _ => {
                let kind = field.scalar_kind().unwrap_or_default();
                let type_name = field.primitive().unwrap_or_default().to_owned();
                (type_name, format!("pz::element::Scalar<pz::kind::{kind}>"))
            }
        };
        Self { type_name, marker, nests: matches!(field.kind, Kind::Message(_)) }
    }
}

/// Values of nested messages are boxed from this size on.
///
/// The value of an empty message takes as much memory as that of a full one. Without boxes two bytes of a configuration
/// could make a value of kilobytes, thousands of times in one request.
const BOXED_SIZE: usize = 128;

/// True if the value of a `target` is boxed inside that of an `owner`: it is large, or can contain an `owner`.
fn is_boxed(generator: &Generator<'_>, owner: &MessageDescriptor, target: &MessageDescriptor) -> bool {
    contains(target, owner) || size(generator, target) >= BOXED_SIZE
}

/// True if a value of `outer` is or has one of `inner` inside, by way of singular fields.
fn contains(outer: &MessageDescriptor, inner: &MessageDescriptor) -> bool {
    let mut seen = HashSet::new();
    let mut todo = vec![outer.clone()];
    while let Some(message) = todo.pop() {
        if message == *inner {
            return true;
        }
        if seen.insert(message.full_name().to_owned()) {
            todo.extend(message.fields().filter_map(|field| match field.kind() {
                Kind::Message(target) if field.cardinality() != Cardinality::Repeated => Some(target),
                _ => None,
            }));
        }
    }
    false
}

/// About how many bytes a value takes, without what it holds on the heap.
fn size(generator: &Generator<'_>, message: &MessageDescriptor) -> usize {
    const VEC: usize = 24;
    if let Some(known) = generator.sizes.borrow().get(message.full_name()) {
        return *known;
    }
    let field_size = |field: FieldDescriptor| match field.kind() {
        _ if field.cardinality() == Cardinality::Repeated => VEC,
        Kind::String | Kind::Bytes => VEC,
        Kind::Bool => 1,
        Kind::Message(target) if is_boxed(generator, message, &target) => 8,
        Kind::Message(target) => size(generator, &target),
        Kind::Double | Kind::Int64 | Kind::Uint64 | Kind::Sint64 | Kind::Fixed64 | Kind::Sfixed64 => 16,
        Kind::Float | Kind::Int32 | Kind::Uint32 | Kind::Sint32 | Kind::Fixed32 | Kind::Sfixed32 | Kind::Enum(_) => 8,
    };
    let size = VEC + message.fields().map(field_size).sum::<usize>();
    generator.sizes.borrow_mut().insert(message.full_name().to_owned(), size);
    size
}
