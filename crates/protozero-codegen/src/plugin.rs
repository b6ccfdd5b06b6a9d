//! The plugin of protoc.

use prost::encoding::{DecodeContext, WireType, bytes, decode_key, skip_field};
use prost::{DecodeError, Message as _};
use prost_reflect::DescriptorPool;
use prost_types::FileDescriptorProto;
use prost_types::compiler::code_generator_response::{Feature, File};
use prost_types::compiler::{CodeGeneratorRequest, CodeGeneratorResponse};

use crate::config::Config;
use crate::error::Error;

/// Answers one request of protoc (`CodeGeneratorRequest` in, `CodeGeneratorResponse` out).
///
/// Parameters are a comma-separated list of `NAME=VALUE`, see [`Config::option`]. Code for imported
/// files is generated only with `imports=on`, as protoc's users expect. Name all `.proto` files in
/// one call. If the files or the parameters are wrong, the response has the error.
///
/// # Errors
///
/// If the request cannot be decoded.
pub fn run_plugin(request: &[u8]) -> Result<Vec<u8>, Error> {
    let set = descriptor_set(request)?;
    let request = CodeGeneratorRequest::decode(request)?;
    let supported_features = Some(Feature::Proto3Optional as u64);
    let response = match answer(&request, &set) {
        Ok(file) => CodeGeneratorResponse { file, supported_features, ..CodeGeneratorResponse::default() },
        Err(error) => CodeGeneratorResponse { error: Some(error), ..CodeGeneratorResponse::default() },
    };
    Ok(response.encode_to_vec())
}

fn answer(request: &CodeGeneratorRequest, set: &[u8]) -> Result<Vec<File>, String> {
    let config = parameters(request.parameter())?;
    // `DescriptorPool` panics on any other syntax.
    let known = |file: &&FileDescriptorProto| matches!(file.syntax(), "" | "proto2" | "proto3");
    if let Some(file) = request.proto_file.iter().find(|file| !known(file)) {
        return Err(format!("{}: syntax `{}` is not supported, only proto2 and proto3", file.name(), file.syntax()));
    }
    let pool = DescriptorPool::decode(set).map_err(|error| error.to_string())?;
    let output = config.generate(&pool, &request.file_to_generate).map_err(|error| error.to_string())?;
    let file = |(name, content): (&String, &String)| File {
        name: Some(name.clone()),
        content: Some(content.clone()),
        ..File::default()
    };
    Ok(output.files().iter().map(file).collect())
}

/// Returns the files of a request as an encoded `FileDescriptorSet`. The bytes of the files stay as
/// they are, because `prost_types` drops the options that extensions add.
fn descriptor_set(mut request: &[u8]) -> Result<Vec<u8>, DecodeError> {
    const PROTO_FILE: u32 = 15;
    const FILE: u32 = 1;
    let mut set = Vec::new();
    while !request.is_empty() {
        let (number, kind) = decode_key(&mut request)?;
        if (number, kind) == (PROTO_FILE, WireType::LengthDelimited) {
            let mut file: Vec<u8> = Vec::new();
            bytes::merge(kind, &mut file, &mut request, DecodeContext::default())?;
            bytes::encode(FILE, &file, &mut set);
        } else {
            skip_field(kind, number, &mut request, DecodeContext::default())?;
        }
    }
    Ok(set)
}

fn parameters(text: &str) -> Result<Config, String> {
    text.split(',').filter(|word| !word.is_empty()).try_fold(Config::new().imports(false), |config, word| {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        config.option(name, value).map_err(|error| error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::parameters;

    #[test]
    fn parameters_set_the_config() {
        let config = parameters("root=crate::p,external=perfetto.protos:::esatto_schema").unwrap();
        assert_eq!(config.root, "crate::p");
        assert_eq!(config.external, [("perfetto.protos".to_owned(), "::esatto_schema".to_owned())]);
        assert!(parameters("rot=crate").unwrap_err().contains("`rot`"));
        assert!(parameters("imports").unwrap_err().contains("takes on|off"));
    }
}
