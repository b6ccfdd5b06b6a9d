//! Programs with common mistakes do not compile, and the compiler says what to write instead.

#![allow(missing_docs, reason = "tests")]

use std::path::Path;

mod rustc;

/// Compiles a program whose `main` has these statements. Returns the compiler's errors, or `None`
/// if there are none.
fn compile(statements: &str) -> Option<String> {
    const BEFORE: &str = "
        use std::future::{Future, ready};
        use esatto::*;
        categories! { static APP = \"app\"; }
        static COUNTER: CounterTrack = CounterTrack::new(\"counter\");
        static STATE: StateTrack = StateTrack::new(\"state\");
        static TRACK: Track = Track::with_name(\"track\", 1);
        fn spawn(_: impl Future<Output = ()> + Send) {}
        fn main() {
            let name = 1;
    ";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let number = statements.bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    let source = folder.join(format!("mistake_{number:x}.rs"));
    std::fs::write(&source, format!("{BEFORE}{statements}\n}}")).expect("writes");
    let output = rustc::compile(&source, &["--emit", "metadata"]);
    std::fs::remove_file(&source).expect("was written");
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

#[track_caller]
fn refused(statements: &str, hints: &[&str]) {
    let errors = compile(statements).unwrap_or_else(|| panic!("compiles: {statements}"));
    for hint in hints {
        assert!(errors.contains(hint), "no {hint:?} for {statements}:\n{errors}");
    }
}

#[track_caller]
fn accepted(statements: &str) {
    if let Some(errors) = compile(statements) {
        panic!("{statements}:\n{errors}");
    }
}

#[test]
fn a_guard_does_not_leave_its_thread() {
    refused(
        "let guard = slice!(APP, \"work\"); std::thread::spawn(move || drop(guard));",
        &["cannot be sent between threads safely", "SliceGuard"],
    );
    refused(
        "spawn(async { let _guard = slice!(APP, \"work\"); ready(()).await; });",
        &["future cannot be sent between threads safely", "which is not `Send`"],
    );
    refused(
        "spawn(async { let _guard = slice!(category: &APP, \"work\", name); ready(()).await; });",
        &["future cannot be sent between threads safely", "which is not `Send`"],
    );
    accepted("spawn(async { { let _guard = slice!(APP, \"work\"); } ready(()).await; });");
}

#[test]
fn a_guard_of_a_slice_on_a_track_may_leave_its_thread() {
    accepted("let guard = slice!(APP, track: &TRACK, \"work\"); std::thread::spawn(move || drop(guard));");
    accepted("spawn(async { let _guard = slice!(APP, track: &TRACK, \"work\"); ready(()).await; });");
    accepted("spawn(async { async_slice!(APP, \"work\").run(ready(())).await; });");
}

#[test]
fn a_text_is_not_a_category() {
    for macro_call in [
        "let _guard = slice!(\"net\", \"work\");",
        "let _guard = slice!(\"net\", track: &TRACK, \"work\");",
        "begin!(\"net\", \"work\", name);",
        "end!(\"net\");",
        "instant!(\"net\", \"work\");",
        "counter!(\"net\", &COUNTER, 1);",
        "state!(\"net\", &STATE, \"work\");",
        "spawn(async { async_slice!(\"net\", \"work\").run(ready(())).await; });",
    ] {
        refused(
            macro_call,
            &["expected a category, found the literal `\"net\"`: declare one with", "aborting due to 1 previous error"],
        );
    }
}

#[test]
fn names_are_not_format_strings() {
    let hints = ["names are not format strings", "dynamic: format!"];
    for macro_call in [
        "let _guard = slice!(APP, \"x {name}\");",
        "let _guard = slice!(APP, track: &TRACK, \"x {name}\", name);",
        "let _guard = slice!(category: &APP, \"x {}\");",
        "begin!(APP, \"x {name}\");",
        "instant!(APP, \"x {name}\");",
        "instant!(APP, \"x {name:?}\", key = 1);",
        "state!(APP, &STATE, \"x {name}\");",
        "legacy!(APP, \"x {name}\", |event| event.legacy('b').unscoped_id(7));",
        "spawn(async { async_slice!(APP, \"x {name}\").run(ready(())).await; });",
    ] {
        refused(macro_call, &hints);
    }
    accepted("instant!(APP, dynamic: format!(\"x {name}\")); instant!(APP, dynamic: \"x {name}\");");
    accepted("instant!(APP, \"only { opens\"); instant!(APP, \"} the wrong way {\");");
}

#[test]
fn other_names_lead_to_dynamic_ones() {
    refused("instant!(APP, name);", &["`dynamic: text`", "found `name`"]);
    refused("let _guard = slice!(APP, name.to_string(), key = 1);", &["`dynamic: text`", "found `name.to_string()"]);
    refused("async_slice!(APP, name);", &["expected the name of the slices as a literal", "found `name`"]);
}

#[test]
fn wrong_arguments_are_named() {
    let hints = ["expected `key = value`, `name`, `?name` (by Debug), `%name` (by Display)"];
    refused("instant!(APP, \"x\", 5);", &hints);
    refused("instant!(APP, \"x\", key = 1, &name);", &hints);
    refused("counter!(APP, &COUNTER, 1, 5);", &hints);
    refused("spawn(async { async_slice!(APP, \"x\", name + 1).run(ready(())).await; });", &["found `name + 1`"]);
    refused("instant!(APP, \"x\", track: &TRACK);", &["`track: &track` must come right after the category"]);
    refused("instant!(APP, \"x\", missing);", &["cannot find value `missing`"]);
}
