//! Enumerations: newtypes around the number, so that unknown numbers are values.

use std::collections::HashSet;

use prost_reflect::{EnumDescriptor, EnumValueDescriptor};

use crate::context::Context;
use esatto_rust_text::Printer;
use esatto_rust_text::identifiers;

/// Names that every enumeration has in addition to its values.
const TAKEN: &[&str] = &["name", "from", "into", "default"];

pub(crate) fn print(cx: Context<'_>, p: &mut Printer, target: &EnumDescriptor) {
    let mut values: Vec<_> = target.values().collect();
    // In the order of declaration: `Debug` prints the first of several names for a number.
    values.sort_by(|a, b| a.path().cmp(b.path()));
    let mut taken: HashSet<String> = TAKEN.iter().map(|&name| name.to_owned()).collect();
    let mut constants = Vec::new();
    for value in values {
        let mut name = value.name().to_owned();
        while !taken.insert(identifiers::ident(&name)) {
            name.push('_');
        }
        constants.push((identifiers::ident(&name), value));
    }
    let is_deprecated = |value: &EnumValueDescriptor| {
        value.enum_value_descriptor_proto().options.as_ref().is_some_and(|options| options.deprecated())
    };
    p.gap();
    p.block("pz::open_enum!", |p| {
        p.doc(&format!("Enumeration `{}`; numbers without a name are values too.", target.full_name()));
        p.remark(cx.comment(target.path()));
        let options = target.enum_descriptor_proto().options.as_ref();
        cx.deprecated(p, options.is_some_and(|options| options.deprecated()));
        let (name, default) = (cx.schema.names.other(target.full_name()), target.default_value().number());
        p.block(format!("enum {}, default {default}", identifiers::ident(name)), |p| {
            for (constant, value) in &constants {
                p.doc(cx.comment(value.path()));
                cx.deprecated(p, is_deprecated(value));
                p.line(format!("{constant} = {}, {:?};", value.number(), value.name()));
            }
        });
        if !cx.schema.config.rust_values {
            return;
        }
        // The proto names are older: a Rust name that equals one of them is left out.
        let named = constants.iter().filter_map(|(constant, value)| {
            let name = rust_name(target.name(), value.name()).filter(|name| taken.insert(name.clone()))?;
            Some((name, constant, value))
        });
        let named: Vec<_> = named.collect();
        if named.is_empty() {
            return;
        }
        p.block("names", |p| {
            for (name, constant, value) in named {
                p.doc(&format!("Is [`{constant}`](Self::{constant})."));
                cx.deprecated(p, is_deprecated(value));
                p.line(format!("{name} = {};", value.number()));
            }
        });
    });
    p.gap();
}

/// Returns the name of a value in the style of Rust: without the name of its enumeration, in camel
/// case. `None` if that is no identifier.
fn rust_name(enumeration: &str, value: &str) -> Option<String> {
    let short = without_prefix(value, enumeration).filter(|rest| identifiers::is_identifier(rest));
    let words = short.unwrap_or(value).split('_').filter(|word| !word.is_empty());
    let in_rust = |word: &str| {
        let is_shouted = !word.contains(|c: char| c.is_ascii_lowercase());
        let word = if is_shouted { word.to_ascii_lowercase() } else { word.to_owned() };
        identifiers::camel_case(&word)
    };
    let name: String = words.map(in_rust).collect();
    (identifiers::is_identifier(&name) && !identifiers::is_keyword(&name)).then_some(name)
}

/// Returns what follows the name of the enumeration and an underscore, if the value begins with
/// them. Other underscores and capitals do not count: `GPU_STATE_ON` of `GpuState` gives `ON`.
fn without_prefix<'v>(value: &'v str, enumeration: &str) -> Option<&'v str> {
    let mut wanted = enumeration.chars().filter(|&c| c != '_').peekable();
    for (at, c) in value.char_indices() {
        match wanted.peek() {
            None => return value[at..].strip_prefix('_').map(|rest| rest.trim_start_matches('_')),
            _ if c == '_' => {}
            Some(next) if next.eq_ignore_ascii_case(&c) => _ = wanted.next(),
            Some(_) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_values_are_those_of_rust() {
        for (enumeration, value, name) in [
            ("State", "STATE_DRIVING", Some("Driving")),
            ("Type", "TYPE_SLICE_BEGIN", Some("SliceBegin")),
            ("BuiltinClock", "BUILTIN_CLOCK_MONOTONIC_RAW", Some("MonotonicRaw")),
            ("GPUState2D", "GPU_STATE_2D_ON", Some("On")),
            // Another prefix stays, and so does one whose rest is no identifier.
            ("Style", "STYLES_PLAIN", Some("StylesPlain")),
            ("Level", "LEVEL_2", Some("Level2")),
            ("Level", "LEVEL", Some("Level")),
            ("Level", "LEVEL_", Some("Level")),
            ("Colour", "red", Some("Red")),
            ("Colour", "darkRed", Some("DarkRed")),
            ("Owner", "OWNER_SELF", None),
            ("Empty", "__", None),
        ] {
            assert_eq!(rust_name(enumeration, value).as_deref(), name, "{enumeration} {value}");
        }
    }
}
