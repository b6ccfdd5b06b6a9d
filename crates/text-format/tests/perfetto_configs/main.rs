//! Configs of Perfetto: our parser must produce the same messages as the official client.

mod captured_configs;
mod errors_in_real_configs;
mod sample_configs;

use std::path::PathBuf;
use std::sync::OnceLock;

use esatto_protozero::Owned;
use esatto_schema::{FILE_DESCRIPTOR_SET, TraceConfig};
use prost_reflect::{DescriptorPool, MessageDescriptor};

/// The descriptor of `TraceConfig`.
pub(crate) fn trace_config() -> MessageDescriptor {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    let pool = POOL.get_or_init(|| DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the schema is valid"));
    pool.get_message_by_name("perfetto.protos.TraceConfig").expect("the schema has it")
}

pub(crate) fn parse(text: &str) -> TraceConfig {
    let bytes = esatto_text_format::parse(&trace_config(), text).unwrap_or_else(|errors| panic!("{errors}"));
    // The printed text means the same config.
    let printed = esatto_text_format::to_text(&trace_config(), &bytes);
    let again = esatto_text_format::parse(&trace_config(), &printed).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(TraceConfig::decode(&again), TraceConfig::decode(&bytes), "{printed}");
    TraceConfig::decode(&bytes).expect("what the parser makes is well-formed")
}

/// The folder `tests/` of the project.
pub(crate) fn tests_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}
