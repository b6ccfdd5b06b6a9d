//! The place in the generated code that a printer writes to.

use prost_reflect::{EnumDescriptor, FileDescriptor, MessageDescriptor};

use crate::field::Field;
use crate::names::package_path;
use crate::schema::Schema;
use esatto_rust_text::Printer;
use esatto_rust_text::identifiers;

/// The file that is printed, the depth of the module in it, and the schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'s> {
    pub(crate) schema: &'s Schema<'s>,
    file: &'s FileDescriptor,
    /// Number of modules between this one and the root.
    depth: usize,
}

impl<'s> Context<'s> {
    /// Returns the module of a file.
    pub(crate) fn of_file(schema: &'s Schema<'s>, file: &'s FileDescriptor) -> Self {
        Self { schema, file, depth: 1 }
    }

    /// Returns a module inside this one.
    pub(crate) fn inside(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    /// Returns the comment on an element of the file.
    pub(crate) fn comment(self, path: &[i32]) -> &'s str {
        self.schema.comment(self.file, path)
    }

    /// Returns the Rust path of a message's types, to which `Writer` or `Reader` may be appended.
    /// It starts at the module of `owner`'s own types, or at this module without an owner.
    pub(crate) fn message_path(self, message: &MessageDescriptor, owner: Option<&MessageDescriptor>) -> String {
        self.path(&message.parent_file(), message.parent_message(), self.schema.names.message(message), owner)
    }

    /// As [`message_path`](Self::message_path), for an enumeration.
    pub(crate) fn enum_path(self, target: &EnumDescriptor, owner: Option<&MessageDescriptor>) -> String {
        let name = identifiers::ident(self.schema.names.other(target.full_name()));
        self.path(&target.parent_file(), target.parent_message(), &name, owner)
    }

    fn path(
        self,
        file: &FileDescriptor,
        parent: Option<MessageDescriptor>,
        name: &str,
        owner: Option<&MessageDescriptor>,
    ) -> String {
        let Schema { config, .. } = *self.schema;
        let modules = self.schema.modules(parent);
        let owner = owner.filter(|owner| owner.parent_file() == *file);
        let here = owner.map(|owner| self.schema.modules(owner.parent_message()));
        if let Some(below) = here.and_then(|here| modules.strip_prefix(here.as_slice())) {
            return [below, &[name.to_owned()]].concat().join("::");
        }
        let is_generated = config.messages && self.schema.files().iter().any(|own| own.name() == file.name());
        let elsewhere = config.external_of(file).filter(|_| !is_generated);
        let package = || package_path(file, config.layout).into_iter().map(|part| identifiers::ident(&part));
        let up = |levels| vec!["super".to_owned(); levels];
        let mut path = match elsewhere {
            Some(index) => vec![config.external[index].1.clone()],
            None if !config.root.is_empty() => [config.root.clone()].into_iter().chain(package()).collect(),
            None if self.file.name() == file.name() => up(self.depth - 1),
            None => up(self.depth).into_iter().chain(package()).collect(),
        };
        path.extend(modules);
        path.push(name.to_owned());
        path.join("::")
    }

    /// Prints the attributes of an item that needs the type of `field`.
    pub(crate) fn attributes_for(self, p: &mut Printer, field: &Field) {
        self.cfg_for(p, field);
        self.deprecated(p, field.deprecated);
    }

    /// Prints the `cfg` of an item that needs the type of `field`.
    pub(crate) fn cfg_for(self, p: &mut Printer, field: &Field) {
        let needed = field.target_file().and_then(|target| self.schema.feature(&target));
        if needed != self.schema.feature(self.file) {
            p.cfg(needed);
        }
    }

    /// Prints the attribute of an item that is deprecated.
    pub(crate) fn deprecated(self, p: &mut Printer, deprecated: bool) {
        if deprecated && self.schema.config.deprecated {
            p.line("#[deprecated]");
        }
    }

    /// Prints the import of the runtime.
    pub(crate) fn import_runtime(self, p: &mut Printer) {
        p.line(format!("use {} as pz;", self.schema.config.runtime));
        p.gap();
    }
}
