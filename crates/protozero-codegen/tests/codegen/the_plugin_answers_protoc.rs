use esatto_protozero_codegen::Config;
use prost::Message as _;
use prost::encoding::{DecodeContext, bytes, decode_key};
use prost_types::compiler::{CodeGeneratorRequest, CodeGeneratorResponse};

use crate::{pool, protos};

fn ask(files: &[&str], parameter: &str) -> CodeGeneratorResponse {
    let request = CodeGeneratorRequest {
        file_to_generate: files.iter().map(|&file| file.to_owned()).collect(),
        parameter: Some(parameter.to_owned()),
        proto_file: pool().file_descriptor_protos().cloned().collect(),
        compiler_version: None,
    };
    let response = esatto_protozero_codegen::run_plugin(&request.encode_to_vec()).unwrap();
    CodeGeneratorResponse::decode(&response[..]).unwrap()
}

#[test]
fn the_plugin_answers_with_the_code_of_the_library() {
    let response = ask(&["fixture.proto"], "root=crate::fixture,owned=fixture.proto,external=fixture:::other");
    assert_eq!(response.error, None);
    let names: Vec<_> = response.file.iter().map(|file| file.name()).collect();
    assert_eq!(names, ["fixture.rs", "mod.rs"]);
    let config = Config::new().root("crate::fixture").owned("fixture.proto").external("fixture", "::other");
    let code = config.compile(&["fixture.proto"], &[protos()]).unwrap();
    // The descriptors of `pool` have no comments.
    let lines = |text: &str| text.lines().filter(|line| !line.contains("///")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(response.file[0].content()), lines(&code.files()["fixture.rs"]));
    assert!(response.file[0].content().contains("-> ::other::ModernWriter<'_>"), "imported types are elsewhere");
}

#[test]
fn imports_are_generated_on_request() {
    let error = ask(&["shapes.proto"], "").error.unwrap();
    assert!(error.contains("which is not among the files to generate"), "{error}");
    let names: Vec<String> =
        ask(&["shapes.proto"], "imports=on").file.iter().map(|file| file.name().to_owned()).collect();
    let all = ["mod.rs", "names.rs", "public.rs", "shapes.rs", "shapes/hidden.rs"];
    assert_eq!(names, all);
}

#[test]
fn the_plugin_answers_with_an_error_that_protoc_prints() {
    let error = |parameter| ask(&["fixture.proto"], parameter).error.unwrap();
    assert!(error("rot=crate").starts_with("unknown option `rot`; known are layout,"));
    assert!(error("layout").starts_with("option `layout` takes packages|flat"));
    assert!(esatto_protozero_codegen::run_plugin(b"\xff").is_err());
}

/// protoc hands options over as extensions, which `prost_types` does not know.
#[test]
fn options_of_services_reach_the_plugin() {
    let copy = crate::Folder::new("protoc");
    std::fs::create_dir(copy.0.join("esatto")).unwrap();
    std::fs::write(copy.0.join("esatto/options.proto"), esatto_protozero_codegen::options_proto()).unwrap();
    let mut compiler = protox::Compiler::new([crate::here().join("rpc"), copy.0.clone()]).unwrap();
    compiler.include_imports(true).open_file("handler.proto").unwrap();
    let request = CodeGeneratorRequest {
        file_to_generate: vec!["handler.proto".to_owned(), "messages.proto".to_owned()],
        parameter: Some("services=ipc".to_owned()),
        ..Default::default()
    };
    let mut request = request.encode_to_vec();
    let set = compiler.encode_file_descriptor_set();
    let mut set = set.as_slice();
    while !set.is_empty() {
        let (_, kind) = decode_key(&mut set).unwrap();
        let mut file: Vec<u8> = Vec::new();
        bytes::merge(kind, &mut file, &mut set, DecodeContext::default()).unwrap();
        bytes::encode(15, &file, &mut request);
    }
    let response = esatto_protozero_codegen::run_plugin(&request).unwrap();
    let response = CodeGeneratorResponse::decode(&response[..]).unwrap();
    assert_eq!(response.error, None);
    let code = response.file.iter().find(|file| file.name() == "handler.rs").unwrap().content();
    assert!(code.contains("TraceSite::new(\"other\")") && code.contains("rpc::service::Kind::OneWay"));
}

#[test]
fn editions_are_refused() {
    let file = prost_types::FileDescriptorProto {
        name: Some("new.proto".to_owned()),
        syntax: Some("editions".to_owned()),
        ..Default::default()
    };
    let request = CodeGeneratorRequest { proto_file: vec![file], ..CodeGeneratorRequest::default() };
    let response = esatto_protozero_codegen::run_plugin(&request.encode_to_vec()).unwrap();
    let error = CodeGeneratorResponse::decode(&response[..]).unwrap().error.unwrap();
    assert_eq!(error, "new.proto: syntax `editions` is not supported, only proto2 and proto3");
}
