use prost::Message as _;
use prost_types::compiler::{CodeGeneratorRequest, CodeGeneratorResponse};

use crate::{pool, protos};

fn ask(parameter: &str) -> CodeGeneratorResponse {
    let request = CodeGeneratorRequest {
        file_to_generate: vec!["fixture.proto".to_owned()],
        parameter: Some(parameter.to_owned()),
        proto_file: pool().file_descriptor_protos().cloned().collect(),
        compiler_version: None,
    };
    let response = esatto_protozero_codegen::run_plugin(&request.encode_to_vec()).unwrap();
    CodeGeneratorResponse::decode(&response[..]).unwrap()
}

#[test]
fn with_the_same_code_as_the_library() {
    let response = ask("root=crate::fixture,owned=fixture.proto,external=fixture:::other");
    assert_eq!(response.error, None);
    let names: Vec<_> = response.file.iter().map(|file| file.name()).collect();
    assert_eq!(names, ["fixture.rs", "mod.rs"]);
    let config = esatto_protozero_codegen::Config::new().root("crate::fixture").owned("fixture.proto");
    let code = config.external("fixture", "::other").compile(&["fixture.proto"], &[protos()]).unwrap();
    let lines = |text: &str| text.lines().filter(|line| !line.contains("///")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(response.file[0].content()), lines(&code.files()["fixture.rs"]));
    assert!(response.file[0].content().contains("-> ::other::ModernWriter<'_>"), "imported types are elsewhere");
}

#[test]
fn with_an_error_it_can_print() {
    let response = ask("rot=crate");
    assert!(response.error().starts_with("unknown parameter `rot=crate`"));
    assert!(esatto_protozero_codegen::run_plugin(b"\xff").is_err());
}
