//! The documentation keeps its promises: the programs in it record what they show, items name the
//! feature that they need, and the words of other libraries find an item.

#![allow(missing_docs, reason = "tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

use esatto_trace::Trace;

mod rustc;

/// Compiles a program exactly as it is printed, and runs it in an empty folder. Returns the trace
/// that it writes into `app.pftrace`.
fn trace_of(name: &str, program: &str) -> Trace {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("makes a folder");
    fs::write(folder.join("main.rs"), program).expect("writes");
    let compiled = rustc::compile(&folder.join("main.rs"), &["-o", "program"]);
    assert!(compiled.status.success(), "{program}\n{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(folder.join("program")).current_dir(&folder).output().expect("runs");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let trace = Trace::read(&fs::read(folder.join("app.pftrace")).expect("the program wrote a file")[..]);
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);
    trace
}

/// Returns the Rust programs with a `main` in a page, without those that need the RPC library: they
/// do not trace by themselves.
#[track_caller]
fn programs(page: &str) -> Vec<String> {
    let mut blocks = page.split("```").skip(1).step_by(2);
    let mut programs = Vec::new();
    while let Some((language, code)) = blocks.next().and_then(|block| block.split_once('\n')) {
        let is_rust = language.is_empty() || language.starts_with("rust") || language == "no_run";
        if is_rust && code.contains("fn main()") && !code.contains("esatto_ipc") {
            assert!(!code.lines().any(|line| line.starts_with("# ")), "hides a line: {code}");
            programs.push(code.to_owned());
        }
    }
    programs
}

fn names(trace: &Trace) -> Vec<&str> {
    trace.events.iter().filter_map(|event| event.name.as_deref()).collect()
}

#[test]
fn the_program_of_the_front_page_records_what_it_shows() {
    let source = include_str!("../src/lib.rs");
    let front_page: Vec<&str> = source
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    let programs = programs(&front_page.join("\n"));
    assert_eq!(programs.len(), 1);
    let trace = trace_of("front_page", &programs[0]);
    let slices: Vec<_> = trace.slices.iter().map(|slice| (slice.name.as_deref(), slice.depth)).collect();
    assert_eq!(slices, [(Some("frame"), 0), (Some("draw"), 1), (Some("vsync"), 1)].repeat(3));
}

#[test]
fn the_programs_of_the_macros_record_something() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (file, expected) in
        [("src/macros/mod.rs", &["slice", "instant", "counter", "state"][..]), ("../macros/src/lib.rs", &["trace"])]
    {
        let source = fs::read_to_string(root.join(file)).expect("is text");
        let documentation: Vec<&str> = source.lines().filter_map(|line| line.strip_prefix("///")).collect();
        let documentation = documentation.iter().map(|line| line.strip_prefix(' ').unwrap_or(line));
        let programs = programs(&documentation.collect::<Vec<_>>().join("\n"));
        assert_eq!(programs.len(), expected.len(), "{file}");
        for (program, item) in programs.iter().zip(expected) {
            assert!(program.contains(item));
            assert!(!trace_of(&format!("macro_{item}"), program).events.is_empty(), "{item}");
        }
    }
}

#[test]
fn the_programs_of_the_guide_record_something() {
    let which_way = programs(include_str!("../docs/which-way.md"));
    assert_eq!(which_way.len(), 3);
    let file = trace_of("guide_file", &which_way[0]);
    assert_eq!(names(&file), ["read", "done", "read", "done"]);
    let part = trace_of("guide_part", &which_way[2]);
    assert_eq!(names(&part), ["the interesting part"]);
    let mistakes = programs(include_str!("../docs/common-mistakes.md"));
    assert_eq!(mistakes.len(), 1);
    assert_eq!(names(&trace_of("guide_mistakes", &mistakes[0])), ["everything"]);
}

/// Returns the source files of the crate, and of its macros.
fn sources() -> Vec<String> {
    fn read(folder: &Path, texts: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("is a folder") {
            let path = entry.expect("is there").path();
            if path.is_dir() {
                read(&path, texts);
            } else {
                texts.push(fs::read_to_string(path).expect("is text"));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = Vec::new();
    read(&root.join("src"), &mut texts);
    read(&root.join("../macros/src"), &mut texts);
    texts
}

/// Returns the first paragraphs of the documentation of all items of this name.
fn summaries(sources: &[String], name: &str) -> Vec<String> {
    let starts = [
        format!("pub fn {name}("),
        format!("pub struct {name} {{"),
        format!("#[proc_macro_derive({name},"),
        // A variant.
        format!("{name},"),
    ];
    let mut found = Vec::new();
    for source in sources {
        let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
        for (at, _) in lines.iter().enumerate().filter(|(_, line)| starts.iter().any(|start| line.starts_with(start))) {
            let above = lines[..at].iter().rev().skip_while(|line| line.starts_with("#["));
            let mut docs: Vec<&str> = above.map_while(|line| line.strip_prefix("///")).collect();
            docs.reverse();
            found.push(docs.split(|line| line.is_empty()).next().unwrap_or_default().concat());
        }
    }
    found
}

#[test]
fn items_name_the_feature_that_they_need() {
    let sources = sources();
    let mut found = Vec::new();
    for source in &sources {
        let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
        for (at, line) in lines.iter().enumerate() {
            let feature = line.strip_prefix("#[cfg(feature = \"").and_then(|rest| rest.strip_suffix("\")]"));
            let item = lines[at + 1..].iter().find(|line| !line.starts_with("#["));
            let (Some(feature), Some(item)) = (feature, item) else { continue };
            let function = item.strip_prefix("pub fn ").and_then(|rest| rest.split('(').next());
            let exported = item.strip_prefix("pub use ").and_then(|rest| rest.split_once('{'));
            let exported = exported.map_or("", |(_, names)| names.trim_end_matches("};"));
            let variant = item
                .strip_suffix(',')
                .filter(|name| name.starts_with(char::is_uppercase) && name.chars().all(char::is_alphanumeric));
            let names = exported.split(", ").filter(|name| !name.is_empty()).chain(function).chain(variant);
            found.extend(names.map(|name| (feature, name)));
        }
    }
    for name in ["trace", "TraceArgs", "trace_to_file", "in_process", "InProcess"] {
        assert!(found.iter().any(|(_, found)| *found == name), "{name} is not in {found:?}");
    }
    let manifest = include_str!("../Cargo.toml");
    let default = manifest.lines().find(|line| line.starts_with("default = ")).expect("has default features");
    for (feature, name) in found {
        assert!(default.contains(&format!("\"{feature}\"")), "plain `cargo doc` leaves out {name}");
        let summaries = summaries(&sources, name);
        let label = format!("(feature `{feature}`)");
        assert!(summaries.iter().any(|summary| summary.contains(&label)), "no {label} for {name}: {summaries:?}");
    }
}

#[test]
fn words_of_other_libraries_find_an_item() {
    let sources = sources().concat();
    for word in [
        "span",
        "scope",
        "zone",
        "measure",
        "profile",
        "timer",
        "event",
        "mark",
        "message",
        "gauge",
        "histogram",
        "metric",
        "plot",
        "arrow",
        "link",
        "instrument",
        "field",
        "annotation",
        "target",
        "timeline",
        "future",
        "record",
        "init",
        "panic",
        "TRACE_EVENT",
        "TRACE_COUNTER",
    ] {
        assert!(sources.contains(&format!("alias = \"{word}\"")), "nothing is found by {word}");
    }
}
