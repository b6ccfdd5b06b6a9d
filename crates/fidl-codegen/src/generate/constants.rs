//! Constants, and values in the code.

use esatto_rust_text::Printer;

use super::context::Context;
use super::{names, notes};
use crate::model::{Declaration, DeclarationKind, Name, Primitive, Type, Value};

pub(super) fn constant(context: &Context<'_>, p: &mut Printer, declaration: &Declaration, type_: &Type, value: &Value) {
    notes(p, &declaration.notes, &format!("Constant `{}`.", declaration.name));
    let type_name = match type_ {
        Type::String { .. } => "&str".to_owned(),
        other => context.value(&declaration.name, other),
    };
    let name = names::constant(&declaration.name.name);
    p.value(
        &format!("pub const {name}: {type_name} ="),
        &format!("{};", constant_value(context, &declaration.name, type_, value)),
    );
}

/// Returns the value of a constant, which may be borrowed.
fn constant_value(context: &Context<'_>, from: &Name, type_: &Type, value: &Value) -> String {
    match value {
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => float(number, type_),
        Value::Text(text) => format!("{text:?}"),
        Value::Number { type_, value } => member(context, from, type_, *value),
    }
}

/// Returns the default of a member of a struct.
pub(super) fn default_value(context: &Context<'_>, from: &Name, type_: &Type, value: &Value) -> String {
    let inner = constant_value(context, from, type_, value);
    match (type_, value) {
        (Type::String { is_optional: true, .. }, _) => format!("Some({inner}.to_owned())"),
        (_, Value::Text(_)) => format!("{inner}.to_owned()"),
        _ => inner,
    }
}

fn member(context: &Context<'_>, from: &Name, type_: &Name, value: i128) -> String {
    let path = context.path(from, type_);
    match context.get(type_).map(|declaration| &declaration.kind) {
        Some(DeclarationKind::Enum(numbers)) => {
            let member = numbers.members.iter().find(|member| member.value == value);
            match member {
                Some(member) if numbers.is_strict => format!("{path}::{}", names::variant(&member.name)),
                Some(member) => format!("{path}::{}", names::constant(&member.name)),
                None => format!("{path}::from_primitive({value})"),
            }
        }
        _ => format!("{path}::from_bits_retain({value})"),
    }
}

/// Returns a number of FIDL as one of Rust.
fn float(number: &str, type_: &Type) -> String {
    let type_ = if *type_ == Type::Primitive(Primitive::Float32) { "f32" } else { "f64" };
    format!("{number}_{type_}")
}
