//! Without the feature `trace`, categories of a schema and of `#[esatto::trace_rpc]` add no machine
//! code to the bindings of a service (`docs/spec/ipc-tracing.md` §9, §14).

#![allow(missing_docs, reason = "tests")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Program with both sides of a service from a schema, and of one from a trait.
const PROGRAM: &str = r#"
#[allow(missing_docs)]
mod messages {
    include!("messages.rs");
}

use std::sync::Arc;

use esatto_ipc::server::{Context, Incoming, Replies};
use esatto_ipc::{CallError, Channel, Error, ServerConnection, ServerLimits, Status, Stream};
use messages::sample::*;

ATTRIBUTE
pub trait Desk {
    async fn get(&self, context: &Context, request: GetRequest) -> Result<GetReply, Status>;
    async fn note(&self, context: &Context, request: Text);
}

struct Shelf;

impl store::Server for Shelf {
    async fn get(&self, _: &Context, request: GetRequest) -> Result<GetReply, Status> {
        Ok(GetReply { value: request.key, ..GetReply::default() })
    }

    async fn watch(&self, _: &Context, _: WatchRequest, mut replies: Replies<Event>) -> Result<(), Status> {
        Ok(replies.send(&Event::default()).await?)
    }

    async fn note(&self, _: &Context, _: Text) {}
}

impl Desk for Shelf {
    async fn get(&self, _: &Context, request: GetRequest) -> Result<GetReply, Status> {
        Ok(GetReply { value: request.key, ..GetReply::default() })
    }

    async fn note(&self, _: &Context, _: Text) {}
}

struct Plain;

impl store::Handler for Plain {
    fn get(&mut self, call: Incoming<'_, store::method::Get>) {
        call.answer(|request| Ok(GetReply { value: request.key, ..GetReply::default() }));
    }

    fn watch(&mut self, call: Incoming<'_, store::method::Watch>) {
        call.into_replies().finish();
    }

    fn note(&mut self, _: Incoming<'_, store::method::Note>) {}
}

#[inline(never)]
fn serve(stream: Stream) -> Arc<Error> {
    let services = (store::ServeAsync::new(Shelf), desk::ServeAsync::new(Shelf));
    ServerConnection::new(stream, services, ServerLimits::default()).block()
}

#[inline(never)]
fn serve_plain(stream: Stream) -> Arc<Error> {
    ServerConnection::new(stream, store::Serve(Plain), ServerLimits::default()).block()
}

#[inline(never)]
fn call(stream: Stream) -> Result<(), CallError> {
    let channel = Channel::new(stream);
    let (store, desk) = (store::Client::new(&channel), desk::Client::new(&channel));
    store.get(&GetRequest::default()).wait()?;
    desk.get(&GetRequest::default()).then(|_| {})?;
    for event in store.watch(&WatchRequest::default()) {
        event?;
    }
    store.note(&Text::default()).send()?;
    desk.note(&Text::default()).send()
}

fn main() {
    for serve in [serve, serve_plain] {
        let (ours, theirs) = Stream::pair().unwrap();
        std::thread::spawn(move || serve(theirs));
        println!("{:?}", call(ours));
    }
}
"#;

#[test]
fn categories_add_no_machine_code_without_the_feature() {
    let traced = include_str!("rpc/sample/messages.rs");
    let methods = ["Get", "Watch", "Note"];
    let untraced = methods.iter().fold(traced.to_owned(), |text, method| {
        let site = format!("trace: Some(&trace::{method})");
        assert!(text.contains(&site), "the bindings of {method} have a category");
        text.replace(&site, "trace: None")
    });
    let with = assembly("with", traced, "#[esatto_macros::trace_rpc(category = \"desk\")]", &[]);
    let without = assembly("without", &untraced, "#[esatto_macros::trace_rpc]", &[]);
    assert!(with.lines().count() > 1000, "the bindings have machine code");
    if with != without {
        let differs = with.lines().zip(without.lines()).find(|(with, without)| with != without);
        panic!("the machine code differs: {differs:?}");
    }
    assert!(!with.contains("5hooks"), "there is no symbol of the module `hooks`");

    // The comparison sees calls of hooks.
    let on = assembly("on", traced, "#[esatto_macros::trace_rpc(category = \"desk\")]", &["esatto-ipc/trace"]);
    assert!(on != with);
}

/// Compiles the program, and returns the assembly of its functions.
fn assembly(variant: &str, messages: &str, attribute: &str, features: &[&str]) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("compiled-out");
    let package = folder.join(variant);
    fs::create_dir_all(package.join("src")).expect("writes");
    fs::write(package.join("src/messages.rs"), messages).expect("writes");
    fs::write(package.join("src/main.rs"), PROGRAM.replace("ATTRIBUTE", attribute)).expect("writes");
    fs::write(package.join("Cargo.toml"), manifest(here)).expect("writes");
    // The versions of the workspace.
    fs::copy(here.join("../../Cargo.lock"), package.join("Cargo.lock")).expect("the workspace has a lock file");
    // Symbols depend on the path of the package: all variants are built in the same place.
    let place = folder.join("package");
    let _ = fs::remove_dir_all(&place);
    fs::rename(&package, &place).expect("moves");
    let target = folder.join("target");
    let output = Command::new(env!("CARGO"))
        .current_dir(&place)
        .args(["rustc", "--offline", "--quiet", "--release", "--target-dir"])
        .arg(&target)
        .args(["--features", &features.join(","), "--", "--emit", "asm,link", "-C", "codegen-units=1"])
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let files = fs::read_dir(target.join("release/deps")).expect("was built");
    let is_assembly = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "s");
    let mut found: Vec<_> = files.filter_map(Result::ok).map(|file| file.path()).filter(is_assembly).collect();
    found.sort_by_key(|path| fs::metadata(path).and_then(|data| data.modified()).ok());
    functions(&fs::read_to_string(found.last().expect("there is assembly")).expect("is readable"))
}

fn manifest(ipc: &Path) -> String {
    let mut text = "[package]\nname = \"compiled-out\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n".to_owned();
    let crates = ipc.parent().expect("is in a folder").display();
    for (name, folder, features) in [
        ("esatto-ipc", "ipc", "\"channel\", \"server\""),
        ("esatto-protozero", "protozero", ""),
        ("esatto-macros", "macros", ""),
    ] {
        writeln!(text, "{name} = {{ path = \"{crates}/{folder}\", features = [{features}] }}").expect("a String");
    }
    text
}

/// Returns the instructions of all functions. Constants are in other sections: their labels are
/// made equal, because a description with a category has more of them.
fn functions(assembly: &str) -> String {
    let mut text = String::new();
    let mut is_code = false;
    for line in assembly.lines() {
        let directive = line.trim();
        if directive.starts_with(".section") || directive == ".text" || directive == ".data" {
            is_code = directive.contains(".text");
        }
        if is_code && !directive.starts_with(".ident") {
            text.push_str(&without_labels(directive));
            text.push('\n');
        }
    }
    text
}

/// Replaces the labels of constants: `.Lanon.` or `.L__unnamed_` and a number.
fn without_labels(line: &str) -> String {
    let mut result = String::new();
    let mut rest = line;
    while let Some(at) = [".Lanon.", ".L__unnamed_"].iter().filter_map(|label| rest.find(label)).min() {
        result.push_str(&rest[..at]);
        result.push_str("CONSTANT");
        let label = &rest[at + 1..];
        let end = label.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_')));
        rest = end.map_or("", |end| &label[end..]);
    }
    result.push_str(rest);
    result
}
