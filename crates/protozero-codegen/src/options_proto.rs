//! `esatto/options.proto`: the options of services that `.proto` files may use, and their values.

use std::path::Path;

use prost_reflect::{DynamicMessage, FieldDescriptor, MethodDescriptor, ServiceDescriptor, Value};
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver, IncludeFileResolver};

/// The path by which `.proto` files import the options.
pub(crate) const NAME: &str = "esatto/options.proto";

const TEXT: &str = include_str!("../proto/esatto/options.proto");

/// Returns the text of `esatto/options.proto`, which `.proto` files can import without having it.
///
/// Programs other than this generator, such as protoc and editors, need a copy in a folder where
/// they look for imports.
#[must_use]
pub fn options_proto() -> &'static str {
    TEXT
}

/// Returns the resolver of paths: the folders, then the files that are built in.
pub(crate) fn resolver(includes: &[impl AsRef<Path>]) -> ChainFileResolver {
    let mut chain = ChainFileResolver::new();
    for folder in includes {
        chain.add(IncludeFileResolver::new(folder.as_ref().to_owned()));
    }
    chain.add(BuiltIn);
    chain.add(GoogleFileResolver::new());
    chain
}

struct BuiltIn;

impl FileResolver for BuiltIn {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        if name == NAME { File::from_source(name, TEXT) } else { Err(protox::Error::file_not_found(name)) }
    }
}

/// Returns the category under which calls of a method are traced.
pub(crate) fn trace_category(service: &ServiceDescriptor, method: &MethodDescriptor) -> Option<String> {
    let text = |options: DynamicMessage, name| match option(&options, name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    text(method.options(), "esatto.rpc_trace_category")
        .or_else(|| text(service.options(), "esatto.service_trace_category"))
        .filter(|category| !category.is_empty())
}

/// Returns true if clients of the method want no reply.
pub(crate) fn is_one_way(method: &MethodDescriptor) -> bool {
    option(&method.options(), "esatto.rpc_one_way") == Some(Value::Bool(true))
}

/// Returns true if traced calls record the value of the field.
pub(crate) fn is_recorded(field: &FieldDescriptor) -> bool {
    option(&field.options(), "esatto.rpc_trace_value") == Some(Value::Bool(true))
}

fn option(options: &DynamicMessage, full_name: &str) -> Option<Value> {
    options.extensions().find(|(extension, _)| extension.full_name() == full_name).map(|(_, value)| value.clone())
}
