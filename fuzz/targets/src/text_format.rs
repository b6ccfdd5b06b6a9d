//! Configs in text format.

use std::sync::OnceLock;

use prost_reflect::{DescriptorPool, MessageDescriptor};

/// A trace config as text, parsed, printed and parsed again.
pub fn text_format(bytes: &[u8]) {
    esatto_text_format::fuzz_parse(trace_config(), bytes);
}

fn trace_config() -> &'static MessageDescriptor {
    static MESSAGE: OnceLock<MessageDescriptor> = OnceLock::new();
    MESSAGE.get_or_init(|| {
        let pool = DescriptorPool::decode(esatto_schema::FILE_DESCRIPTOR_SET).expect("our own descriptors");
        pool.get_message_by_name("perfetto.protos.TraceConfig").expect("a message of ours")
    })
}
