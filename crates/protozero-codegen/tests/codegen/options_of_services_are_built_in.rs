use std::process::Command;

use esatto_protozero_codegen::{Config, options_proto};

use crate::Folder;

const PROTO: &str = "syntax = \"proto3\"; package x; import \"esatto/options.proto\";\n\
    message M { string key = 1 [(esatto.rpc_trace_value) = true]; }\n\
    service S { rpc Go(M) returns (M) { option (esatto.rpc_one_way) = true; } }";

#[test]
fn the_import_needs_no_copy_and_makes_no_code() {
    let folder = Folder::new("built-in");
    std::fs::write(folder.0.join("x.proto"), PROTO).unwrap();
    let output = Config::new().compile(&["x.proto"], &[&folder.0]).unwrap();
    assert_eq!(output.files().keys().collect::<Vec<_>>(), ["mod.rs", "x.rs"]);
    assert_eq!(output.sources(), [folder.0.join("x.proto")]);
}

#[test]
fn a_copy_in_a_folder_of_the_user_takes_precedence() {
    let folder = Folder::new("own-copy");
    std::fs::create_dir(folder.0.join("esatto")).unwrap();
    std::fs::write(folder.0.join("esatto/options.proto"), "nonsense").unwrap();
    std::fs::write(folder.0.join("x.proto"), PROTO).unwrap();
    let error = Config::new().compile(&["x.proto"], &[&folder.0]).unwrap_err().to_string();
    assert!(error.starts_with("esatto/options.proto:1:1:"), "{error}");
}

#[test]
fn the_command_writes_a_copy_for_other_programs() {
    let folder = Folder::new("write-options");
    let command = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_esatto-protozero-codegen"));
        command.current_dir(&folder.0).args(args).output().unwrap()
    };
    assert_eq!(command(&["--check", "--write-options", "proto"]).status.code(), Some(1));
    assert!(command(&["--write-options", "proto"]).status.success());
    let written = std::fs::read_to_string(folder.0.join("proto/esatto/options.proto")).unwrap();
    assert_eq!(written, options_proto());
    std::fs::write(folder.0.join("x.proto"), PROTO).unwrap();
    let run = command(&["-I.", "-Iproto", "-oout", "x.proto"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}
