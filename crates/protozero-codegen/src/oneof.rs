//! The enumeration that a `oneof` is in a value type.

use prost_reflect::{MessageDescriptor, OneofDescriptor};

use crate::config::OneofStyle;
use crate::generator::Generator;
use crate::model::Field;
use crate::names;
use crate::owned::Element;
use crate::print::Printer;

/// The oneofs of a message that become enumerations.
pub(crate) fn of(generator: &Generator<'_>, message: &MessageDescriptor) -> Vec<OneofDescriptor> {
    let enumerated = generator.config.oneofs == OneofStyle::Enum && generator.owned.contains(message.full_name());
    message.oneofs().filter(|oneof| enumerated && !oneof.is_synthetic()).collect()
}

/// Prints one into the module of its message.
pub(crate) fn print(generator: &Generator<'_>, p: &mut Printer, message: &MessageDescriptor, oneof: &OneofDescriptor) {
    let file = message.parent_file();
    let name = names::ident(generator.names.other(oneof.full_name()));
    let members = members(generator, message, oneof);
    p.gap();
    p.doc(&format!("The `oneof {}` of a `{}`.", oneof.name(), message.full_name()));
    p.remark(generator.comment(&file, oneof.path()));
    p.line("#[derive(Clone, Debug, PartialEq)]");
    p.block(format!("pub enum {name}"), |p| {
        for member in &members {
            p.doc(&member.field.doc);
            generator.cfg_for(p, &file, &member.field);
            p.line(format!("{}({}),", member.variant, member.element.type_name));
        }
    });
    p.gap();
    p.block(format!("impl pz::Oneof for {name}"), |p| {
        let args = ["slot: &mut Option<Self>", "field: pz::Field<'_>", "depth: u32"].map(str::to_owned);
        p.function_with("fn merge_field", &args, " -> Result<bool, pz::DecodeError>", |p| {
            p.block("match field.id", |p| {
                for member in &members {
                    generator.cfg_for_type(p, &file, &member.field);
                    member.take(p);
                }
                p.line("_ => Ok(false),");
            });
        });
        p.gap();
        p.block("fn write_to(&self, message: &mut pz::Message<'_>)", |p| {
            p.block("match self", |p| {
                for Member { field, variant, element } in &members {
                    generator.cfg_for_type(p, &file, field);
                    let call = format!("pz::put::member::<{}>", element.marker);
                    let args = ["message".to_owned(), field.number.to_string(), "value".to_owned()];
                    p.arm_call(&format!("Self::{variant}(value)"), &call, &args);
                }
            });
        });
    });
    p.gap();
}

struct Member {
    field: Field,
    variant: String,
    element: Element,
}

impl Member {
    fn take(&self, p: &mut Printer) {
        let Self { field, variant, element } = self;
        let call = format!("pz::take::member::<{}, _>", element.marker);
        let args = ["slot", "field", "depth", &format!("Self::{variant}")].map(str::to_owned);
        if !element.nests {
            return p.arm_call(&field.number.to_string(), &call, &args);
        }
        let members = |p: &mut Printer| {
            let merge = ["value", "field", "depth"].map(str::to_owned);
            p.arm_call(&format!("Some(Self::{variant}(value))"), "pz::take::merge", &merge);
            p.arm_call("_", &call, &args);
        };
        p.block_with_end(format!("{} => match slot", field.number), members, "},");
    }
}

fn members(generator: &Generator<'_>, message: &MessageDescriptor, oneof: &OneofDescriptor) -> Vec<Member> {
    let mut taken = Vec::new();
    let fields =
        generator.fields(message).into_iter().filter(|field| field.oneof.as_deref() == Some(oneof.full_name()));
    fields
        .map(|field| {
            // The enumeration lies in the module of its message, not beside it.
            let field = Field { owner: None, ..field };
            let mut variant = names::ident(&names::camel_case(&field.name));
            if variant.is_empty() || variant.starts_with(|c: char| c.is_ascii_digit()) {
                variant.insert(0, '_');
            }
            while taken.contains(&variant) {
                variant.push('_');
            }
            taken.push(variant.clone());
            let element = Element::of(generator, message, &field);
            Member { field, variant, element }
        })
        .collect()
}
