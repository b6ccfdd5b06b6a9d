//! How constants are evaluated.

use super::scope::{Found, Item};
use super::{Context, Resolver, versions};
use crate::error::Result;
use crate::model::{Name, Primitive, Type, Value};
use crate::syntax::{Constant, ConstantPart, DeclarationKind, File, Layout, LayoutKind, Path, TypeHead, TypeUse};

/// Type that a constant must have.
#[derive(Clone, Debug)]
enum Wanted {
    Primitive(Primitive),
    /// String of at most this many bytes.
    Text(Option<u64>),
    /// Member of an enum, or bits.
    Number(Name),
}

impl<'a> Resolver<'a> {
    /// Returns the value of a declared constant.
    pub(super) fn constant_of(&mut self, item: Item<'a>) -> Result<Value> {
        let Item { file, declaration } = item;
        let name = Name::new(&file.library.dotted(), &declaration.name.text);
        if let Some(value) = self.constants.get(&name) {
            return Ok(value.clone());
        }
        let DeclarationKind::Const { type_, value } = &declaration.kind else {
            return Err(declaration.name.span.error(format!("`{name}` is no constant")));
        };
        if !self.open.insert(name.clone()) {
            return Err(declaration.name.span.error(format!("the value of `{name}` depends on itself")));
        }
        let resolved = self.resolve_type(type_, Context { file, name: &declaration.name.text })?;
        let evaluated = self.evaluate(value, &resolved, file)?;
        self.open.remove(&name);
        self.constants.insert(name, evaluated.clone());
        Ok(evaluated)
    }

    /// Evaluates a constant of the given type.
    pub(super) fn evaluate(&mut self, constant: &Constant, type_: &Type, file: &'a File) -> Result<Value> {
        let wanted = match type_ {
            Type::Primitive(primitive) => Wanted::Primitive(*primitive),
            Type::String { max, .. } => Wanted::Text(*max),
            Type::Declared(name) => Wanted::Number(name.clone()),
            _ => return Err(constant.span.error("a constant is a number, a bool, a string, or of an enum or bits")),
        };
        let mut value = self.part(constant, &constant.parts[0], &wanted, file)?;
        for part in &constant.parts[1..] {
            let next = self.part(constant, part, &wanted, file)?;
            value = match (value, next) {
                (Value::Int(left), Value::Int(right)) => Value::Int(left | right),
                (Value::Number { type_, value: left }, Value::Number { value: right, .. }) => {
                    Value::Number { type_, value: left | right }
                }
                _ => return Err(constant.span.error("`|` joins integers or bits only")),
            };
        }
        Ok(value)
    }

    /// Evaluates a constant that is a size: of an array, or the most elements of a vector.
    pub(super) fn evaluate_size(&mut self, constant: &Constant, file: &'a File) -> Result<u64> {
        match self.evaluate(constant, &Type::Primitive(Primitive::Uint32), file)? {
            Value::Int(size) if size > 0 => Ok(u64::try_from(size).unwrap_or(u64::MAX)),
            _ => Err(constant.span.error("expected a size from 1")),
        }
    }

    fn part(&mut self, constant: &Constant, part: &ConstantPart, wanted: &Wanted, file: &'a File) -> Result<Value> {
        match (part, wanted) {
            (ConstantPart::Name(path), _) => self.named(path, wanted, file),
            (ConstantPart::Bool(truth), Wanted::Primitive(Primitive::Bool)) => Ok(Value::Bool(*truth)),
            (ConstantPart::Text(text), Wanted::Text(max)) => {
                if max.is_some_and(|max| text.len() as u64 > max) {
                    let message = format!("the string has {} bytes, more than its type allows", text.len());
                    return Err(constant.span.error(message));
                }
                Ok(Value::Text(text.clone()))
            }
            (ConstantPart::Number(number), Wanted::Primitive(primitive)) => self.number(constant, number, *primitive),
            (ConstantPart::Number(number), Wanted::Number(type_)) => {
                // Bits accept 0 and the like only through their members.
                let message = format!("`{number}` is no member of `{type_}`");
                Err(constant.span.error(message))
            }
            (_, wanted) => Err(constant.span.error(format!("expected {}", wanted.describe()))),
        }
    }

    fn number(&self, constant: &Constant, number: &str, primitive: Primitive) -> Result<Value> {
        if primitive == Primitive::Bool {
            return Err(constant.span.error("expected `true` or `false`"));
        }
        let Some((min, max)) = primitive.range() else {
            let is_number = number.parse::<f64>().is_ok_and(|float| {
                float.is_finite() && (primitive == Primitive::Float64 || float.abs() <= f64::from(f32::MAX))
            });
            if is_number {
                return Ok(Value::Float(number.to_owned()));
            }
            return Err(constant.span.error(format!("`{number}` is no {}", primitive.fidl())));
        };
        let value = integer(number).filter(|value| (min..=max).contains(value));
        value.map(Value::Int).ok_or_else(|| {
            constant.span.error(format!("`{number}` is no {}: it holds {min} to {max}", primitive.fidl()))
        })
    }

