//! Value types of messages.

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor, OneofDescriptor};

use crate::config::OneofStyle;
use crate::context::Context;
use crate::element::Element;
use crate::field::Field;
use crate::method_names::VALUE_FIELDS;
use esatto_rust_text::Printer;
use esatto_rust_text::identifiers;

pub(crate) fn print(cx: Context<'_>, p: &mut Printer, message: &MessageDescriptor) {
    let name = cx.schema.names.message(message);
    let slots = slots(cx, message);
    p.gap();
    p.doc(&format!("A `{}` as a value.", message.full_name()));
    p.remark(cx.comment(message.path()));
    let options = message.descriptor_proto().options.as_ref();
    cx.deprecated(p, options.is_some_and(|options| options.deprecated()));
    p.line("#[derive(Clone, Debug, Default, PartialEq)]");
    p.block(format!("pub struct {name}"), |p| {
        for slot in &slots {
            p.doc(&slot.doc);
            slot.field.iter().for_each(|field| cx.attributes_for(p, field));
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
            merge_field(cx, p, &slots);
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
                slot.cfg(cx, p);
                p.call("", &slot.put, &slot.put_args, ";");
            }
            p.line("message.raw(&self.unknown_fields);");
        });
    });
    p.gap();
}

const MERGE_RETURNS: &str = " -> Result<bool, pz::DecodeError>";

fn merge_field(cx: Context<'_>, p: &mut Printer, slots: &[Slot]) {
    let depth = if slots.iter().any(|slot| slot.nests) { "depth: u32" } else { "_: u32" };
    let args = ["&mut self".to_owned(), "field: pz::Field<'_>".to_owned(), depth.to_owned()];
    p.function_with("fn merge_field", &args, MERGE_RETURNS, |p| {
        p.block("match field.id", |p| {
            for slot in slots {
                slot.cfg(cx, p);
                let mut args = vec![format!("&mut self.{}", slot.name), "field".to_owned()];
                args.extend(slot.nests.then(|| "depth".to_owned()));
                p.arm_call(&slot.numbers, &slot.take, &args);
            }
            p.line("_ => Ok(false),");
        });
    });
}

/// A field of a value type, and the functions of the runtime that decode and encode it.
struct Slot {
    name: String,
    /// The numbers of the fields of the message, as a pattern.
    numbers: String,
    doc: String,
    type_name: String,
    take: String,
    /// True if decoding can recurse.
    nests: bool,
    put: String,
    put_args: Vec<String>,
    /// The field of the message, unless this is a oneof.
    field: Option<Field>,
}

/// Returns the fields of the value type of a message, without those that every value has.
fn slots(cx: Context<'_>, message: &MessageDescriptor) -> Vec<Slot> {
    let fields = cx.schema.fields(message);
    let mut oneofs = cx.schema.enumerated_oneofs(message);
    let mut slots = Vec::new();
    for field in &fields {
        match field.oneof.as_ref().filter(|_| cx.schema.config.oneofs == OneofStyle::Enum) {
            None => slots.push(Slot::of(cx, message, field)),
            Some(name) => {
                // The oneof stands at the place of its first member.
                let found = oneofs.iter().position(|oneof| oneof.full_name() == name);
                slots.extend(found.map(|index| Slot::of_oneof(cx, message, &oneofs.swap_remove(index), &fields)));
            }
        }
    }
    slots
}

impl Slot {
    /// Prints the `cfg` of code that needs the type of this slot.
    fn cfg(&self, cx: Context<'_>, p: &mut Printer) {
        self.field.iter().for_each(|field| cx.cfg_for(p, field));
    }

    fn of(cx: Context<'_>, owner: &MessageDescriptor, field: &Field) -> Self {
        let name = identifiers::method(&field.name, VALUE_FIELDS);
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
                Element::of(cx, owner, &part)
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
        let element = Element::of(cx, owner, field).type_name;
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

    fn of_oneof(cx: Context<'_>, message: &MessageDescriptor, oneof: &OneofDescriptor, fields: &[Field]) -> Self {
        let members = || fields.iter().filter(|field| field.oneof.as_deref() == Some(oneof.full_name()));
        let numbers: Vec<String> = members().map(|field| field.number.to_string()).collect();
        let mut name = identifiers::method(oneof.name(), VALUE_FIELDS);
        while fields.iter().any(|field| identifiers::method(&field.name, VALUE_FIELDS) == name) {
            name.push('_');
        }
        let module = identifiers::ident(cx.schema.names.module(message));
        let mut doc = format!("`oneof {}`", oneof.name());
        let comment = cx.comment(oneof.path());
        if !comment.is_empty() {
            doc = format!("{doc}\n\n{comment}");
        }
        Self {
            numbers: numbers.join(" | "),
            doc,
            type_name: format!("Option<{module}::{}>", identifiers::ident(cx.schema.names.other(oneof.full_name()))),
            take: "pz::take::oneof".to_owned(),
            nests: true,
            put: "pz::put::oneof".to_owned(),
            put_args: vec!["message".to_owned(), format!("&self.{name}")],
            field: None,
            name,
        }
    }
}
