//! Enumerations: open, as a newtype around the number.

use prost_reflect::EnumDescriptor;

use crate::generator::Generator;
use crate::names;
use crate::print::Printer;

pub(crate) fn print(generator: &Generator<'_>, p: &mut Printer, target: &EnumDescriptor) {
    let file = target.parent_file();
    let mut values: Vec<_> = target.values().collect();
    // In the order of their declaration: of several names for a number the first is the one to print.
    values.sort_by(|a, b| a.path().cmp(b.path()));
    p.gap();
    p.block("pz::open_enum!", |p| {
        p.doc(&format!("Enumeration `{}`; numbers without a name are values too.", target.full_name()));
        p.remark(generator.comment(&file, target.path()));
        let (name, default) = (names::ident(target.name()), target.default_value().number());
        p.block(format!("enum {name}, default {default}"), |p| {
            for value in &values {
                p.doc(generator.comment(&file, value.path()));
                p.line(format!("{} = {}, {:?};", names::ident(value.name()), value.number(), value.name()));
            }
        });
    });
    p.gap();
}
