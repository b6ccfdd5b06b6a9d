//! Rust names of everything that a set of files declares. No two items of one module get the same
//! name.
//!
//! Names are those of the schema. If two would be equal, or if one is a word of Rust, the later one
//! gets an underscore. For a message `Log` and a message `LogReader`, the value type of the second
//! is `LogReader_`. Files are taken in the order of their names, and their items in the order of
//! declaration. So the result does not depend on the order of the arguments.

use std::collections::{BTreeMap, HashMap, HashSet};

use prost_reflect::{ExtensionDescriptor, FileDescriptor, MessageDescriptor};

use crate::config::{Config, Layout};
use esatto_rust_text::identifiers;

/// The generated file that declares the modules of the other files.
pub(crate) const MODULE_FILE: &str = "mod.rs";

/// The module with the numbers of a message's fields.
pub(crate) const FIELD_MODULE: &str = "field";

/// Names of the prelude and the language that generated code uses. No type may shadow them.
pub(crate) const RESERVED_TYPES: &[&str] = &[
    "AsRef",
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Err",
    "Eq",
    "From",
    "Hash",
    "Into",
    "IntoIterator",
    "Iterator",
    "None",
    "Ok",
    "Option",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Result",
    "Some",
    "bool",
    "f32",
    "f64",
    "i32",
    "i64",
    "pz",
    "str",
    "u32",
    "u64",
    "u8",
    "usize",
];

/// The alias of the runtime, which no module may shadow.
const RESERVED_MODULES: &[&str] = &["pz"];

/// The names of everything that a set of files declares.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// By full proto name: the stem that `Writer` and `Reader` are appended to, and the module, not
    /// yet an identifier.
    messages: HashMap<String, (String, String)>,
    /// Enumerations, services and oneofs by full proto name, not yet identifiers.
    others: HashMap<String, String>,
    /// By file or enclosing message, and extended message: the stem that `WriterExt` and
    /// `ReaderExt` are appended to.
    extensions: HashMap<(String, String), String>,
    /// Modules of files by the files' names.
    files: BTreeMap<String, String>,
    /// Full proto names of messages by the path of their module.
    modules: BTreeMap<Vec<String>, String>,
}

impl Names {
    /// Chooses names for the items of `files`. `root` is 0 for files to generate, and another
    /// number for each module elsewhere that has the items of a file.
    pub(crate) fn new(files: &[FileDescriptor], config: &Config, root: impl Fn(&FileDescriptor) -> usize) -> Self {
        let layout = config.layout;
        let mut resolver = Resolver::default();
        let scope = |file: &FileDescriptor| Scope { root: root(file), path: package_path(file, layout) };
        for mut package in files.iter().map(scope) {
            while resolver.packages.insert(package.clone()) {
                let Some(name) = package.path.pop() else { break };
                resolver.taken.insert((package.clone(), name));
            }
        }
        for file in files {
            let scope = scope(file);
            for message in file.messages() {
                resolver.message(&scope, &message);
            }
            for target in file.enums() {
                resolver.other(&scope, target.full_name(), target.name(), RESERVED_TYPES);
            }
            for service in file.services() {
                resolver.other(&scope, service.full_name(), &identifiers::snake_case(service.name()), RESERVED_MODULES);
            }
        }
        for file in files {
            let scope = scope(file);
            resolver.extensions(&scope, file.name(), file.extensions());
            for message in file.messages() {
                resolver.extensions_inside(&scope, &message);
            }
        }
        for file in files {
            let top = Scope { root: root(file), path: Vec::new() };
            let module = file_module(&output_path(file, config));
            let suffix = resolver.claim(&top, |suffix| vec![format!("{module}{suffix}")]);
            resolver.names.files.insert(file.name().to_owned(), module + &suffix);
        }
        resolver.names
    }

    /// Returns the stem that `Writer` and `Reader` are appended to for a message. It is also the
    /// name of its value type.
    pub(crate) fn message(&self, message: &MessageDescriptor) -> &str {
        self.messages.get(message.full_name()).map_or("", |(stem, _)| stem)
    }

