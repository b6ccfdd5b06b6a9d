//! Enumerations: open, as a newtype around the number.

use prost_reflect::EnumDescriptor;

use crate::generator::Generator;
use crate::names;
use crate::print::Printer;

pub(crate) fn print(generator: &Generator<'_>, p: &mut Printer, target: &EnumDescriptor) {
    let file = target.parent_file();
    p.gap();
    p.block("pz::open_enum!", |p| {
        p.doc(&format!("Enumeration `{}`; numbers without a name are values too.", target.full_name()));
        p.remark(generator.comment(&file, target.path()));
        let (name, default) = (names::ident(target.name()), target.default_value().number());
        p.block(format!("enum {name}, default {default}"), |p| {
            for value in target.values() {
                p.doc(generator.comment(&file, value.path()));
                p.line(format!("{} = {}, {:?};", names::ident(value.name()), value.number(), value.name()));
            }
        });
    });
    p.gap();
}
