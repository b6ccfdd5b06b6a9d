//! The files to generate code for, with the names, comments and features of their declarations.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use prost_reflect::{DescriptorPool, FileDescriptor, Kind, MessageDescriptor, OneofDescriptor};

use crate::comments::Comments;
use crate::config::{Config, OneofStyle};
use crate::descriptors::{self, references};
use crate::error::Error;
use crate::field::Field;
use crate::names::Names;
use crate::{check, glob, method_names, options_proto};
use esatto_rust_text::identifiers;

/// A set of files, prepared for the printers.
#[derive(Debug)]
pub(crate) struct Schema<'c> {
    pub(crate) config: &'c Config,
    /// The files to generate code for, sorted by name.
    files: Vec<FileDescriptor>,
    comments: HashMap<String, Comments>,
    pub(crate) names: Names,
    /// Full names of the messages that also get a value type.
    owned: BTreeSet<String>,
    /// Sizes of value types that were computed already.
    pub(crate) sizes: RefCell<HashMap<String, usize>>,
}

/// The file that every schema with its own options imports. Its messages describe schemas, and are
/// rarely data.
const DESCRIPTOR_FILE: &str = "google/protobuf/descriptor.proto";

impl<'c> Schema<'c> {
    /// Takes the files named `wanted` out of a pool, and those they import if the configuration
    /// says so.
    pub(crate) fn new(config: &'c Config, pool: &DescriptorPool, wanted: &[String]) -> Result<Self, Error> {
        let mut all: Vec<FileDescriptor> = pool.files().collect();
        all.sort_by(|a, b| a.name().cmp(b.name()));
        let chosen = chosen(config, &all, wanted);
        let files: Vec<FileDescriptor> = all.iter().filter(|file| chosen.contains(file.name())).cloned().collect();
        check::files(config, &files)?;
        let comments = files.iter().map(|file| (file.name().to_owned(), Comments::of(file))).collect();
        let is_known = |file: &FileDescriptor| chosen.contains(file.name()) || config.external_of(file).is_some();
        let known: Vec<FileDescriptor> = all.into_iter().filter(is_known).collect();
        let names = Names::new(&known, config, |file| {
            if chosen.contains(file.name()) { 0 } else { 1 + config.external_of(file).unwrap_or_default() }
        });
        let owned = owned_messages(config, &files);
        Ok(Self { config, files, comments, names, owned, sizes: RefCell::default() })
    }

    pub(crate) fn files(&self) -> &[FileDescriptor] {
        &self.files
    }

    /// Returns true if the message also gets a value type.
    pub(crate) fn is_owned(&self, message: &MessageDescriptor) -> bool {
        self.owned.contains(message.full_name())
    }

    /// Returns the fields of a message, renamed so that no two of its methods, or fields of its
    /// value, have the same name.
    pub(crate) fn fields(&self, message: &MessageDescriptor) -> Vec<Field> {
        let mut taken = HashSet::new();
        let field = |field: prost_reflect::FieldDescriptor| {
            let mut field = Field::of(&field, self.comment(&message.parent_file(), field.path()));
            method_names::make_unique(&mut field, &mut taken);
            field
        };
        message.fields().map(field).collect()
    }

    /// Returns the oneofs of a message that become enumerations.
    pub(crate) fn enumerated_oneofs(&self, message: &MessageDescriptor) -> Vec<OneofDescriptor> {
        let is_enumerated = self.config.oneofs == OneofStyle::Enum && self.is_owned(message);
        message.oneofs().filter(|oneof| is_enumerated && !oneof.is_synthetic()).collect()
    }

    /// Returns the comment on an element of a file.
    pub(crate) fn comment(&self, file: &FileDescriptor, path: &[i32]) -> &str {
        self.comments.get(file.name()).map(|comments| comments.at(path)).unwrap_or_default()
    }

    /// Returns the module of a message and of those around it, outermost first.
    pub(crate) fn modules(&self, message: Option<MessageDescriptor>) -> Vec<String> {
        let mut modules: Vec<String> = core::iter::successors(message, MessageDescriptor::parent_message)
            .map(|message| identifiers::ident(self.names.module(&message)))
            .collect();
        modules.reverse();
        modules
    }

    /// Returns the file of a message and the module of the message inside that of the file. Returns
    /// `None` if the message has no module.
    pub(crate) fn message_module_path(&self, full_name: &str) -> Option<(FileDescriptor, String)> {
        let message = self.files.first()?.parent_pool().get_message_by_name(full_name)?;
        let has_module = message.fields().len() > 0
            || message.child_messages().len() > 0
            || message.child_enums().len() > 0
            || message.child_extensions().len() > 0;
        (has_module && self.config.messages).then(|| (message.parent_file(), self.modules(Some(message)).join("::")))
    }

    /// Returns the cargo feature that a file needs.
    pub(crate) fn feature(&self, file: &FileDescriptor) -> Option<&'c str> {
        if self.config.ungated.iter().any(|pattern| glob::matches(pattern, file.name())) {
            return None;
        }
        let gate = self.config.features.iter().find(|(_, pattern)| glob::matches(pattern, file.name()));
        gate.map(|(feature, _)| feature.as_str())
    }
}

/// Returns the names of the files to generate: `wanted`, and the files that these import.
fn chosen(config: &Config, all: &[FileDescriptor], wanted: &[String]) -> HashSet<String> {
    let mut chosen: HashSet<String> = wanted.iter().cloned().collect();
    if !config.imports {
        return chosen;
    }
    let mut todo: Vec<FileDescriptor> = all.iter().filter(|file| chosen.contains(file.name())).cloned().collect();
    while let Some(file) = todo.pop() {
        let uses_descriptors = || references(&file).iter().any(|reference| reference.file.name() == DESCRIPTOR_FILE);
        for import in file.dependencies() {
            let skipped = import.name() == DESCRIPTOR_FILE && !uses_descriptors();
            // It declares nothing but options of the schema language.
            let skipped = skipped || import.name() == options_proto::NAME;
            if !skipped && config.external_of(&import).is_none() && chosen.insert(import.name().to_owned()) {
                todo.push(import);
            }
        }
    }
    chosen
}

/// Returns the full names of the messages that the configuration selects as owned, and of all that
/// they refer to.
fn owned_messages(config: &Config, files: &[FileDescriptor]) -> BTreeSet<String> {
    let is_selected = |message: &MessageDescriptor| config.owned.iter().any(|pattern| glob::selects(pattern, message));
    let mut todo: Vec<MessageDescriptor> = files.iter().flat_map(descriptors::messages).filter(is_selected).collect();
    if config.services.has_bindings() {
        let methods =
            files.iter().flat_map(FileDescriptor::services).flat_map(|service| service.methods().collect::<Vec<_>>());
        todo.extend(methods.flat_map(|method| [method.input(), method.output()]));
    }
    let mut closed = BTreeSet::new();
    while let Some(message) = todo.pop() {
        if closed.insert(message.full_name().to_owned()) {
            todo.extend(message.fields().filter_map(|field| message_of(&field.kind())));
        }
    }
    closed
}

/// Returns the message that a field refers to. For a map it is that of its values.
fn message_of(kind: &Kind) -> Option<MessageDescriptor> {
    match kind {
        Kind::Message(entry) if entry.is_map_entry() => message_of(&entry.map_entry_value_field().kind()),
        Kind::Message(message) => Some(message.clone()),
        _ => None,
    }
}
