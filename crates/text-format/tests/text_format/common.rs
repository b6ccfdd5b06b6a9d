use std::sync::OnceLock;

use esatto_text_format::Errors;
use prost_reflect::{DescriptorPool, MessageDescriptor};

fn pool() -> DescriptorPool {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/text_format");
    let files = protox::compile(["test.proto"], [folder]).expect("the test schema is valid");
    DescriptorPool::from_file_descriptor_set(files).expect("the test schema is valid")
}

pub(crate) fn config() -> MessageDescriptor {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    POOL.get_or_init(pool).get_message_by_name("test.Config").expect("the test schema has it")
}

pub(crate) fn parse(text: &str) -> Result<Vec<u8>, Errors> {
    esatto_text_format::parse(&config(), text)
}

/// Parses and prints again.
pub(crate) fn canonical(text: &str) -> String {
    let bytes = parse(text).unwrap_or_else(|errors| panic!("{errors}"));
    esatto_text_format::to_text(&config(), &bytes)
}

/// Returns the errors as `line:column message`.
pub(crate) fn errors(text: &str) -> Vec<String> {
    let errors = parse(text).expect_err("this text is wrong");
    errors.iter().map(|e| format!("{}:{} {}", e.line, e.column, e.message)).collect()
}
