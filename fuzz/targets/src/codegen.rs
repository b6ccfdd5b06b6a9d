//! The generator as a plugin of protoc.

use prost::Message as _;
use prost_types::compiler::{CodeGeneratorRequest, CodeGeneratorResponse};

/// A request. The result is a response, with code or with an error, and the same for the same
/// request.
pub fn codegen_plugin(bytes: &[u8]) {
    let Ok(response) = esatto_protozero_codegen::run_plugin(bytes) else {
        assert!(CodeGeneratorRequest::decode(bytes).is_err(), "whatever is a request has a response");
        return;
    };
    let decoded = CodeGeneratorResponse::decode(&response[..]).expect("own encoding");
    assert!(decoded.error.is_none() || decoded.file.is_empty(), "either code or an error");
    assert_eq!(esatto_protozero_codegen::run_plugin(bytes).ok(), Some(response), "the same again");
}
