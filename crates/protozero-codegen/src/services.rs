//! Services: a module with the name and an enumeration of the methods.

use prost_reflect::ServiceDescriptor;

use crate::context::Context;
use esatto_rust_text::Printer;
use esatto_rust_text::identifiers;

pub(crate) fn print(cx: Context<'_>, p: &mut Printer, service: &ServiceDescriptor) {
    let methods: Vec<_> = service.methods().collect();
    p.gap();
    p.doc(&format!("Service `{}`.", service.full_name()));
    p.remark(cx.comment(service.path()));
    p.block(format!("pub mod {}", identifiers::ident(cx.schema.names.other(service.full_name()))), |p| {
        p.doc("The name of the service, without its package.");
        p.line(format!("pub const SERVICE: &str = {:?};", service.name()));
        p.gap();
        p.doc("The methods, numbered from 1 in the order of their declaration.");
        p.line("#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]");
        p.line("#[repr(u32)]");
        p.block("pub enum Method", |p| {
            for (index, method) in methods.iter().enumerate() {
                let stream = if method.is_server_streaming() { "stream " } else { "" };
                p.doc(&format!("`{}` → `{stream}{}`", method.input().name(), method.output().name()));
                p.line(format!("{} = {},", identifiers::ident(method.name()), index + 1));
            }
        });
        p.gap();
        p.block("impl Method", |p| {
            p.doc("All methods, in the order of their numbers.");
            let all: Vec<_> = methods.iter().map(|m| format!("Self::{}", identifiers::ident(m.name()))).collect();
            p.list("pub const ALL: &'static [Self] = &", &all, ";");
            p.gap();
            p.doc("The name of the method.");
            p.line("#[must_use]");
            p.block("pub const fn name(self) -> &'static str", |p| {
                p.block("match self", |p| {
                    for method in &methods {
                        p.arm(&format!("Self::{}", identifiers::ident(method.name())), &format!("{:?}", method.name()));
                    }
                });
            });
            p.gap();
            p.doc("The number of the method.");
            p.line("#[must_use]");
            p.block("pub const fn id(self) -> u32", |p| p.line("self as u32"));
            p.gap();
            p.doc("The method of that name.");
            p.line("#[must_use]");
            p.block("pub fn from_name(name: &[u8]) -> Option<Self>", |p| {
                p.line("Self::ALL.iter().copied().find(|method| method.name().as_bytes() == name)");
            });
            p.gap();
            p.doc("The method of that number.");
            p.line("#[must_use]");
            p.block("pub fn from_id(id: u32) -> Option<Self>", |p| {
                p.line("Self::ALL.iter().copied().find(|method| method.id() == id)");
            });
            p.gap();
            p.doc("True if a call can have more than one reply.");
            p.line("#[must_use]");
            p.block("pub const fn is_streaming(self) -> bool", |p| {
                let streams: Vec<_> = methods.iter().filter(|method| method.is_server_streaming()).collect();
                let names: Vec<_> = streams.iter().map(|m| format!("Self::{}", identifiers::ident(m.name()))).collect();
                if names.is_empty() {
                    p.line("false");
                } else {
                    p.line(format!("matches!(self, {})", names.join(" | ")));
                }
            });
        });
    });
    p.gap();
}