    /// Returns the module of a message, not yet an identifier.
    pub(crate) fn module(&self, message: &MessageDescriptor) -> &str {
        self.messages.get(message.full_name()).map_or("", |(_, module)| module)
    }

    /// Returns the name of an enumeration, service or oneof, not yet an identifier.
    pub(crate) fn other(&self, full_name: &str) -> &str {
        self.others.get(full_name).map_or("", String::as_str)
    }

    /// Returns the stem that `WriterExt` and `ReaderExt` are appended to, for the scope and the
    /// message of an extension.
    pub(crate) fn extension(&self, extension: &ExtensionDescriptor) -> String {
        let extended = extension.containing_message();
        let key = (declared_in(extension), extended.full_name().to_owned());
        self.extensions.get(&key).cloned().unwrap_or_default()
    }

    /// Returns the module of a file.
    pub(crate) fn file(&self, name: &str) -> &str {
        self.files.get(name).map_or("", String::as_str)
    }

    /// Returns the message whose module is at `path`, if there is one.
    pub(crate) fn message_with_module(&self, path: &[String]) -> Option<&str> {
        self.modules.get(path).map(String::as_str)
    }
}

/// Returns the modules of a file's package, not yet identifiers.
pub(crate) fn package_path(file: &FileDescriptor, layout: Layout) -> Vec<String> {
    match layout {
        Layout::Flat => Vec::new(),
        Layout::Packages => {
            file.package_name().split('.').filter(|part| !part.is_empty()).map(identifiers::snake_case).collect()
        }
    }
}

/// Returns the path of the generated code of a file.
pub(crate) fn output_path(file: &FileDescriptor, config: &Config) -> String {
    let stripped = file.name().strip_prefix(config.strip.as_str()).unwrap_or_else(|| file.name());
    let path = format!("{}.rs", stripped.strip_suffix(".proto").unwrap_or(stripped));
    if path == MODULE_FILE { "mod_.rs".to_owned() } else { path }
}

/// A Rust module that will hold generated items.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Scope {
    root: usize,
    path: Vec<String>,
}

impl Scope {
    fn inside(&self, module: &str) -> Self {
        let mut inner = self.clone();
        inner.path.push(module.to_owned());
        inner
    }
}

#[derive(Default)]
struct Resolver {
    names: Names,
    taken: HashSet<(Scope, String)>,
    /// The modules of packages.
    packages: HashSet<Scope>,
    /// The modules of messages.
    modules: HashSet<Scope>,
}

impl Resolver {
    /// Returns the shortest row of underscores with which all of `names` are free in `scope`, and
    /// takes these names.
    fn claim(&mut self, scope: &Scope, names: impl Fn(&str) -> Vec<String>) -> String {
        let mut suffix = String::new();
        loop {
            let wanted: Vec<_> = names(&suffix).into_iter().map(|name| (scope.clone(), name)).collect();
            if wanted.iter().all(|name| !self.taken.contains(name)) {
                self.taken.extend(wanted);
                return suffix;
            }
            suffix.push('_');
        }
    }

