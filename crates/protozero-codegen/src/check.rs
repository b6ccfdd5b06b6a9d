//! Checks of files before anything is generated.

use prost_reflect::{DescriptorPool, EnumDescriptor, FileDescriptor, MessageDescriptor};

use crate::config::Config;
use crate::descriptors::{Reference, messages, references, service_references};
use crate::error::Error;
use crate::{options_proto, rpc_methods, unused_patterns};
use esatto_rust_text::identifiers;

/// Checks that each map has keys and values.
///
/// Compilers always write both, and the code that follows relies on them, but descriptors from
/// elsewhere may lack one.
pub(crate) fn maps(pool: &DescriptorPool) -> Result<(), Error> {
    let is_broken = |message: &MessageDescriptor| {
        message.is_map_entry() && (message.get_field(1).is_none() || message.get_field(2).is_none())
    };
    match pool.all_messages().find(is_broken) {
        Some(entry) => {
            Err(Error::Unsupported { what: "a map without keys or values", proto: entry.full_name().to_owned() })
        }
        None => Ok(()),
    }
}

/// Checks that code for `files` can be generated.
pub(crate) fn files(config: &Config, files: &[FileDescriptor]) -> Result<(), Error> {
    unused_patterns::check(config, files)?;
    for file in files {
        if !file.file_descriptor_proto().weak_dependency.is_empty() {
            return Err(Error::Unsupported { what: "a weak import", proto: file.name().to_owned() });
        }
        if let Some(name) = all_names(file).into_iter().find(|name| !identifiers::is_identifier(name)) {
            return Err(Error::Name(name));
        }
        for message in messages(file) {
            for field in message.fields().filter(options_proto::is_recorded) {
                rpc_methods::recorded_kind(&field)?;
            }
        }
        let types = if config.messages { references(file) } else { Vec::new() };
        let methods = if config.services.has_bindings() { service_references(file) } else { Vec::new() };
        for Reference { user, target, file } in types.into_iter().chain(methods) {
            if !(config.messages && files.contains(&file)) && config.external_of(&file).is_none() {
                return Err(Error::Imported { user, target, file: file.name().to_owned() });
            }
        }
    }
    Ok(())
}

/// Returns every name that becomes part of the code.
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
