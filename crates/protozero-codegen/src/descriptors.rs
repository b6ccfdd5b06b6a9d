//! The messages of a file and its references to types, found in its descriptors.

use prost_reflect::{ExtensionDescriptor, FileDescriptor, Kind, MessageDescriptor};

/// A field or extension that refers to a type.
pub(crate) struct Reference {
    pub(crate) user: String,
    pub(crate) target: String,
    /// The file that declares the type.
    pub(crate) file: FileDescriptor,
}

/// Returns every type that the fields and extensions of `file` refer to. Those of options are left
/// out.
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

/// Returns the messages that the services of `file` refer to.
pub(crate) fn service_references(file: &FileDescriptor) -> Vec<Reference> {
    let methods = file.services().flat_map(|service| service.methods().collect::<Vec<_>>());
    let reference = |user: &str, message: MessageDescriptor| Reference {
        user: user.to_owned(),
        target: message.full_name().to_owned(),
        file: message.parent_file(),
    };
    methods
        .flat_map(|method| [method.input(), method.output()].map(|message| reference(method.full_name(), message)))
        .collect()
}

/// Returns true for an extension that is an option of the schema language. No program sends one.
pub(crate) fn is_option(extension: &ExtensionDescriptor) -> bool {
    let extended = extension.containing_message();
    extended.package_name() == "google.protobuf" && extended.name().ends_with("Options")
}

/// Returns all messages of a file. A nested message comes after the one around it.
pub(crate) fn messages(file: &FileDescriptor) -> Vec<MessageDescriptor> {
    let mut found: Vec<MessageDescriptor> = file.messages().collect();
    let mut next = 0;
    while let Some(message) = found.get(next).cloned() {
        found.extend(message.child_messages());
        next += 1;
    }
    found
}
