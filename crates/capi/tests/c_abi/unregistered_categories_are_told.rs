//! Trace points whose category is not registered: one line each on stderr, and no other difference
//! to a category that nothing records.

use std::path::Path;
use std::process::Command;

use esatto_trace::Summary;

use crate::abi_version::{AbiVersion, succeed};
use crate::build::{compile, file_in_tmp, program};

fn line(name: &str) -> String {
    format!(
        "esatto: the category \"{name}\" is not registered here, so its events are not recorded: call ESATTO_REGISTER (C) \
         or esatto::register_categories (C++) before, in each shared object that has a copy of it"
    )
}

/// Runs a program, and returns what it says, and how many slices and instants it records by name.
fn run(program: &Path, trace: &str) -> (Vec<String>, Vec<(String, u64)>) {
    let trace = file_in_tmp(trace);
    let output = succeed(Command::new(program).arg(&trace));
    let said = String::from_utf8(output.stderr).expect("text").lines().map(str::to_owned).collect();
    let summary = Summary::read(std::fs::File::open(trace).expect("a trace"));
    let mut slices: Vec<_> = summary
        .slices
        .by_name
        .iter()
        .map(|of_name| (of_name.name.clone().unwrap_or_default(), of_name.count))
        .collect();
    slices.sort();
    (said, slices)
}

#[test]
fn in_c() {
    for version in AbiVersion::ALL {
        let program = program(version, "unregistered.c", &[]);
        let (said, slices) = run(&program, &format!("unregistered-{version:?}.pftrace"));
        let [forgotten, late, many] = ["forgotten", "late", "one of many"].map(line);
        let mut expected = vec!["session".to_owned(), forgotten, late, "many".to_owned()];
        // There are places for eight.
        expected.extend(vec![many; 6]);
        expected.push("end".to_owned());
        assert_eq!(said, expected);
        assert_eq!(slices, [("late".to_owned(), 1), ("slice".to_owned(), 5)]);
    }
}

#[test]
fn in_a_library_with_its_own_copy() {
    let (library, program) = (file_in_tmp("libhidden.so"), file_in_tmp("hidden_program"));
    let options = ["-std=c++17", "-fvisibility=hidden", "-lperfetto_c"];
    let shared = [&options[..], &["-shared", "-fPIC"]].concat();
    compile("g++", AbiVersion::V58, "hidden_library.cc", &library, &shared);
    let library = library.to_str().expect("text");
    compile("g++", AbiVersion::V58, "hidden_program.cc", &program, &[&options[..], &[library]].concat());
    let (said, slices) = run(&program, "hidden.pftrace");
    assert_eq!(said, [line("shared")]);
    assert_eq!(slices, [("work of library".to_owned(), 1), ("work of program".to_owned(), 1)]);
}
