//! Enums and bits.

use esatto_rust_text::Printer;

use super::context::{Context, ROOT, WIRE};
use super::messages::{decode_head, put_head, rest_head};
use super::{names, notes};
use crate::model::{Declaration, Numbers, Primitive};

const DERIVES: &str = "#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]";

impl Primitive {
    pub(super) fn rust(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int8 => "i8",
            Self::Int16 => "i16",
            Self::Int32 => "i32",
            Self::Int64 => "i64",
            Self::Uint8 => "u8",
            Self::Uint16 => "u16",
            Self::Uint32 => "u32",
            Self::Uint64 => "u64",
            Self::Float32 => "f32",
            Self::Float64 => "f64",
        }
    }
}

pub(super) fn strict_enum(_: &Context<'_>, p: &mut Printer, declaration: &Declaration, numbers: &Numbers) {
    let (name, number) = (names::type_name(&declaration.name.name), numbers.type_.rust());
    notes(p, &declaration.notes, &format!("Strict enum `{}`.", declaration.name));
    p.line(DERIVES);
    p.line(format!("#[repr({number})]"));
    p.block(format!("pub enum {name}"), |p| {
        for member in &numbers.members {
            notes(p, &member.notes, &format!("`{}`", member.name));
            p.line(format!("{} = {},", names::variant(&member.name), member.value));
        }
    });
    p.gap();
    p.block(format!("impl {name}"), |p| {
        p.doc("Returns the member of this value; `None` if there is none.");
        p.line("#[must_use]");
        p.block(format!("pub const fn from_primitive(value: {number}) -> Option<Self>"), |p| {
            p.block("match value", |p| {
                for member in &numbers.members {
                    p.line(format!("{} => Some(Self::{}),", member.value, names::variant(&member.name)));
                }
                p.line("_ => None,");
            });
        });
        p.gap();
        p.doc("Returns the value.");
        p.line("#[must_use]");
        p.block(format!("pub const fn into_primitive(self) -> {number}"), |p| p.line(format!("self as {number}")));
    });
    let decode = [
        format!("let value = <{number} as {WIRE}::Wire>::decode(decoder, place)?;"),
        format!("Self::from_primitive(value).ok_or_else(|| {ROOT}::DecodeError::unknown_enum(value, place.offset()))"),
    ];
    wire(p, &name, numbers.type_, ("value.into_primitive()", None), &decode);
}

pub(super) fn flexible_enum(_: &Context<'_>, p: &mut Printer, declaration: &Declaration, numbers: &Numbers) {
    let (name, number) = (names::type_name(&declaration.name.name), numbers.type_.rust());
    notes(p, &declaration.notes, &format!("Flexible enum `{}`: other values are kept.", declaration.name));
    p.line("#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]");
    p.line(format!("pub struct {name}({number});"));
    p.gap();
    p.block(format!("impl {name}"), |p| {
        constants(p, numbers);
        p.doc("Returns the enum with this value, known or not.");
        p.line("#[must_use]");
        p.block(format!("pub const fn from_primitive(value: {number}) -> Self"), |p| p.line("Self(value)"));
        p.gap();
        p.doc("Returns the value.");
        p.line("#[must_use]");
        p.block(format!("pub const fn into_primitive(self) -> {number}"), |p| p.line("self.0"));
        p.gap();
        p.doc("Returns true if the value is that of no member.");
        p.line("#[must_use]");
        p.block("pub const fn is_unknown(self) -> bool", |p| {
            let known: Vec<_> = numbers.members.iter().filter(|member| !member.is_unknown).collect();
            if known.is_empty() {
                p.line("let _ = self;");
                p.line("true");
            } else {
                let values: Vec<_> = known.iter().map(|member| member.value.to_string()).collect();
                p.line(format!("!matches!(self.0, {})", values.join(" | ")));
            }
        });
    });
    debug(p, &name, |p| {
        p.block("match self.0", |p| {
            for member in &numbers.members {
                p.line(format!("{} => formatter.write_str({:?}),", member.value, member.name));
            }
            p.line(format!("value => write!(formatter, \"{name}({{value}})\"),"));
        });
    });
    let decode = [format!("<{number} as {WIRE}::Wire>::decode(decoder, place).map(Self)")];
    wire(p, &name, numbers.type_, ("value.0", None), &decode);
}

