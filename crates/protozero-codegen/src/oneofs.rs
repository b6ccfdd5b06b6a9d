//! Enumerations for the oneofs of value types.

use prost_reflect::{MessageDescriptor, OneofDescriptor};

use crate::context::Context;
use crate::element::Element;
use crate::field::Field;
use esatto_rust_text::Printer;
use esatto_rust_text::identifiers;

/// Prints the enumeration into the module of its message.
pub(crate) fn print(cx: Context<'_>, p: &mut Printer, message: &MessageDescriptor, oneof: &OneofDescriptor) {
    let name = identifiers::ident(cx.schema.names.other(oneof.full_name()));
    let members = members(cx, message, oneof);
    p.gap();
    p.doc(&format!("The `oneof {}` of a `{}`.", oneof.name(), message.full_name()));
    p.remark(cx.comment(oneof.path()));
    p.line("#[derive(Clone, Debug, PartialEq)]");
    p.block(format!("pub enum {name}"), |p| {
        for member in &members {
            p.doc(&member.field.doc);
            cx.attributes_for(p, &member.field);
            p.line(format!("{}({}),", member.variant, member.element.type_name));
        }
    });
    p.gap();
    p.block(format!("impl pz::Oneof for {name}"), |p| {
        let args = ["slot: &mut Option<Self>", "field: pz::Field<'_>", "depth: u32"].map(str::to_owned);
        p.function_with("fn merge_field", &args, " -> Result<bool, pz::DecodeError>", |p| {
            p.block("match field.id", |p| {
                for member in &members {
                    cx.cfg_for(p, &member.field);
                    member.take(p);
                }
                p.line("_ => Ok(false),");
            });
        });
        p.gap();
        p.block("fn write_to(&self, message: &mut pz::Message<'_>)", |p| {
            p.block("match self", |p| {
                for Member { field, variant, element } in &members {
                    cx.cfg_for(p, field);
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

fn members(cx: Context<'_>, message: &MessageDescriptor, oneof: &OneofDescriptor) -> Vec<Member> {
    let mut taken = Vec::new();
    let fields =
        cx.schema.fields(message).into_iter().filter(|field| field.oneof.as_deref() == Some(oneof.full_name()));
    fields
        .map(|field| {
            // Paths start at the module of the message, where the enumeration lies, and not beside
            // it.
            let field = Field { owner: None, ..field };
            let mut variant = identifiers::ident(&identifiers::camel_case(&field.name));
            if variant.is_empty() || variant.starts_with(|c: char| c.is_ascii_digit()) {
                variant.insert(0, '_');
            }
            while taken.contains(&variant) {
                variant.push('_');
            }
            taken.push(variant.clone());
            let element = Element::of(cx, message, &field);
            Member { field, variant, element }
        })
        .collect()
}
