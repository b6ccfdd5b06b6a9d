//! Structs and new types.

use esatto_rust_text::Printer;

use super::constants::default_value;
use super::context::{Context, ROOT, WIRE};
use super::{names, notes};
use crate::model::{Declaration, Struct, Type};

/// Most parameters of a constructor.
const MAX_PARAMETERS: usize = 8;

pub(super) fn encode_head(p: &mut Printer, body: impl FnOnce(&mut Printer)) {
    let args = ["value: &'v Self".to_owned(), format!("encoder: &mut {WIRE}::Encoder<'_, 'v>"), "at: usize".to_owned()];
    p.function_with("fn encode<'v>", &args, &format!(" -> Result<(), {ROOT}::EncodeError>"), body);
}

pub(super) fn decode_head(p: &mut Printer, body: impl FnOnce(&mut Printer)) {
    let args = [format!("decoder: &mut {WIRE}::Decoder<'_>"), "at: usize".to_owned()];
    p.function_with("fn decode", &args, &format!(" -> Result<Self, {ROOT}::DecodeError>"), body);
}

/// Writes the derives of a type whose values are of these types.
pub(super) fn derives(context: &Context<'_>, p: &mut Printer, is_resource: bool, more: &str) {
    let _ = context;
    let clone = if is_resource { "" } else { "Clone, " };
    let equal = if is_resource { "" } else { ", PartialEq" };
    p.line(format!("#[derive({clone}Debug{more}{equal})]"));
}

pub(super) fn struct_(context: &Context<'_>, p: &mut Printer, declaration: &Declaration, layout: &Struct) {
    let from = &declaration.name;
    let name = names::type_name(&from.name);
    let types: Vec<Type> = layout.members.iter().map(|member| member.type_.clone()).collect();
    let (offsets, shape) = context.members(&types);
    notes(p, &declaration.notes, &format!("Struct `{from}`."));
    derives(context, p, layout.is_resource, "");
    p.block_or_empty(&format!("pub struct {name}"), layout.members.is_empty(), |p| {
        for member in &layout.members {
            notes(p, &member.notes, &format!("`{}`", member.name));
            p.field(&format!("pub {}", names::field(&member.name)), &context.value(from, &member.type_));
        }
    });
    constructor(context, p, declaration, layout);
    p.gap();
    p.block(format!("impl {WIRE}::Wire for {name}"), |p| {
        p.line("type Value = Self;");
        p.line(format!("const SIZE: usize = {};", shape.size));
        p.line(format!("const ALIGN: usize = {};", shape.align));
        p.gap();
        encode_head(p, |p| {
            if layout.members.is_empty() {
                p.line("let _ = (value, encoder, at);");
            }
            for (member, offset) in layout.members.iter().zip(&offsets) {
                let args = [
                    format!("&value.{}", names::field(&member.name)),
                    place(*offset),
                    format!("\"{}.{}\"", from.name, member.name),
                ];
                p.call("", &format!("encoder.member::<{}>", context.wire(from, &member.type_)), &args, "?;");
            }
            p.line("Ok(())");
        });
        p.gap();
        decode_head(p, |p| {
            let mut end = 0;
            for (index, (member, offset)) in layout.members.iter().zip(&offsets).enumerate() {
                padding(p, end, *offset);
                let args = [place(*offset), format!("\"{}.{}\"", from.name, member.name)];
                let function = format!("decoder.member::<{}>", context.wire(from, &member.type_));
                p.call(&format!("let member{index} = "), &function, &args, "?;");
                end = offset + context.shape(&member.type_).size;
            }
            padding(p, end, shape.size);
            let fields = layout.members.iter().enumerate();
            let fields: Vec<_> =
                fields.map(|(index, member)| format!("{}: member{index},", names::field(&member.name))).collect();
            p.block_with_end("Ok(Self", |p| fields.iter().for_each(|field| p.line(field)), "})");
        });
    });
}

/// Writes `new`, whose parameters are the members without a default.
fn constructor(context: &Context<'_>, p: &mut Printer, declaration: &Declaration, layout: &Struct) {
    let from = &declaration.name;
    let required: Vec<_> = layout.members.iter().filter(|member| member.default.is_none()).collect();
    if required.len() > MAX_PARAMETERS {
        return;
    }
    let name = names::type_name(&from.name);
    p.gap();
    p.block(format!("impl {name}"), |p| {
        let rest = if required.len() < layout.members.len() { " The other members have their defaults." } else { "" };
        p.doc(&format!("Makes one of its members.{rest}"));
        p.line("#[must_use]");
        let args: Vec<_> = required
            .iter()
            .map(|member| format!("{}: {}", names::field(&member.name), context.value(from, &member.type_)))
            .collect();
        p.function_with("pub fn new", &args, " -> Self", |p| {
            let fields = layout.members.iter().map(|member| {
                let field = names::field(&member.name);
                match &member.default {
                    Some(value) => format!("{field}: {}", default_value(context, from, &member.type_, value)),
                    None => field,
                }
            });
            p.line(format!("Self {{ {} }}", fields.collect::<Vec<_>>().join(", ")).replace("{  }", "{}"));
        });
    });
}

pub(super) fn new_type(context: &Context<'_>, p: &mut Printer, declaration: &Declaration, type_: &Type) {
    let from = &declaration.name;
    let name = names::type_name(&from.name);
    let wire = context.wire(from, type_);
    notes(p, &declaration.notes, &format!("New type `{from}`."));
    derives(context, p, context.is_resource(type_), "");
    p.line(format!("pub struct {name}(pub {});", context.value(from, type_)));
    p.gap();
    p.block(format!("impl {WIRE}::Wire for {name}"), |p| {
        p.line("type Value = Self;");
        p.line(format!("const SIZE: usize = <{wire} as {WIRE}::Wire>::SIZE;"));
        p.line(format!("const ALIGN: usize = <{wire} as {WIRE}::Wire>::ALIGN;"));
        p.gap();
        encode_head(p, |p| p.line(format!("<{wire} as {WIRE}::Wire>::encode(&value.0, encoder, at)")));
        p.gap();
        decode_head(p, |p| p.line(format!("<{wire} as {WIRE}::Wire>::decode(decoder, at).map(Self)")));
    });
}

/// Returns the place of a member.
pub(super) fn place(offset: u64) -> String {
    if offset == 0 { "at".to_owned() } else { format!("at + {offset}") }
}

fn padding(p: &mut Printer, from: u64, to: u64) {
    if from < to {
        p.line(format!("decoder.zeros({}, {})?;", place(from), to - from));
    }
}
