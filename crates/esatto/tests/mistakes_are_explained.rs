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
fn missing_names_and_values_are_named() {
    let hints = ["expected a category and a name: `NET, \"name\"`", "dynamic: text", "1 previous error"];
    for macro_call in
        ["let _guard = slice!(APP);", "instant!(APP);", "begin!(APP,);", "instant!();", "async_slice!(APP);"]
    {
        refused(macro_call, &hints);
    }
    let hints = ["expected a category, a counter and a value: `counter!(NET, &OPEN, 1)`", "1 previous error"];
    for macro_call in ["counter!(APP);", "counter!(APP, &COUNTER);", "counter!(category: &APP, &COUNTER);"] {
        refused(macro_call, &hints);
    }
    for macro_call in ["let _guard = slice!();", "begin!();", "async_slice!();"] {
        refused(macro_call, &["expected a category and a name: `NET, \"name\"`", "1 previous error"]);
    }
    refused("end!();", &["expected a category: `end!(NET)`", "1 previous error"]);
    refused("counter!();", &["expected a category, a counter and a value", "1 previous error"]);
    refused("state!();", &["expected a category and a track of states", "1 previous error"]);
    refused("state!(APP);", &["expected a category and a track of states: `state!(NET, &LINK, \"up\")`"]);
}

#[test]
fn tracks_flows_and_texts_are_not_confused_with_literals() {
    let hints =
        ["expected a counter, found the literal `\"open\"`: declare one with", "CounterTrack::new", "1 previous error"];
    for macro_call in [
        "counter!(APP, \"open\", 3);",
        "counter!(category: &APP, \"open\", 3, name);",
        "instant!(APP, \"x\", counter: \"open\" => 3);",
    ] {
        refused(macro_call, &hints);
    }
    refused("state!(APP, \"link\", \"up\");", &["expected a track of states, found the literal `\"link\"`", "&LINK"]);
    for macro_call in ["instant!(APP, \"x\", flow: 3);", "end!(APP, end_flow: name);"] {
        refused(macro_call, &["expected a `Flow`, found `{integer}`", "`Flow::process(id)`"]);
    }
    for macro_call in ["instant!(APP, dynamic: 5);", "let _guard = slice!(APP, dynamic: name);"] {
        refused(
            macro_call,
            &["expected a text as the name of an event, found `{integer}`", "dynamic: format!(\"step {id}\")"],
        );
    }
    accepted("let text: Box<str> = \"a\".into(); instant!(APP, dynamic: text); instant!(APP, dynamic: *\"b\", name);");
    for macro_call in ["instant!(APP, \"x\", flow = Flow::process(3));", "end!(APP, end_flow = Flow::global(3));"] {
        refused(macro_call, &["`esatto::Flow` cannot be attached to a trace event", "`flow: flow`, `end_flow: flow`"]);
    }
    accepted("instant!(APP, \"x\", flow: Flow::process(3), end_flow: Flow::global(4));");
}

#[test]
fn wrong_categories_are_named() {
    let hints = ["`static NET = \"net\";`", "tags: [\"slow\"];`", "`static BOTH = [NET, ROWS];`", "found `static"];
    for declaration in [
        "static B = \"b\", tag: \"slow\";",
        "static B = \"b\", tags: \"slow\";",
        "static B = \"b\"",
        "static B: Category = \"b\";",
    ] {
        refused(&format!("mod inside {{ esatto::categories! {{ {declaration} }} }}"), &hints);
    }
    let of = |name: &str| format!("mod inside {{ esatto::categories! {{ static B = {name}; }} }}");
    refused(&of("b"), &["expected the name of a category as a literal", "found `b`"]);
    refused(&of("\"\""), &["the name of a category is empty: no pattern could name it"]);
    refused(&of("\"net*\""), &["the name of a category has a `*`, which is a wildcard in patterns"]);
    refused(&of("\"-b\""), &["the name of a category begins with `-`, which excludes a category in patterns"]);
    refused(&of("\"tag:b\""), &["the name of a category begins with `tag:`, which names a tag in patterns"]);
    for name in ["\" b\"", "\"b \"", "\"b\\n\""] {
        refused(&of(name), &["begins or ends with a space, which lists of patterns ignore"]);
    }
    refused(&of("\"a,b\""), &["the name of a category has a `,`, which separates patterns"]);
    accepted(&of("\"a.b-c/d e\""));
}

#[test]
fn two_lists_of_categories_in_a_module_are_refused() {
    refused(
        "mod inside { esatto::categories! { static A = \"a\"; } esatto::categories! { static B = \"b\"; } }",
        &["`ALL_CATEGORIES_OF_A_MODULE_BELONG_INTO_ONE_CATEGORIES_MACRO` is defined multiple times"],
    );
    accepted("mod inside { esatto::categories! { static A = \"a\"; } pub mod deeper { esatto::categories! {} } }");
}

#[test]
fn many_arguments_are_accepted() {
    let arguments = |count| (0..count).map(|number| format!(", a{number} = {number}")).collect::<String>();
    accepted(&format!("instant!(APP, \"x\"{});", arguments(110)));
    refused(&format!("instant!(APP, \"x\"{});", arguments(200)), &["recursion limit", "#![recursion_limit = \"256\"]"]);
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

#[cfg(feature = "macros")]
#[test]
fn errors_are_recorded_of_results_only() {
    const NEEDS: &str = "`err` of `#[esatto::trace]` needs a function that returns a `Result`, and this one returns";
    for (function, ty) in [
        ("#[esatto::trace(APP, err)] fn work() -> u32 { 1 }", "`u32`"),
        ("#[esatto::trace(APP, ret, err)] fn work() -> Option<u32> { None }", "`Option<u32>`"),
        ("#[esatto::trace(APP, err(debug))] async fn work() {}", "`()`"),
    ] {
        refused(function, &[&format!("{NEEDS} {ty}"), "there is no error to record: remove `err`", "1 previous error"]);
    }
    accepted("#[esatto::trace(APP, ret, err)] fn work() -> std::fmt::Result { Ok(()) }");
}