    fn message(&mut self, scope: &Scope, message: &MessageDescriptor) {
        let name = avoid(message.name(), |name| RESERVED_TYPES.contains(&name) || identifiers::is_keyword(name));
        let suffix = self.claim(scope, |suffix| {
            ["", "Writer", "Reader", "Decoder"].map(|role| format!("{name}{suffix}{role}")).to_vec()
        });
        let stem = name + &suffix;
        let module = self.module(scope, &stem);
        let inside = scope.inside(&module);
        self.names.messages.insert(message.full_name().to_owned(), (stem, module));
        if scope.root == 0 {
            self.names.modules.insert(inside.path.clone(), message.full_name().to_owned());
        }
        // The module of a message `Field` also holds the numbers. A message `field` gets another
        // name because of them.
        let is_field = |name: &str| name != FIELD_MODULE && identifiers::snake_case(name) == FIELD_MODULE;
        let field_is_a_message = message.child_messages().any(|child| is_field(child.name()));
        if message.fields().len() > 0 && !field_is_a_message {
            self.taken.insert((inside.clone(), FIELD_MODULE.to_owned()));
        }
        for child in message.child_messages() {
            self.message(&inside, &child);
        }
        for target in message.child_enums() {
            self.other(&inside, target.full_name(), target.name(), RESERVED_TYPES);
        }
        for oneof in message.oneofs().filter(|oneof| !oneof.is_synthetic()) {
            self.other(&inside, oneof.full_name(), &identifiers::camel_case(oneof.name()), RESERVED_TYPES);
        }
    }

    /// Chooses the module of a message. It may also be that of a package: module `b` belongs to
    /// `message B` in package `a` and to package `a.b`.
    fn module(&mut self, scope: &Scope, stem: &str) -> String {
        let module = identifiers::snake_case(stem);
        let shared = scope.inside(&module);
        if self.packages.contains(&shared) && self.modules.insert(shared) {
            return module;
        }
        let module = avoid(&module, |module| RESERVED_MODULES.contains(&module));
        let suffix = self.claim(scope, |suffix| vec![format!("{module}{suffix}")]);
        let module = module + &suffix;
        self.modules.insert(scope.inside(&module));
        module
    }

    fn other(&mut self, scope: &Scope, full_name: &str, name: &str, reserved: &[&str]) {
        let name = avoid(name, |name| name.is_empty() || reserved.contains(&name));
        let suffix = self.claim(scope, |suffix| vec![format!("{name}{suffix}")]);
        self.names.others.insert(full_name.to_owned(), name + &suffix);
    }

    fn extensions_inside(&mut self, scope: &Scope, message: &MessageDescriptor) {
        let inside = scope.inside(self.names.module(message));
        self.extensions(&inside, message.full_name(), message.child_extensions());
        for child in message.child_messages() {
            self.extensions_inside(&inside, &child);
        }
    }

    fn extensions(&mut self, scope: &Scope, declared_in: &str, extensions: impl Iterator<Item = ExtensionDescriptor>) {
        for extension in extensions {
            let extended = extension.containing_message();
            let key = (declared_in.to_owned(), extended.full_name().to_owned());
            if self.names.extensions.contains_key(&key) {
                continue;
            }
            let name = extended.name();
            let suffix = self.claim(scope, |suffix| {
                let stem = format!("{name}{suffix}");
                vec![format!("{stem}WriterExt"), format!("{stem}ReaderExt"), extension_module(&stem)]
            });
            self.names.extensions.insert(key, format!("{name}{suffix}"));
        }
    }
}

/// Returns the module with the numbers of extensions, for a stem from [`Names::extension`].
pub(crate) fn extension_module(stem: &str) -> String {
    format!("{}_extension", identifiers::snake_case(stem))
}

/// Returns the scope that declares an extension, as a key of [`Names`].
fn declared_in(extension: &ExtensionDescriptor) -> String {
    extension.parent_message().map_or_else(|| extension.parent_file().name().to_owned(), |m| m.full_name().to_owned())
}

/// Appends underscores to `name` until it is not `bad`.
fn avoid(name: &str, bad: impl Fn(&str) -> bool) -> String {
    let mut name = name.to_owned();
    while bad(&name) {
        name.push('_');
    }
    name
}

/// Returns the module of a generated file: its path without the ending, with `_` for `/`. It ends
/// in `_proto`, so that it differs from the modules of messages.
fn file_module(path: &str) -> String {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let mut name: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name + "_proto"
}

#[cfg(test)]
mod tests {
    use super::file_module;

    #[test]
    fn modules_of_files_differ_from_those_of_messages() {
        assert_eq!(file_module("trace/v8.rs"), "trace_v8_proto");
    }
}
