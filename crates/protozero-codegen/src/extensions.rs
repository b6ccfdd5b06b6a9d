//! Extensions: a trait adds methods to the writer and the reader of the extended message.

use std::collections::{BTreeMap, HashSet};

use prost_reflect::{ExtensionDescriptor, MessageDescriptor};

use crate::accessors::{Getter, Setter};
use crate::context::Context;
use crate::descriptors::is_option;
use crate::error::Error;
use crate::field::Field;
use crate::method_names::{READER_METHODS, WRITER_METHODS, make_unique};
use crate::names::extension_module;
use esatto_rust_text::Printer;
use esatto_rust_text::identifiers;

/// Prints the extensions that one scope declares: a pair of traits for each extended message.
pub(crate) fn print(cx: Context<'_>, p: &mut Printer, declared: &[ExtensionDescriptor]) -> Result<(), Error> {
    let mut by_message: BTreeMap<String, Extended> = BTreeMap::new();
    for extension in declared.iter().filter(|extension| !is_option(extension)) {
        if extension.is_group() {
            return Err(Error::Unsupported { what: "a group", proto: extension.full_name().to_owned() });
        }
        let comment = cx.comment(extension.path());
        let message = extension.containing_message();
        let extended = by_message.entry(message.full_name().to_owned()).or_insert_with(|| Extended {
            stem: cx.schema.names.extension(extension),
            // Taken, because methods of the message itself would hide those of the trait.
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
        writer(cx, p, message, stem, fields);
        reader(cx, p, message, stem, fields);
    }
    Ok(())
}

/// A message and the fields that one scope adds to it.
struct Extended {
    message: MessageDescriptor,
    /// The names of the traits begin with it.
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
            let name = identifiers::ident(&field.name.to_ascii_uppercase());
            p.line(format!("pub const {name}: u32 = {};", field.number));
        }
    });
    p.gap();
}

fn writer(cx: Context<'_>, p: &mut Printer, extended: &MessageDescriptor, stem: &str, fields: &[Field]) {
    let name = format!("{stem}WriterExt");
    let setters = |field| Setter::all(cx, field, WRITER_METHODS);
    let setters: Vec<(Setter, bool)> =
        fields.iter().flat_map(|field| setters(field).into_iter().map(|setter| (setter, field.deprecated))).collect();
    p.doc(&format!("Appends fields added to `{}`.", extended.full_name()));
    p.block(format!("pub trait {name}"), |p| {
        for (setter, deprecated) in &setters {
            p.doc(&setter.doc);
            cx.deprecated(p, *deprecated);
            p.signature(&format!("fn {}", setter.name), &setter.args, &setter.returns, ";");
            p.gap();
        }
    });
    p.gap();
    p.block(format!("impl {name} for {}Writer<'_>", cx.message_path(extended, None)), |p| {
        for (setter, _) in &setters {
            p.line("#[inline]");
            p.function(&format!("fn {}", setter.name), &setter.args, &setter.returns, &setter.body("self.message()"));
            p.gap();
        }
    });
    p.gap();
}

fn reader(cx: Context<'_>, p: &mut Printer, extended: &MessageDescriptor, stem: &str, fields: &[Field]) {
    let name = format!("{stem}ReaderExt");
    let getters: Vec<Getter> = fields.iter().map(|field| Getter::of(cx, field, READER_METHODS)).collect();
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
    let extended = cx.message_path(extended, None);
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
