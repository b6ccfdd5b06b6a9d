//! Writers and readers of messages.

use prost_reflect::MessageDescriptor;

use crate::accessors::{Getter, Setter};
use crate::context::Context;
use crate::method_names::{READER_METHODS, WRITER_METHODS};
use esatto_rust_text::Printer;
use esatto_rust_text::identifiers;

pub(crate) fn print(cx: Context<'_>, p: &mut Printer, message: &MessageDescriptor) {
    let fields = cx.schema.fields(message);
    let name = cx.schema.names.message(message);
    let deprecated = message.descriptor_proto().options.as_ref().is_some_and(|options| options.deprecated());
    p.gap();
    p.block("pz::message!", |p| {
        p.doc(&format!("Appends the fields of a `{}`.", message.full_name()));
        p.remark(cx.comment(message.path()));
        cx.deprecated(p, deprecated);
        p.line(format!("writer {name}Writer;"));
        p.doc(&format!("The fields of an encoded `{}`.", message.full_name()));
        p.remark(cx.comment(message.path()));
        cx.deprecated(p, deprecated);
        p.line(format!("reader {name}Reader;"));
        p.line(format!("decoder {name}Decoder;"));
        let mut numbers: Vec<u32> = fields.iter().map(|field| field.number).collect();
        numbers.sort_unstable();
        p.fill("fields ", &numbers.iter().map(u32::to_string).collect::<Vec<_>>(), ";");
    });
    p.gap();
    if fields.is_empty() {
        return;
    }
    p.block(format!("impl {name}Writer<'_>"), |p| {
        for field in &fields {
            for setter in Setter::all(cx, field, WRITER_METHODS) {
                p.doc(&setter.doc);
                cx.attributes_for(p, field);
                p.line("#[inline]");
                p.function(&format!("pub fn {}", setter.name), &setter.args, &setter.returns, &setter.body("self.0"));
                p.gap();
            }
        }
    });
    p.gap();
    p.block(format!("impl<'a, I: pz::Lookup> {name}Reader<'a, I>"), |p| {
        for field in &fields {
            let getter = Getter::of(cx, field, READER_METHODS);
            let args = ["&self".to_owned()];
            p.doc(&field.doc);
            cx.attributes_for(p, field);
            p.line("#[inline]");
            p.function(&format!("pub fn {}", getter.name), &args, &getter.returns, &getter.body("self.0"));
            p.gap();
        }
        for oneof in message.oneofs().filter(|oneof| !oneof.is_synthetic()) {
            let mut numbers: Vec<u32> = oneof.fields().map(|field| field.number()).collect();
            numbers.sort_unstable();
            p.doc(&format!("The member of `oneof {}` that counts, which is the one that comes last.", oneof.name()));
            p.line("#[inline]");
            let mut name = identifiers::method(oneof.name(), READER_METHODS);
            while fields.iter().any(|field| identifiers::method(&field.name, READER_METHODS) == name) {
                name.push('_');
            }
            p.block(format!("pub fn {name}(&self) -> Option<pz::Field<'a>>"), |p| {
                p.short_list("self.0.last_of(&", &numbers.iter().map(u32::to_string).collect::<Vec<_>>(), ")");
            });
            p.gap();
        }
    });
    p.gap();
}