    fn named(&mut self, path: &Path, wanted: &Wanted, file: &'a File) -> Result<Value> {
        let is_max = path.parts == ["MAX"] && self.scope.find(file, path).is_none();
        if let (true, Wanted::Primitive(primitive)) = (is_max, wanted) {
            if let Some((_, max)) = primitive.range() {
                return Ok(Value::Int(max));
            }
        }
        let Some(Found { item, rest }) = self.scope.find(file, path) else {
            return Err(self.scope.unknown(file, path, "constant"));
        };
        let value = match (&item.declaration.kind, rest.as_slice()) {
            (DeclarationKind::Const { .. }, []) => self.constant_of(item)?,
            (DeclarationKind::Type(TypeUse { head: TypeHead::Layout(layout), .. }), [member])
                if matches!(layout.kind, LayoutKind::Enum | LayoutKind::Bits) =>
            {
                let type_ = Name::new(&item.file.library.dotted(), &item.declaration.name.text);
                let value = self.member_value(layout, member, item.file)?;
                let value = value.ok_or_else(|| path.span.error(format!("`{type_}` has no member `{member}`")))?;
                Value::Number { type_, value }
            }
            (DeclarationKind::Alias(_), [_]) => {
                let alias = &item.declaration.name.text;
                let message = format!("`{alias}` is an alias, which has no members: name the type that it stands for");
                return Err(path.span.error(message));
            }
            _ => return Err(path.span.error(format!("`{}` is no constant", path.dotted()))),
        };
        self.fit(value, wanted, path)
    }

    /// Checks that the value of a named constant fits where it is used.
    fn fit(&self, value: Value, wanted: &Wanted, path: &Path) -> Result<Value> {
        let fits = match (&value, wanted) {
            (Value::Bool(_), Wanted::Primitive(primitive)) => *primitive == Primitive::Bool,
            (Value::Int(value) | Value::Number { value, .. }, Wanted::Primitive(primitive)) => {
                primitive.range().is_some_and(|(min, max)| (min..=max).contains(value))
            }
            (Value::Float(_), Wanted::Primitive(primitive)) => {
                matches!(primitive, Primitive::Float32 | Primitive::Float64)
            }
            (Value::Text(text), Wanted::Text(max)) => max.is_none_or(|max| text.len() as u64 <= max),
            (Value::Number { type_, .. }, Wanted::Number(wanted)) => type_ == wanted,
            _ => false,
        };
        if !fits {
            return Err(path.span.error(format!("`{}` is not {}", path.dotted(), wanted.describe())));
        }
        Ok(match (value, wanted) {
            (Value::Number { value, .. }, Wanted::Primitive(_)) => Value::Int(value),
            (value, _) => value,
        })
    }

    /// Returns the value of a member of an enum or bits; `None` if it has no such member.
    pub(super) fn member_value(&mut self, layout: &'a Layout, member: &str, file: &'a File) -> Result<Option<i128>> {
        let type_ = Type::Primitive(self.underlying(layout, file)?);
        for candidate in &layout.members {
            let (Some(name), Some(value)) = (&candidate.name, &candidate.value) else { continue };
            if name.text != member || !versions::exists(&candidate.attributes)? {
                continue;
            }
            return match self.evaluate(value, &type_, file)? {
                Value::Int(value) => Ok(Some(value)),
                _ => Err(value.span.error("expected an integer")),
            };
        }
        Ok(None)
    }

    /// Returns the type of an enum or bits.
    pub(super) fn underlying(&mut self, layout: &'a Layout, file: &'a File) -> Result<Primitive> {
        let Some(subtype) = &layout.subtype else { return Ok(Primitive::Uint32) };
        let resolved = self.resolve_type(subtype, Context { file, name: "" })?;
        match resolved {
            Type::Primitive(primitive) if layout.kind == LayoutKind::Bits => {
                let is_unsigned = primitive.range().is_some_and(|(min, _)| min == 0);
                is_unsigned.then_some(primitive).ok_or_else(|| subtype.span.error("bits have an unsigned integer type"))
            }
            Type::Primitive(primitive) if primitive.range().is_some() => Ok(primitive),
            _ => Err(subtype.span.error("an enum has an integer type")),
        }
    }
}

impl Wanted {
    fn describe(&self) -> String {
        match self {
            Self::Primitive(primitive) => format!("a value of {}", primitive.fidl()),
            Self::Text(Some(max)) => format!("a string of at most {max} bytes"),
            Self::Text(None) => "a string".to_owned(),
            Self::Number(name) => format!("a member of `{name}`"),
        }
    }
}

/// Reads `1`, `-1`, `0x1f` or `0b101`.
fn integer(number: &str) -> Option<i128> {
    let (sign, digits) = number.strip_prefix('-').map_or((1, number), |digits| (-1, digits));
    let prefix = digits.get(..2).map(str::to_ascii_lowercase);
    let value = match prefix.as_deref() {
        Some("0x") => i128::from_str_radix(&digits[2..], 16),
        Some("0b") => i128::from_str_radix(&digits[2..], 2),
        _ => digits.parse(),
    };
    // `+` is not part of the language.
    value.ok().filter(|_| !digits.contains(['+', '-'])).map(|value| sign * value)
}

#[cfg(test)]
mod tests {
    use super::integer;

    #[test]
    fn integers_have_three_bases() {
        assert_eq!(integer("-12"), Some(-12));
        assert_eq!(integer("0x1F"), Some(31));
        assert_eq!(integer("0b101"), Some(5));
        assert_eq!(integer("0x"), None);
        assert_eq!(integer("1.5"), None);
        assert_eq!(integer("0x-1"), None);
        assert_eq!(integer("12u"), None);
    }
}
