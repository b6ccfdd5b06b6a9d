use std::collections::BTreeMap;
use std::process::Command;

use crate::build::library_folder;

/// Names of functions, and of data with their sizes.
type Symbols = BTreeMap<String, Option<u64>>;

fn expected() -> Symbols {
    let lines = include_str!("symbols.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| match line.split_once(' ') {
            Some((name, size)) => (name.to_owned(), Some(size.parse().expect("a size"))),
            None => (line.to_owned(), None),
        })
        .collect()
}

fn exported() -> Symbols {
    let library = library_folder().join("libperfetto_c.so");
    let output = Command::new("nm").args(["-D", "--defined-only", "-S"]).arg(library).output().expect("nm runs");
    let output = String::from_utf8(output.stdout).expect("text");
    let symbol = |line: &str| {
        let [_, size, kind, name] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("a symbol without size: {line}")
        };
        let size = u64::from_str_radix(size, 16).expect("a size");
        match kind {
            "T" => (name.to_owned(), None),
            // Not `V` or `u`, and not in read-only memory.
            "B" | "D" => (name.to_owned(), Some(size)),
            _ => panic!("neither function nor data: {line}"),
        }
    };
    output.lines().map(symbol).collect()
}

#[test]
fn all_are_there_with_kind_and_size_and_nothing_else_is() {
    let (expected, exported) = (expected(), exported());
    assert_eq!(expected.len(), 82);
    let missing: Vec<_> = expected.keys().filter(|name| !exported.contains_key(*name)).collect();
    let more: Vec<_> = exported.keys().filter(|name| !expected.contains_key(*name)).collect();
    assert!(missing.is_empty() && more.is_empty(), "missing: {missing:?}; not in the contract: {more:?}");
    assert_eq!(expected, exported);
}

#[test]
fn programs_may_have_copies_of_the_data() {
    let library = library_folder().join("libperfetto_c.so");
    let output = Command::new("readelf").args(["-W", "-d", "--dyn-syms"]).arg(&library).output().expect("readelf runs");
    let output = String::from_utf8(output.stdout).expect("text");
    assert!(!output.contains("SYMBOLIC"), "the library does not see the program's copy");
    for line in output.lines().filter(|line| line.contains(" perfetto_")) {
        assert!(line.contains("OBJECT") && line.contains("GLOBAL") && line.contains("DEFAULT"), "{line}");
    }
    // As the library reaches them: by an address that the dynamic linker fills in.
    let output = Command::new("readelf").args(["-W", "-r"]).arg(library).output().expect("readelf runs");
    let output = String::from_utf8(output.stdout).expect("text");
    for name in ["perfetto_te_any_categories", "perfetto_te_any_categories_enabled", "perfetto_te_process_track_uuid"] {
        let is_it = |line: &str| line.contains("GLOB_DAT") && line.split_whitespace().any(|word| word == name);
        assert!(output.lines().any(is_it), "no such entry for {name}");
    }
}
