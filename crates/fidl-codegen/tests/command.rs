//! The command `esatto-fidl-gen`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use esatto_fidl_codegen::Config;

const ECHO: &str = "library test.echo; using test.shared;
closed protocol Echo { strict Say(test.shared.Word) -> (test.shared.Word); };
";
const SHARED: &str = "library test.shared;\nstruct Word { string text; };\n";

#[test]
fn the_command_generates_the_code_of_the_library() {
    let folder = Folder::new();
    let files = ["echo.fidl", "shared.fidl"];
    let config = Config::new().text(files[0], ECHO).text(files[1], SHARED);
    let printed = folder.run(&files);
    assert!(printed.status.success(), "{}", stderr(&printed));
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), config.generate().unwrap());

    let args = ["--out", "out", "--bundle=all.rs", files[0], files[1]];
    let run = folder.run(&args);
    assert!(run.status.success() && run.stdout.is_empty() && run.stderr.is_empty(), "{}", stderr(&run));
    assert_eq!(folder.read("all.rs"), config.generate().unwrap());
    let mut names = Vec::new();
    for (name, text) in config.generate_files().unwrap() {
        assert_eq!(folder.read(&format!("out/{name}")), text, "{name}");
        names.push(name);
    }
    assert_eq!(names, ["test_echo.rs", "test_shared.rs", "zx.rs", "mod.rs"]);

    let check = ["--check", "--out", "out", files[0], files[1]];
    assert!(folder.run(&check).status.success());
    folder.write("out/zx.rs", "");
    let run = folder.run(&check);
    assert_eq!((run.status.code(), stderr(&run).as_str()), (Some(1), "out of date: out/zx.rs\n"));
    assert_eq!(folder.read("out/zx.rs"), "", "checking writes nothing");

    let one = folder.run(&["-l", "test.shared", files[0], files[1]]);
    assert_eq!(one.stdout, config.library("test.shared").generate().unwrap().into_bytes());
}

#[test]
fn an_error_in_a_file_has_its_position() {
    let folder = Folder::new();
    folder.write("x.fidl", "library x;\ntype A = struct {\n  a bool\n};\n");
    let run = folder.run(&["-oout", "x.fidl"]);
    let expected = "error: x.fidl:4:1: expected `;` after the member, found `}`\n";
    assert_eq!((run.status.code(), stderr(&run).as_str()), (Some(1), expected));
    assert!(!folder.0.join("out").exists());
    let run = folder.run(&["none.fidl"]);
    assert_eq!(run.status.code(), Some(1));
    assert!(stderr(&run).starts_with("error: cannot read none.fidl: "), "{}", stderr(&run));
    let run = folder.run(&["-l", "test.other", "shared.fidl"]);
    let expected = "error: no file declares the library `test.other`; declared are `test.shared`, `zx`\n";
    assert_eq!((run.status.code(), stderr(&run).as_str()), (Some(1), expected));
}

#[test]
fn compiled_libraries_need_no_source() {
    let folder = Folder::new();
    let compiled = "{\"name\": \"test.compiled\", \"struct_declarations\": [{\"name\": \"test.compiled/Empty\",
        \"resource\": false, \"members\": [], \"type_shape_v2\": {\"inline_size\": 1, \"alignment\": 1}}]}";
    folder.write("compiled.json", compiled);
    let run = folder.run(&["--ir", "compiled.json", "-l", "test.compiled"]);
    assert!(run.status.success(), "{}", stderr(&run));
    assert!(String::from_utf8(run.stdout).unwrap().contains("pub struct Empty"));

    folder.write("compiled.json", &compiled.replace("inline_size\": 1", "inline_size\": 4"));
    let run = folder.run(&["--ir", "compiled.json"]);
    let expected = "error: compiled.json: test.compiled/Empty: the size is 4 bytes, aligned to 1, \
        but ours 1 bytes, aligned to 1\n";
    assert_eq!((run.status.code(), stderr(&run).as_str()), (Some(1), expected));
    folder.write("compiled.json", "{\n\"name\": }");
    let run = folder.run(&["--ir", "compiled.json"]);
    assert_eq!(stderr(&run), "error: compiled.json:2:9: expected value\n");
}

#[test]
fn wrong_arguments_are_an_error_with_exit_status_2() {
    let folder = Folder::new();
    for (args, message) in [
        (&["-o", "out"][..], "no .fidl file and no --ir FILE.json"),
        (&["--rot", "echo.fidl"], "invalid option '--rot'"),
        (&["echo.fidl", "--out"], "missing argument for option '--out'"),
        (&["--check", "echo.fidl"], "nothing to check: add -o FOLDER or --bundle FILE"),
    ] {
        let run = folder.run(args);
        assert_eq!(run.status.code(), Some(2), "{args:?}");
        assert!(stderr(&run).contains(message), "{}", stderr(&run));
    }
    let help = folder.run(&["--help"]);
    assert!(help.status.success() && help.stdout.starts_with(b"Generates Rust from .fidl files"));
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Folder for one test, with the two libraries. It is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let n = COUNTER.fetch_add(1, Ordering::Relaxed);
        let folder = Self(std::env::temp_dir().join(format!("esatto-fidl-gen-{}-{n}", std::process::id())));
        fs::create_dir_all(&folder.0).unwrap();
        folder.write("echo.fidl", ECHO);
        folder.write("shared.fidl", SHARED);
        folder
    }

    fn run(&self, args: &[&str]) -> Output {
        let command = Path::new(env!("CARGO_BIN_EXE_esatto-fidl-gen"));
        Command::new(command).current_dir(&self.0).args(args).output().unwrap()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
