//! The `.proto` files have the rows of `schema.tsv`, from which they were written, and no others.

use std::collections::BTreeSet;

use prost_reflect::{Cardinality, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};

use crate::pool;

const PACKAGE: &str = "perfetto.protos.";
const PROTO_DIR: &str = "protos/perfetto/";

/// An enumeration of Android's statsd that the list refers to but does not contain. Only its
/// numbers matter.
const NOT_LISTED: &[&str] = &["enum\tconfig/statsd/statsd_tracing_config.proto\tAtomId\t0\tATOM_ID_UNSPECIFIED\t\t"];

#[test]
fn the_schema_has_the_rows_of_the_list_and_no_others() {
    let list = include_str!("../../schema.tsv");
    let mut listed: BTreeSet<&str> = list.lines().skip(1).chain(NOT_LISTED.iter().copied()).collect();
    // A message has its own row only if it has no fields. The other direction checks that.
    let present = rows();
    let mut unlisted = Vec::new();
    for row in &present {
        if !listed.remove(row.as_str()) {
            unlisted.push(row);
        }
    }
    assert!(listed.is_empty(), "not in the schema: {listed:#?}");
    assert!(unlisted.is_empty(), "not in the list: {unlisted:#?}");
    assert_eq!(present.len(), 6815);
}

/// Returns the whole schema in the form of the list.
fn rows() -> Vec<String> {
    let mut rows = Vec::new();
    for message in pool().all_messages() {
        message_rows(&message, &mut rows);
    }
    for target in pool().all_enums() {
        enum_rows(&target, &mut rows);
    }
    for service in pool().services() {
        for (index, method) in service.methods().enumerate() {
            let parent = service.parent_file();
            let (file, service) = (file(parent.name()), service.name());
            let stream = if method.is_server_streaming() { "stream " } else { "" };
            let (name, input, output) = (method.name(), method.input(), method.output());
            let types = format!("{} -> {stream}{}", local(input.full_name()), local(output.full_name()));
            rows.push(format!("rpc\t{file}\t{service}\t{}\t{name}\t{types}\t", index + 1));
        }
    }
    rows
}

fn message_rows(message: &MessageDescriptor, rows: &mut Vec<String>) {
    let parent = message.parent_file();
    let (file, owner) = (file(parent.name()), local(message.full_name()));
    // A message that only contains other types has no row either.
    let holds_types = message.child_messages().len() + message.child_enums().len() > 0;
    if message.fields().len() == 0 && !holds_types {
        rows.push(format!("message\t{file}\t{owner}\t\t\t\t"));
    }
    for field in message.fields() {
        let label = if field.cardinality() == Cardinality::Repeated { "repeated" } else { "optional" };
        let (number, name) = (field.number(), field.name());
        let (type_name, options) = (type_name(&field), options(&field));
        rows.push(format!("field\t{file}\t{owner}\t{number}\t{name}\t{label} {type_name}\t{options}"));
    }
    for range in message.extension_ranges() {
        rows.push(format!("extensions\t{file}\t{owner}\t{}-{}\t\t\t", range.start, range.end - 1));
    }
}

fn enum_rows(target: &EnumDescriptor, rows: &mut Vec<String>) {
    let parent = target.parent_file();
    let (file, owner) = (file(parent.name()), local(target.full_name()));
    for value in target.values() {
        rows.push(format!("enum\t{file}\t{owner}\t{}\t{}\t\t", value.number(), value.name()));
    }
}

fn type_name(field: &FieldDescriptor) -> String {
    match field.kind() {
        Kind::Message(message) => local(message.full_name()).to_owned(),
        Kind::Enum(target) => local(target.full_name()).to_owned(),
        scalar => format!("{scalar:?}").to_lowercase(),
    }
}

fn options(field: &FieldDescriptor) -> String {
    let options = field.field_descriptor_proto().options.as_ref();
    if let Some(oneof) = field.containing_oneof() {
        format!("oneof={}", oneof.name())
    } else if field.is_packed() {
        "packed".to_owned()
    } else if options.is_some_and(|options| options.deprecated()) {
        "deprecated".to_owned()
    } else {
        String::new()
    }
}

fn local(full_name: &str) -> &str {
    full_name.strip_prefix(PACKAGE).expect("everything is in the package")
}

fn file(name: &str) -> &str {
    name.strip_prefix(PROTO_DIR).expect("everything is in the folder")
}