pub(super) fn bits(_: &Context<'_>, p: &mut Printer, declaration: &Declaration, numbers: &Numbers) {
    let (name, number) = (names::type_name(&declaration.name.name), numbers.type_.rust());
    let mask = numbers.members.iter().fold(0, |mask, member| mask | member.value);
    let kind = if numbers.is_strict { "Strict bits" } else { "Flexible bits" };
    let rule = if numbers.is_strict { "" } else { ": other bits are kept" };
    notes(p, &declaration.notes, &format!("{kind} `{}`{rule}.", declaration.name));
    p.line("#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]");
    p.line(format!("pub struct {name}({number});"));
    p.gap();
    p.block(format!("impl {name}"), |p| {
        constants(p, numbers);
        p.doc("Returns the bits with this value, known or not.");
        p.line("#[must_use]");
        p.block(format!("pub const fn from_bits_retain(bits: {number}) -> Self"), |p| p.line("Self(bits)"));
        p.gap();
        p.doc("Returns the bits that have members; the others are dropped.");
        p.line("#[must_use]");
        p.block(format!("pub const fn from_bits_truncate(bits: {number}) -> Self"), |p| {
            p.line(format!("Self(bits & {mask:#x})"));
        });
        p.gap();
        p.doc("Returns the value.");
        p.line("#[must_use]");
        p.block(format!("pub const fn bits(self) -> {number}"), |p| p.line("self.0"));
        p.gap();
        p.doc("Returns true if all bits of `other` are set.");
        p.line("#[must_use]");
        p.block("pub const fn contains(self, other: Self) -> bool", |p| p.line("self.0 & other.0 == other.0"));
        p.gap();
        p.doc("Returns true if a bit is set that has no member.");
        p.line("#[must_use]");
        p.block("pub const fn has_unknown(self) -> bool", |p| p.line(format!("self.0 & !{mask:#x} != 0")));
    });
    for (operator, method, sign) in [("BitOr", "bitor", "|"), ("BitAnd", "bitand", "&"), ("BitXor", "bitxor", "^")] {
        p.gap();
        p.block(format!("impl ::core::ops::{operator} for {name}"), |p| {
            p.line("type Output = Self;");
            p.gap();
            p.block(format!("fn {method}(self, other: Self) -> Self"), |p| {
                p.line(format!("Self(self.0 {sign} other.0)"))
            });
        });
    }
    debug(p, &name, |p| {
        p.line(format!("formatter.write_str(\"{name}(\")?;"));
        p.line(format!("{ROOT}::wire::debug_bits(formatter, u64::from(self.0), &["));
        for member in &numbers.members {
            p.line(format!("    ({:?}, {:#x}),", member.name, member.value));
        }
        p.line("])?;");
        p.line("formatter.write_str(\")\")");
    });
    let (check, decode): (_, Vec<String>) = if numbers.is_strict {
        let error = format!("{ROOT}::EncodeError::unknown_bits(u64::from(value.0), at)");
        let check = format!("if value.has_unknown() {{ return Err({error}); }}");
        let decode = vec![
            format!("let bits = Self(<{number} as {WIRE}::Wire>::decode(decoder, place)?);"),
            format!(
                "if bits.has_unknown() {{ Err({ROOT}::DecodeError::unknown_bits(u64::from(bits.0), place.offset())) }} else {{ Ok(bits) }}"
            ),
        ];
        (Some(check), decode)
    } else {
        (None, vec![format!("<{number} as {WIRE}::Wire>::decode(decoder, place).map(Self)")])
    };
    wire(p, &name, numbers.type_, ("value.0", check), &decode);
}

fn constants(p: &mut Printer, numbers: &Numbers) {
    for member in &numbers.members {
        notes(p, &member.notes, &format!("`{}`", member.name));
        p.line(format!("pub const {}: Self = Self({});", names::constant(&member.name), member.value));
    }
    if !numbers.members.is_empty() {
        p.gap();
    }
}

fn debug(p: &mut Printer, name: &str, body: impl FnOnce(&mut Printer)) {
    p.gap();
    p.block(format!("impl ::core::fmt::Debug for {name}"), |p| {
        p.block("fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result", body);
    });
}

/// Writes the encoding. `value` has the number, and may come with a check.
fn wire(p: &mut Printer, name: &str, primitive: Primitive, value: (&str, Option<String>), decode: &[String]) {
    let (number, (value, check)) = (primitive.rust(), value);
    p.gap();
    p.block(format!("impl {WIRE}::Wire for {name}"), |p| {
        p.line("type Value = Self;");
        p.line(format!("const SIZE: usize = {};", primitive.size()));
        p.line(format!("const ALIGN: usize = {};", primitive.size()));
        p.line(format!("const HAS_REST: bool = {};", check.is_some()));
        p.line(format!("const NUMBER: Option<{WIRE}::Number> = <{number} as {WIRE}::Wire>::NUMBER;"));
        p.gap();
        p.line("#[inline]");
        put_head(p, Some(&mut |p| p.line(format!("{WIRE}::put::<{number}>(&{value}, place, 0);"))));
        p.gap();
        if let Some(check) = &check {
            rest_head(p, |p| {
                p.line("let _ = encoder;");
                p.line(check);
                p.line("Ok(())");
            });
            p.gap();
        }
        p.line("#[inline]");
        decode_head(p, |p| decode.iter().for_each(|line| p.line(line)));
    });
}
