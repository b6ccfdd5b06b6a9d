//! Value types.

use std::collections::HashSet;

use prost_reflect::{Cardinality, Kind, MessageDescriptor};

use crate::generator::Generator;
use crate::model::Field;
use crate::names;
use crate::print::Printer;

/// The field that every value type has besides those of the schema.
const UNKNOWN_FIELDS: &str = "unknown_fields";

pub(crate) fn print(generator: &Generator<'_>, p: &mut Printer, message: &MessageDescriptor) {
    let fields = generator.fields(message);
    let name = message.name();
    let slots: Vec<Slot> = fields.iter().map(|field| Slot::of(generator, message, field)).collect();
    p.gap();
    p.doc(&format!("A `{}` as a value.", message.full_name()));
    p.line("#[derive(Clone, Debug, Default, PartialEq)]");
    p.block(format!("pub struct {name}"), |p| {
        for (field, slot) in fields.iter().zip(&slots) {
            p.doc(&field.doc);
            generator.cfg_for(p, &message.parent_file(), field);
            p.field(&format!("pub {}", slot.name), &slot.type_name);
        }
        p.doc("Fields that the schema does not know, encoded.");
        p.line(format!("pub {UNKNOWN_FIELDS}: pz::rt::Vec<u8>,"));
    });
    p.gap();
    p.block(format!("impl pz::Owned for {name}"), |p| {
        if slots.is_empty() {
            let args = ["&mut self".to_owned(), "_: pz::Field<'_>".to_owned(), "_: u32".to_owned()];
            p.function("fn merge_field", &args, MERGE_RETURNS, &["Ok(false)".to_owned()]);
        } else {
            merge_field(p, &slots);
        }
        p.gap();
        p.block("fn write_to(&self, message: &mut pz::Message<'_>)", |p| {
            slots.iter().for_each(|slot| p.line(format!("{};", slot.put)));
            p.line(format!("message.raw(&self.{UNKNOWN_FIELDS});"));
        });
        p.gap();
        p.block("fn unknown_fields_mut(&mut self) -> &mut pz::rt::Vec<u8>", |p| {
            p.line(format!("&mut self.{UNKNOWN_FIELDS}"));
        });
    });
    p.gap();
}

const MERGE_RETURNS: &str = " -> Result<bool, pz::DecodeError>";

fn merge_field(p: &mut Printer, slots: &[Slot]) {
    let depth = if slots.iter().any(|slot| slot.nests) { "depth: u32" } else { "_: u32" };
    let head = format!("fn merge_field(&mut self, field: pz::Field<'_>, {depth}){MERGE_RETURNS}");
    p.block(head, |p| {
        p.block("match field.id", |p| {
            slots.iter().for_each(|slot| p.arm(&slot.number.to_string(), &slot.take));
            p.line("_ => Ok(false),");
        });
    });
}

/// A field of a value type and the calls that fill and write it.
struct Slot {
    name: String,
    number: u32,
    type_name: String,
    take: String,
    put: String,
    nests: bool,
}

impl Slot {
    fn of(generator: &Generator<'_>, owner: &MessageDescriptor, field: &Field) -> Self {
        let name = names::method(&field.name, &[UNKNOWN_FIELDS]);
        let number = field.number;
        let repeated = field.repeated;
        let plural = if repeated { "s" } else { "" };
        let (element, take, put) = match &field.kind {
            Kind::Message(target) => {
                let path = generator.message_path(target, field.owner.as_ref());
                let boxed = !repeated && is_boxed(owner, target);
                let element = if boxed { format!("pz::rt::Box<{path}>") } else { path };
                let take = format!("message{plural}(&mut self.{name}, field, depth)");
                (element, take, format!("messages(message, {number}, &self.{name})"))
            }
            Kind::String => {
                let take = format!("string{plural}(&mut self.{name}, field)");
                ("pz::ProtoString".to_owned(), take, format!("bytes(message, {number}, &self.{name})"))
            }
            Kind::Bytes => {
                let take = format!("{}(&mut self.{name}, field)", if repeated { "byte_strings" } else { "bytes" });
                ("pz::rt::Vec<u8>".to_owned(), take, format!("bytes(message, {number}, &self.{name})"))
            }
            scalar => {
                let element = match scalar {
                    Kind::Enum(target) => generator.enum_path(target, field.owner.as_ref()),
                    _ => field.primitive().unwrap_or_default().to_owned(),
                };
                let kind = field.scalar_kind().unwrap_or_default();
                let take = format!("scalar{plural}::<pz::kind::{kind}>(&mut self.{name}, field)");
                let put = match (repeated, field.packed) {
                    (true, true) => format!("packed::<pz::kind::{kind}>(message, {number}, &self.{name})"),
                    (true, false) => format!("scalars::<pz::kind::{kind}>(message, {number}, &self.{name})"),
                    (false, _) => format!("scalar::<pz::kind::{kind}>(message, {number}, self.{name})"),
                };
                (element, take, put)
            }
        };
        let type_name = if repeated { format!("pz::rt::Vec<{element}>") } else { format!("Option<{element}>") };
        let nests = matches!(field.kind, Kind::Message(_));
        Self { name, number, type_name, take: format!("pz::take::{take}"), put: format!("pz::put::{put}"), nests }
    }
}

/// Values of nested messages are boxed from this size on.
///
/// The value of an empty message takes as much memory as that of a full one. Without boxes two bytes of a configuration
/// could make a value of kilobytes, thousands of times in one request.
const BOXED_SIZE: usize = 128;

/// True if the value of a `target` is boxed inside that of an `owner`: it is large, or can contain an `owner`.
fn is_boxed(owner: &MessageDescriptor, target: &MessageDescriptor) -> bool {
    contains(target, owner) || size(target) >= BOXED_SIZE
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
fn size(message: &MessageDescriptor) -> usize {
    const VEC: usize = 24;
    let field_size = |field: prost_reflect::FieldDescriptor| match field.kind() {
        _ if field.cardinality() == Cardinality::Repeated => VEC,
        Kind::String | Kind::Bytes => VEC,
        Kind::Bool => 1,
        Kind::Message(target) if is_boxed(message, &target) => 8,
        Kind::Message(target) => size(&target),
        Kind::Double | Kind::Int64 | Kind::Uint64 | Kind::Sint64 | Kind::Fixed64 | Kind::Sfixed64 => 16,
        Kind::Float | Kind::Int32 | Kind::Uint32 | Kind::Sint32 | Kind::Fixed32 | Kind::Sfixed32 | Kind::Enum(_) => 8,
    };
    VEC + message.fields().map(field_size).sum::<usize>()
}
