//! Debian's `protoc` starts our plugin. Its output is, byte for byte, the output of the library for
//! the same files, with the compiler written in Rust. Comments are part of it.

use esatto_protozero_codegen::Config;
use esatto_tests::{Peer, Skip, protoc_plugin, skip};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn of_files_with_everything_in_them() {
    skip(|| compare("fixtures", "crates/protozero-codegen/tests/codegen/protos", &[("owned", "**")]));
}

#[test]
fn of_files_with_everything_in_them_in_one_module() {
    let options =
        [("layout", "flat"), ("root", "crate::p"), ("owned", "**"), ("oneof", "fields"), ("deprecated", "off")];
    skip(|| compare("flat", "crates/protozero-codegen/tests/codegen/protos", &options));
}

#[test]
fn of_the_schema_of_perfetto() {
    let options = [
        ("layout", "flat"),
        ("strip", "protos/perfetto/"),
        ("owned", "protos/perfetto/config/**.proto"),
        ("feature", "ftrace:protos/perfetto/trace/ftrace/*.proto"),
        ("ungated", "protos/perfetto/trace/ftrace/ftrace_event_bundle.proto"),
        ("ungated", "protos/perfetto/trace/ftrace/ftrace_stats.proto"),
    ];
    skip(|| compare("perfetto", "crates/schema/proto", &options));
}

#[test]
fn protoc_reports_a_mistake_in_the_parameters() {
    skip(|| {
        Peer::Protoc.require()?;
        let folder = Folder::new("mistake");
        let protos = root().join("crates/protozero-codegen/tests/codegen/protos");
        let run = protoc(&protos, &["cases.proto".into()], &folder.0, "rot=crate").output().expect("protoc starts");
        let told = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(!run.status.success() && told.contains("--esatto_out: unknown option `rot`"), "{told}");
        Ok(())
    });
}

/// Runs both on all files below `include` that import nothing from elsewhere.
fn compare(name: &str, include: &str, options: &[(&str, &str)]) -> Result<(), Skip> {
    Peer::Protoc.require()?;
    let include = root().join(include);
    // Which version of Google's own files there is differs.
    let own = |path: &PathBuf| !std::fs::read_to_string(include.join(path)).expect("text").contains("google/protobuf");
    let protos: Vec<PathBuf> = files(&include).into_keys().map(PathBuf::from).filter(own).collect();
    assert!(protos.len() > 5, "there is something to compare");

    let config = options.iter().try_fold(Config::new(), |config, (name, value)| config.option(name, value));
    let output = config.and_then(|config| config.compile(&protos, &[&include])).expect("it compiles");

    let folder = Folder::new(name);
    let parameters: Vec<String> = options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let run = protoc(&include, &protos, &folder.0, &parameters.join(",")).output().expect("protoc starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let written = files(&folder.0);
    assert_eq!(written.keys().collect::<Vec<_>>(), output.files().keys().collect::<Vec<_>>());
    for (path, text) in &written {
        let ours = &output.files()[path];
        let differing = text.lines().zip(ours.lines()).find(|(theirs, ours)| theirs != ours);
        assert!(text == ours, "{path}: {differing:?}");
    }
    Ok(())
}

fn protoc(include: &Path, protos: &[PathBuf], out: &Path, parameters: &str) -> Command {
    let mut protoc = Command::new("protoc");
    protoc.arg("-I").arg(include).arg(format!("--plugin=protoc-gen-esatto={}", protoc_plugin().display()));
    protoc.arg(format!("--esatto_out={}", out.display())).arg(format!("--esatto_opt={parameters}")).args(protos);
    protoc
}

/// The text of all files below a folder.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(next) = todo.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below it").to_string_lossy().into_owned();
                found.insert(name, std::fs::read_to_string(&path).expect("text"));
            }
        }
    }
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A new folder, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("esatto-protoc-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
