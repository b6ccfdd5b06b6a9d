//! Extensions: methods added to the extended message's writer and reader by a trait.

use std::collections::BTreeMap;

use prost_reflect::{ExtensionDescriptor, MessageDescriptor};

use crate::Error;
use crate::generator::Generator;
use crate::message::{Getter, Setter};
use crate::model::Field;
use crate::names;
use crate::print::Printer;

/// Prints the extensions that one scope declares, a pair of traits for each message they extend.
pub(crate) fn print(generator: &Generator<'_>, p: &mut Printer, declared: &[ExtensionDescriptor]) -> Result<(), Error> {
    let mut by_message: BTreeMap<String, (MessageDescriptor, Vec<Field>)> = BTreeMap::new();
    for extension in declared {
        if extension.is_group() {
            return Err(Error::Unsupported { what: "a group", proto: extension.full_name().to_owned() });
        }
        let comment = generator.comment(&extension.parent_file(), extension.path());
        let extended = extension.containing_message();
        let entry = by_message.entry(extended.full_name().to_owned()).or_insert_with(|| (extended, Vec::new()));
        entry.1.push(Field::of_extension(extension, comment));
    }
    for (extended, fields) in by_message.values() {
        numbers(p, extended, fields);
        writer(generator, p, extended, fields);
        reader(generator, p, extended, fields);
    }
    Ok(())
}

fn numbers(p: &mut Printer, extended: &MessageDescriptor, fields: &[Field]) {
    p.gap();
    p.doc(&format!("Numbers of the fields added to `{}`.", extended.name()));
    p.line("#[allow(missing_docs)]");
    p.block(format!("pub mod {}_extension", names::module(extended.name()).trim_start_matches("r#")), |p| {
        for field in fields {
            p.line(format!("pub const {}: u32 = {};", field.name.to_ascii_uppercase(), field.number));
        }
    });
    p.gap();
}

fn writer(generator: &Generator<'_>, p: &mut Printer, extended: &MessageDescriptor, fields: &[Field]) {
    let name = format!("{}WriterExt", extended.name());
    let setters: Vec<Setter> = fields.iter().map(|field| Setter::of(generator, field, &[])).collect();
    p.doc(&format!("Appends fields added to `{}`.", extended.full_name()));
    p.block(format!("pub trait {name}"), |p| {
        for (field, setter) in fields.iter().zip(&setters) {
            p.doc(&field.doc);
            p.signature(&format!("fn {}", setter.name), &setter.args, &setter.returns, ";");
            p.gap();
        }
    });
    p.gap();
    p.block(format!("impl {name} for {}Writer<'_>", generator.message_path(extended, None)), |p| {
        for setter in &setters {
            p.line("#[inline]");
            p.function(&format!("fn {}", setter.name), &setter.args, &setter.returns, &setter.body("self.message()"));
            p.gap();
        }
    });
    p.gap();
}

fn reader(generator: &Generator<'_>, p: &mut Printer, extended: &MessageDescriptor, fields: &[Field]) {
    let name = format!("{}ReaderExt", extended.name());
    let getters: Vec<Getter> = fields.iter().map(|field| Getter::of(generator, field, &[])).collect();
    let args = ["&self".to_owned()];
    p.doc(&format!("Finds fields added to `{}`.", extended.full_name()));
    p.block(format!("pub trait {name}<'a>"), |p| {
        for (field, getter) in fields.iter().zip(&getters) {
            p.doc(&field.doc);
            p.signature(&format!("fn {}", getter.name), &args, &getter.returns, ";");
            p.gap();
        }
    });
    p.gap();
    let extended = generator.message_path(extended, None);
    p.block(format!("impl<'a, I: pz::Lookup> {name}<'a> for {extended}Reader<'a, I>"), |p| {
        for getter in &getters {
            p.line("#[inline]");
            p.function(
                &format!("fn {}", getter.name),
                &args,
                &getter.returns,
                &getter.body("pz::View::new(self.as_bytes())"),
            );
            p.gap();
        }
    });
    p.gap();
}
