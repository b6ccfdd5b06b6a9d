//! Extensions: methods added to the extended message's writer and reader by a trait.

use std::collections::{BTreeMap, HashSet};

use prost_reflect::{ExtensionDescriptor, MessageDescriptor};

use crate::generator::Generator;
use crate::message::{Getter, READER_METHODS, Setter, WRITER_METHODS, make_unique};
use crate::model::Field;
use crate::print::Printer;
use crate::resolve::extension_module;
use crate::{Error, check, names};

/// Prints the extensions that one scope declares, a pair of traits for each message they extend.
pub(crate) fn print(generator: &Generator<'_>, p: &mut Printer, declared: &[ExtensionDescriptor]) -> Result<(), Error> {
    let mut by_message: BTreeMap<String, Extended> = BTreeMap::new();
    for extension in declared.iter().filter(|extension| !check::is_option(extension)) {
        if extension.is_group() {
            return Err(Error::Unsupported { what: "a group", proto: extension.full_name().to_owned() });
        }
        let comment = generator.comment(&extension.parent_file(), extension.path());
        let message = extension.containing_message();
        let extended = by_message.entry(message.full_name().to_owned()).or_insert_with(|| Extended {
            stem: generator.names.extension(extension),
            // Methods of the message itself would hide those of the trait.
            taken: message.fields().map(|field| field.name().to_owned()).collect(),
            message,
            fields: Vec::new(),
        });
        let mut field = Field::of_extension(extension, comment);
        make_unique(&mut field, &mut extended.taken);
        extended.fields.push(field);
    }
    for Extended { message, stem, fields, .. } in by_message.values() {
        numbers(p, message, stem, fields);
        writer(generator, p, message, stem, fields);
        reader(generator, p, message, stem, fields);
    }
    Ok(())
}

/// A message and the fields that one scope adds to it.
struct Extended {
    message: MessageDescriptor,
    /// What the names of the traits begin with.
    stem: String,
    fields: Vec<Field>,
    taken: HashSet<String>,
}

fn numbers(p: &mut Printer, extended: &MessageDescriptor, stem: &str, fields: &[Field]) {
    p.gap();
    p.doc(&format!("Numbers of the fields added to `{}`.", extended.name()));
    p.line("#[allow(missing_docs)]");
    p.block(format!("pub mod {}", extension_module(stem)), |p| {
        for field in fields {
            let name = names::ident(&field.name.to_ascii_uppercase());
            p.line(format!("pub const {name}: u32 = {};", field.number));
        }
    });
    p.gap();
}

fn writer(generator: &Generator<'_>, p: &mut Printer, extended: &MessageDescriptor, stem: &str, fields: &[Field]) {
    let name = format!("{stem}WriterExt");
    let setters = |field| Setter::all(generator, field, WRITER_METHODS);
    let setters: Vec<(Setter, bool)> =
        fields.iter().flat_map(|field| setters(field).into_iter().map(|setter| (setter, field.deprecated))).collect();
    p.doc(&format!("Appends fields added to `{}`.", extended.full_name()));
    p.block(format!("pub trait {name}"), |p| {
        for (setter, deprecated) in &setters {
            p.doc(&setter.doc);
            generator.deprecated(p, *deprecated);
            p.signature(&format!("fn {}", setter.name), &setter.args, &setter.returns, ";");
            p.gap();
        }
    });
    p.gap();
    p.block(format!("impl {name} for {}Writer<'_>", generator.message_path(extended, None)), |p| {
        for (setter, _) in &setters {
            p.line("#[inline]");
            p.function(&format!("fn {}", setter.name), &setter.args, &setter.returns, &setter.body("self.message()"));
            p.gap();
        }
    });
    p.gap();
}

fn reader(generator: &Generator<'_>, p: &mut Printer, extended: &MessageDescriptor, stem: &str, fields: &[Field]) {
    let name = format!("{stem}ReaderExt");
    let getters: Vec<Getter> = fields.iter().map(|field| Getter::of(generator, field, READER_METHODS)).collect();
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
