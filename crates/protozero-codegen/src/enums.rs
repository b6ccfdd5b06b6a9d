//! Enumerations: newtypes around the number, so that unknown numbers are values.

use std::collections::HashSet;

use prost_reflect::EnumDescriptor;

use crate::context::Context;
use crate::identifiers;
use crate::printer::Printer;

/// Names that every enumeration has in addition to its values.
const TAKEN: &[&str] = &["name", "from", "into", "default"];

pub(crate) fn print(cx: Context<'_>, p: &mut Printer, target: &EnumDescriptor) {
    let mut values: Vec<_> = target.values().collect();
    // In the order of declaration: `Debug` prints the first of several names for a number.
    values.sort_by(|a, b| a.path().cmp(b.path()));
    p.gap();
    p.block("pz::open_enum!", |p| {
        p.doc(&format!("Enumeration `{}`; numbers without a name are values too.", target.full_name()));
        p.remark(cx.comment(target.path()));
        let options = target.enum_descriptor_proto().options.as_ref();
        cx.deprecated(p, options.is_some_and(|options| options.deprecated()));
        let (name, default) = (cx.schema.names.other(target.full_name()), target.default_value().number());
        let mut taken: HashSet<String> = TAKEN.iter().map(|&name| name.to_owned()).collect();
        p.block(format!("enum {}, default {default}", identifiers::ident(name)), |p| {
            for value in &values {
                let mut name = value.name().to_owned();
                while !taken.insert(identifiers::ident(&name)) {
                    name.push('_');
                }
                p.doc(cx.comment(value.path()));
                let options = value.enum_value_descriptor_proto().options.as_ref();
                cx.deprecated(p, options.is_some_and(|options| options.deprecated()));
                p.line(format!("{} = {}, {:?};", identifiers::ident(&name), value.number(), value.name()));
            }
        });
    });
    p.gap();
}
