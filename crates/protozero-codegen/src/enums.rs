//! Enumerations: open, as a newtype around the number.

use std::collections::HashSet;

use prost_reflect::EnumDescriptor;

use crate::generator::Generator;
use crate::names;
use crate::print::Printer;

/// What every enumeration has besides its values.
const TAKEN: &[&str] = &["name", "from", "into", "default"];

pub(crate) fn print(generator: &Generator<'_>, p: &mut Printer, target: &EnumDescriptor) {
    let file = target.parent_file();
    let mut values: Vec<_> = target.values().collect();
    // In the order of their declaration: of several names for a number the first is the one to print.
    values.sort_by(|a, b| a.path().cmp(b.path()));
    p.gap();
    p.block("pz::open_enum!", |p| {
        p.doc(&format!("Enumeration `{}`; numbers without a name are values too.", target.full_name()));
        p.remark(generator.comment(&file, target.path()));
        let options = target.enum_descriptor_proto().options.as_ref();
        generator.deprecated(p, options.is_some_and(|options| options.deprecated()));
        let (name, default) = (generator.names.other(target.full_name()), target.default_value().number());
        let mut taken: HashSet<String> = TAKEN.iter().map(|&name| name.to_owned()).collect();
        p.block(format!("enum {}, default {default}", names::ident(name)), |p| {
            for value in &values {
                let mut name = value.name().to_owned();
                while !taken.insert(names::ident(&name)) {
                    name.push('_');
                }
                p.doc(generator.comment(&file, value.path()));
                let options = value.enum_value_descriptor_proto().options.as_ref();
                generator.deprecated(p, options.is_some_and(|options| options.deprecated()));
                p.line(format!("{} = {}, {:?};", names::ident(&name), value.number(), value.name()));
            }
        });
    });
    p.gap();
}
