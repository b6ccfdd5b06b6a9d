//! Structs and new types.

use esatto_rust_text::Printer;

use super::constants::default_value;
use super::context::{Context, ROOT, WIRE};
use super::{names, notes};
use crate::model::{Declaration, Struct, Type};

/// Most parameters of a constructor.
const MAX_PARAMETERS: usize = 8;

/// Writes the bytes in place. Nothing is written of a type whose bytes come with the rest.
pub(super) fn put_head(p: &mut Printer, body: Option<&mut dyn FnMut(&mut Printer)>) {
    match body {
        Some(body) => p.function_with("fn put", &["value: &Self".to_owned(), "place: &mut [u8]".to_owned()], "", body),
        None => p.line("fn put(_: &Self, _: &mut [u8]) {}"),
    }
}

pub(super) fn rest_head(p: &mut Printer, body: impl FnOnce(&mut Printer)) {
    let args = ["value: &'v Self".to_owned(), format!("encoder: &mut {WIRE}::Encoder<'_, 'v>"), "at: usize".to_owned()];
    p.function_with("fn encode_rest<'v>", &args, &format!(" -> Result<(), {ROOT}::EncodeError>"), body);
}

pub(super) fn decode_head(p: &mut Printer, body: impl FnOnce(&mut Printer)) {
    let args = [format!("decoder: &mut {WIRE}::Decoder<'b>"), format!("place: {WIRE}::Place<'b>")];
    p.function_with("fn decode<'b>", &args, &format!(" -> Result<Self, {ROOT}::DecodeError>"), body);
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
        let wires: Vec<_> = layout.members.iter().map(|member| context.wire(from, &member.type_)).collect();
        let rests: Vec<_> = (0..types.len()).filter(|&index| !matches!(types[index], Type::Primitive(_))).collect();
        let has_rest = has_rest(rests.iter().map(|&index| &*wires[index]));
        p.line(format!("const HAS_REST: bool = {has_rest};"));
        p.gap();
        p.line("#[inline]");
        let mut put = |p: &mut Printer| {
            let size = shape.size;
            p.line(format!("let Some(place) = place.first_chunk_mut::<{size}>() else {{ return }};"));
            for ((member, offset), wire) in layout.members.iter().zip(&offsets).zip(&wires) {
                let args = [format!("&value.{}", names::field(&member.name)), "place".to_owned(), offset.to_string()];
                p.call("", &format!("{WIRE}::put::<{wire}>"), &args, ";");
            }
        };
        put_head(p, (!layout.members.is_empty()).then_some(&mut put));
        p.gap();
        if !rests.is_empty() {
            rest_head(p, |p| {
                for &index in &rests {
                    let member = &layout.members[index];
                    let args = [
                        format!("&value.{}", names::field(&member.name)),
                        place(offsets[index]),
                        format!("\"{}.{}\"", from.name, member.name),
                    ];
                    p.call("", &format!("encoder.rest::<{}>", wires[index]), &args, "?;");
                }
                p.line("Ok(())");
            });
            p.gap();
        }
        p.line("#[inline]");
        decode_head(p, |p| {
            p.line(format!("let place = place.sized::<{}>()?;", shape.size));
            if layout.members.is_empty() {
                p.line("let _ = decoder;");
            }
            let mut end = 0;
            for (index, (member, offset)) in layout.members.iter().zip(&offsets).enumerate() {
                padding(p, end, *offset);
                let args = ["place".to_owned(), offset.to_string(), format!("\"{}.{}\"", from.name, member.name)];
                let function = format!("decoder.member::<{}>", wires[index]);
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

/// Returns the expression that says if a struct of such members has more than its bytes in place.
fn has_rest<'a>(wires: impl Iterator<Item = &'a str>) -> String {
    let wires: std::collections::BTreeSet<_> = wires.collect();
    let terms: Vec<_> = wires.iter().map(|wire| format!("<{wire} as {WIRE}::Wire>::HAS_REST")).collect();
    if terms.is_empty() { "false".to_owned() } else { terms.join(" || ") }
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
        p.line(format!("const HAS_REST: bool = <{wire} as {WIRE}::Wire>::HAS_REST;"));
        p.gap();
        p.line("#[inline]");
        put_head(p, Some(&mut |p| p.line(format!("{WIRE}::put::<{wire}>(&value.0, place, 0);"))));
        p.gap();
        rest_head(p, |p| p.line(format!("<{wire} as {WIRE}::Wire>::encode_rest(&value.0, encoder, at)")));
        p.gap();
        p.line("#[inline]");
        decode_head(p, |p| p.line(format!("<{wire} as {WIRE}::Wire>::decode(decoder, place).map(Self)")));
    });
}

/// Returns the place of a member.
fn place(offset: u64) -> String {
    if offset == 0 { "at".to_owned() } else { format!("at + {offset}") }
}

fn padding(p: &mut Printer, from: u64, to: u64) {
    if from < to {
        p.line(format!("place.zeros({from}, {})?;", to - from));
    }
}
