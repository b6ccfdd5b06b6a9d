//! The generated schema, compared with its source, with prost-reflect and with bytes that Perfetto
//! wrote.

mod captured_frames_survive_as_values;
mod damaged_values_never_panic;
mod every_row_of_the_spec_is_in_the_schema;
mod real_traces_are_read;
mod text_configs_become_values;
mod unknown_fields_of_a_config_are_kept;

use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, ReflectMessage, Value};

const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("../../src/descriptor.bin");

fn pool() -> &'static DescriptorPool {
    static POOL: std::sync::OnceLock<DescriptorPool> = std::sync::OnceLock::new();
    POOL.get_or_init(|| DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the descriptors are consistent"))
}

fn message(name: &str) -> MessageDescriptor {
    pool().get_message_by_name(&format!("perfetto.protos.{name}")).expect("the schema has the message")
}

/// Decodes a message with prost-reflect.
fn dynamic(name: &str, bytes: &[u8]) -> DynamicMessage {
    DynamicMessage::decode(message(name), bytes).expect("well-formed")
}

/// Returns the message in prost-reflect's own encoding.
fn canonical(name: &str, bytes: &[u8]) -> Vec<u8> {
    prost::Message::encode_to_vec(&dynamic(name, bytes))
}

/// Returns the numbers of all unknown fields at any depth, each after its message's name.
fn unknown_fields(message: &DynamicMessage) -> Vec<String> {
    let name = message.descriptor().full_name().to_owned();
    let own = message.unknown_fields().map(|field| format!("{name} {}", field.number()));
    let nested = message.fields().flat_map(|(_, value)| match value {
        Value::Message(message) => unknown_fields(message),
        Value::List(values) => values.iter().filter_map(Value::as_message).flat_map(unknown_fields).collect(),
        _ => Vec::new(),
    });
    own.chain(nested).collect()
}
