//! How values are read.

use super::json;
use super::types::Place;
use crate::error::Result;
use crate::model::{Primitive, Type, Value};

impl Place<'_> {
    /// Reads the value of a type.
    pub(super) fn value(&self, constant: &json::Constant, type_: &Type) -> Result<Value> {
        let text = constant.value.as_str();
        match type_ {
            Type::Primitive(Primitive::Bool) => match text {
                "true" => Ok(Value::Bool(true)),
                "false" => Ok(Value::Bool(false)),
                _ => Err(self.error(format!("expected `true` or `false`, found `{text}`"))),
            },
            Type::Primitive(primitive) if primitive.range().is_some() => {
                Ok(Value::Int(self.integer(text, *primitive)?))
            }
            Type::Primitive(primitive) => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                let is_literal = digits.starts_with(|first: char| first.is_ascii_digit());
                let is_number = text.parse::<f64>().is_ok_and(|float| {
                    float.is_finite() && (*primitive == Primitive::Float64 || float.abs() <= f64::from(f32::MAX))
                });
                if is_literal && is_number {
                    return Ok(Value::Float(text.to_owned()));
                }
                Err(self.error(format!("`{text}` is no {}", primitive.fidl())))
            }
            Type::String { max, .. } => {
                if max.is_some_and(|max| text.len() as u64 > max) {
                    return Err(self.error(format!("the string has {} bytes, more than its type allows", text.len())));
                }
                Ok(Value::Text(text.to_owned()))
            }
            Type::Declared(name) if self.known.kind(name) == Some(super::names::Kind::Number) => {
                let value = text.parse().map_err(|_| self.error(format!("`{text}` is no value of `{name}`")))?;
                Ok(Value::Number { type_: name.clone(), value })
            }
            _ => Err(self.error("a constant is a number, a bool, a string, or of an enum or bits")),
        }
    }

    pub(super) fn integer(&self, text: &str, primitive: Primitive) -> Result<i128> {
        let range = primitive.range().map(|(min, max)| min..=max);
        let value = text.parse().ok().filter(|value| range.is_some_and(|range| range.contains(value)));
        value.ok_or_else(|| self.error(format!("`{text}` is no {}", primitive.fidl())))
    }
}
