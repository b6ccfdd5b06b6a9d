//! What cannot be generated, found before anything is.

use prost_reflect::{EnumDescriptor, ExtensionDescriptor, FileDescriptor, Kind, MessageDescriptor};

use crate::generator::external;
use crate::{Config, Error, glob, names};

/// Checks the files that are to be generated.
pub(crate) fn files(config: &Config, files: &[FileDescriptor]) -> Result<(), Error> {
    for pattern in config.features.iter().map(|(_, pattern)| pattern).chain(&config.ungated) {
        if !files.iter().any(|file| glob::matches(pattern, file.name())) {
            return Err(Error::UnusedPattern(pattern.clone()));
        }
    }
    for file in files {
        if !file.file_descriptor_proto().weak_dependency.is_empty() {
            return Err(Error::Unsupported { what: "a weak import", proto: file.name().to_owned() });
        }
        if let Some(name) = all_names(file).into_iter().find(|name| !names::is_identifier(name)) {
            return Err(Error::Name(name));
        }
        for Reference { user, target, file } in references(file) {
            if !files.contains(&file) && external(config, &file).is_none() {
                return Err(Error::Imported { user, target, file: file.name().to_owned() });
            }
        }
    }
    Ok(())
}

/// A field or extension that refers to a type.
pub(crate) struct Reference {
    user: String,
    target: String,
    /// Where the type is declared.
    pub(crate) file: FileDescriptor,
}

/// Every type that the fields and extensions of `file` refer to, but for those of options.
pub(crate) fn references(file: &FileDescriptor) -> Vec<Reference> {
    let mut found = Vec::new();
    let mut add = |user: &str, kind: &Kind| {
        let (target, file) = match kind {
            Kind::Message(message) => (message.full_name(), message.parent_file()),
            Kind::Enum(target) => (target.full_name(), target.parent_file()),
            _ => return,
        };
        found.push(Reference { user: user.to_owned(), target: target.to_owned(), file });
    };
    let mut extensions: Vec<ExtensionDescriptor> = file.extensions().collect();
    for message in messages(file) {
        extensions.extend(message.child_extensions());
        message.fields().for_each(|field| add(field.full_name(), &field.kind()));
    }
    for extension in extensions.iter().filter(|extension| !is_option(extension)) {
        add(extension.full_name(), &Kind::Message(extension.containing_message()));
        add(extension.full_name(), &extension.kind());
    }
    found
}

/// True for an extension that is an option of the schema language, which no program sends.
pub(crate) fn is_option(extension: &ExtensionDescriptor) -> bool {
    let extended = extension.containing_message();
    extended.package_name() == "google.protobuf" && extended.name().ends_with("Options")
}

/// All messages of a file, nested ones behind those around them.
pub(crate) fn messages(file: &FileDescriptor) -> Vec<MessageDescriptor> {
    let mut found: Vec<MessageDescriptor> = file.messages().collect();
    let mut next = 0;
    while let Some(message) = found.get(next).cloned() {
        found.extend(message.child_messages());
        next += 1;
    }
    found
}

/// Every name that becomes part of the code.
fn all_names(file: &FileDescriptor) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |name: &str| found.push(name.to_owned());
    file.package_name().split('.').filter(|_| !file.package_name().is_empty()).for_each(&mut add);
    file.extensions().for_each(|extension| add(extension.name()));
    let mut enums: Vec<EnumDescriptor> = file.enums().collect();
    for message in messages(file) {
        add(message.name());
        message.fields().for_each(|field| add(field.name()));
        message.oneofs().for_each(|oneof| add(oneof.name()));
        message.child_extensions().for_each(|extension| add(extension.name()));
        enums.extend(message.child_enums());
    }
    for target in enums {
        add(target.name());
        target.values().for_each(|value| add(value.name()));
    }
    for service in file.services() {
        add(service.name());
        service.methods().for_each(|method| add(method.name()));
    }
    found
}
