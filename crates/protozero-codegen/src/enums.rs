//! Enumerations: open, as a newtype around the number.

use std::collections::HashSet;

use prost_reflect::EnumDescriptor;

use crate::generator::Generator;
use crate::names;
use crate::print::Printer;

pub(crate) fn print(generator: &Generator<'_>, p: &mut Printer, target: &EnumDescriptor) {
    let file = target.parent_file();
    let name = names::ident(target.name());
    p.gap();
    p.doc(&format!("Enumeration `{}`; numbers without a name are values too.", target.full_name()));
    let comment = generator.comment(&file, target.path());
    if !comment.is_empty() {
        p.doc("");
        p.doc(comment);
    }
    p.line("#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]");
    p.line(format!("pub struct {name}(pub i32);"));
    p.gap();
    p.line("#[allow(missing_docs)]");
    p.block(format!("impl {name}"), |p| {
        for value in target.values() {
            p.doc(generator.comment(&file, value.path()));
            p.line(format!("pub const {}: Self = Self({});", names::ident(value.name()), value.number()));
        }
    });
    p.gap();
    p.block(format!("impl {name}"), |p| {
        p.doc("The name of the value, if the schema has one.");
        p.line("#[must_use]");
        p.block("pub const fn name(self) -> Option<&'static str>", |p| {
            p.line("Some(match self {");
            let mut numbers = HashSet::new();
            for value in target.values().filter(|value| numbers.insert(value.number())) {
                p.line(format!("    Self::{} => {:?},", names::ident(value.name()), value.name()));
            }
            p.line("    _ => return None,");
            p.line("})");
        });
    });
    p.gap();
    p.block(format!("impl Default for {name}"), |p| {
        p.block("fn default() -> Self", |p| p.line(format!("Self({})", target.default_value().number())));
    });
    p.gap();
    p.block(format!("impl From<i32> for {name}"), |p| {
        p.line("#[inline]");
        p.block("fn from(number: i32) -> Self", |p| p.line("Self(number)"));
    });
    p.gap();
    p.block(format!("impl From<{name}> for i32"), |p| {
        p.line("#[inline]");
        p.block(format!("fn from(value: {name}) -> Self"), |p| p.line("value.0"));
    });
    p.gap();
    p.block(format!("impl core::fmt::Debug for {name}"), |p| {
        p.block("fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result", |p| {
            p.line("pz::debug_enum(f, self.name(), self.0)");
        });
    });
    p.gap();
}
