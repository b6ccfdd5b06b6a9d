use std::path::Path;
use std::process::{Command, Output};

use crate::checked_in_code_is_what_is_generated::{files, output};
use crate::{FIXTURES, Folder, protos};

fn command(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_esatto-protozero-codegen"));
    command.current_dir(folder).arg("-I").arg(protos()).args(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_command_generates_the_code_of_the_library() {
    let folder = Folder::new("command");
    let args =
        [&["--owned", "**", "-o", "out", "--bundle", "all.rs", "--descriptor-set=set.bin"][..], &FIXTURES].concat();
    let run = command(&folder.0, &args);
    assert!(run.status.success() && run.stdout.is_empty() && run.stderr.is_empty(), "{}", stderr(&run));
    assert_eq!(files(&folder.0.join("out")), *output().files());
    assert_eq!(std::fs::read_to_string(folder.0.join("all.rs")).unwrap(), output().bundle());
    assert_eq!(std::fs::read(folder.0.join("set.bin")).unwrap(), output().descriptor_set());

    let check = [&["--check"][..], &args].concat();
    assert!(command(&folder.0, &check).status.success());
    std::fs::write(folder.0.join("out/mod.rs"), "").unwrap();
    let run = command(&folder.0, &check);
    assert_eq!((run.status.code(), stderr(&run).as_str()), (Some(1), "out of date: out/mod.rs\n"));
    assert_eq!(std::fs::read_to_string(folder.0.join("out/mod.rs")).unwrap(), "", "checking writes nothing");
}

#[test]
fn an_error_in_a_file_has_its_position() {
    let folder = Folder::new("mistake");
    std::fs::write(folder.0.join("x.proto"), "syntax = \"proto3\";\nmessage M {\n  N n = 1;\n}\n").unwrap();
    let run = command(&folder.0, &["-I.", "-oout", "x.proto"]);
    assert_eq!(run.status.code(), Some(1));
    assert!(stderr(&run).starts_with("error: x.proto:3:3: name 'N' is not defined"), "{}", stderr(&run));
    assert!(!folder.0.join("out").exists());
}

#[test]
fn wrong_arguments_are_an_error_with_exit_status_2() {
    let folder = Folder::new("arguments");
    for (args, message) in [
        (&["-o", "out"][..], "no .proto file"),
        (&["fixture.proto"], "no output: add -o FOLDER or --bundle FILE"),
        (&["--rot", "crate", "fixture.proto"], "invalid option '--rot'"),
        (&["--layout", "deep", "fixture.proto"], "option `layout` takes packages|flat, not `deep`"),
        (&["-x"], "invalid option '-x'"),
    ] {
        let run = command(&folder.0, args);
        assert_eq!(run.status.code(), Some(2), "{args:?}");
        assert!(stderr(&run).contains(message), "{}", stderr(&run));
    }
}

#[test]
fn help_lists_every_option() {
    let run = command(Path::new("."), &["--help"]);
    let help = String::from_utf8(run.stdout).unwrap();
    for name in esatto_protozero_codegen::Config::option_names() {
        assert!(help.contains(&format!("\n  --{name} ")), "{name}");
    }
    let plugin = Command::new(env!("CARGO_BIN_EXE_protoc-gen-esatto")).arg("--help").output().unwrap();
    assert!(plugin.status.success() && String::from_utf8(plugin.stdout).unwrap().contains("\n  layout=packages|flat "));
}
