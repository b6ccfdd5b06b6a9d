//! Without the feature `trace`, `@trace` adds no machine code to the bindings of a protocol
//! (`docs/spec/ipc-tracing.md` §9, §15).

#![allow(missing_docs, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use esatto_fidl_codegen::Config;

/// Protocol with messages of all kinds.
const SCHEMA: &str = "library sample;

ATTRIBUTE
open protocol Store {
    strict Get(struct { key string:32; }) -> (struct { value string:32; });
    flexible Look(struct { key uint64; }) -> (struct { value uint64; }) error uint32;
    strict Note(struct { text string; });
    strict -> OnChange(struct { key uint64; });
};
";

/// Program with both sides of the protocol.
const PROGRAM: &str = r#"
#[allow(missing_docs)]
mod messages {
    include!("messages.rs");
}

use esatto_fidl::{CallError, ClientEnd, EventSender, Responder, ServerEnd, endpoints};
use messages::sample::store::{Client, Events, Methods, method, serve};
use messages::sample::*;

struct Shelf(Option<EventSender<Store>>);

impl Methods for Shelf {
    fn get(&mut self, request: StoreGetRequest, responder: Responder<method::Get>) {
        let _ = responder.send(&StoreGetResponse { value: request.key });
    }

    fn look(&mut self, request: StoreLookRequest, responder: Responder<method::Look>) {
        let _ = responder.send(&Ok(StoreLookResponse { value: request.key }));
    }

    fn note(&mut self, _: StoreNoteRequest) {
        if let Some(events) = &self.0 {
            let _ = events.on_change(&StoreOnChangeRequest { key: 1 });
        }
    }

    fn unknown_method(&mut self, _: u64) {}
}

#[inline(never)]
fn answer(end: ServerEnd<Store>) -> Result<(), CallError> {
    let mut server = serve(end, Shelf(None))?;
    server.methods().0.0 = Some(server.events());
    server.run()
}

#[inline(never)]
fn call(end: ClientEnd<Store>) -> Result<(), CallError> {
    let client = Client::new(end)?;
    client.get(&StoreGetRequest { key: "key".to_owned() }).wait()?;
    let _ = client.look(&StoreLookRequest { key: 1 }).wait()?;
    client.note(&StoreNoteRequest { text: "text".to_owned() })?;
    client.wait_event(None).map(|_| ())
}

fn main() {
    let (client, server) = endpoints().unwrap();
    std::thread::spawn(move || answer(server));
    println!("{:?}", call(client));
}
"#;

fn generated(attribute: &str) -> String {
    Config::new().text("sample.fidl", SCHEMA.replace("ATTRIBUTE", attribute)).generate().expect("the schema is valid")
}

#[test]
fn an_attribute_adds_no_machine_code_without_the_feature() {
    let (traced, untraced) = (generated("@trace(\"store\")"), generated(""));
    assert!(traced != untraced, "the bindings have a category");
    assert_eq!(generated("[Trace = \"store\"]"), traced);
    assert_eq!(generated("@trace(\"\")"), untraced);

    let with = assembly("with", &traced, &[]);
    let without = assembly("without", &untraced, &[]);
    assert!(with.lines().count() > 1000, "the bindings have machine code");
    if with != without {
        let differs = with.lines().zip(without.lines()).find(|(with, without)| with != without);
        panic!("the machine code differs: {differs:?}");
    }
    assert!(!with.contains("5hooks"), "there is no symbol of the module `hooks`");

    // The comparison sees calls of hooks.
    assert!(assembly("on", &traced, &["esatto-fidl/trace"]) != with);
}

/// Compiles the program, and returns the assembly of its functions.
fn assembly(variant: &str, messages: &str, features: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fidl-compiled-out");
    let package = folder.join(variant);
    fs::create_dir_all(package.join("src")).expect("writes");
    fs::write(package.join("src/messages.rs"), messages).expect("writes");
    fs::write(package.join("src/main.rs"), PROGRAM).expect("writes");
    let manifest = format!(
        "[package]\nname = \"compiled-out\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
         esatto-fidl = {{ path = \"{}\" }}\n",
        root.join("crates/fidl").display()
    );
    fs::write(package.join("Cargo.toml"), manifest).expect("writes");
    // The versions of the workspace.
    fs::copy(root.join("Cargo.lock"), package.join("Cargo.lock")).expect("the workspace has a lock file");
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
