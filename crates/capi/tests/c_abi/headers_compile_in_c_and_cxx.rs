use std::collections::BTreeSet;
use std::process::Command;

use crate::build::{compile, file};

const FLAVOURS: [&str; 2] = ["-DPERFETTO_C_V58", "-DPERFETTO_C_V59"];

/// With the layouts of `layout.h`; `abi.rs` asserts the same.
#[test]
fn in_c() {
    for flavour in FLAVOURS {
        for standard in ["-std=c11", "-std=c17"] {
            compile("gcc", "header.c", &file("header_c.o"), &[standard, flavour, "-Wpedantic", "-c"]);
        }
    }
}

#[test]
fn in_cxx() {
    for flavour in FLAVOURS {
        for standard in ["-std=c++11", "-std=c++17", "-std=c++20"] {
            compile("g++", "header.cc", &file("header_cc.o"), &[standard, flavour, "-Wpedantic", "-c"]);
        }
    }
}

/// What the header of a flavour declares, by name.
fn declared(flavour: &str) -> BTreeSet<String> {
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/include/perfetto_c.h");
    let output = Command::new("gcc").args(["-E", "-P", "-std=c11", flavour, header]).output().expect("gcc runs");
    let text = String::from_utf8(output.stdout).expect("text").replace("_Atomic(_Bool)", "_Bool");
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let last_name = |text: &str| text.rsplit(|c| !is_name(c)).find(|name| !name.is_empty()).map(str::to_owned);
    let declarations = text.split(';').filter(|line| !line.contains("typedef"));
    declarations
        .filter_map(|line| if line.contains("extern") { last_name(line) } else { last_name(line.split_once('(')?.0) })
        .filter(|name| name.to_ascii_lowercase().starts_with("perfetto"))
        .collect()
}

/// Names of the contract for v58.
fn contract() -> BTreeSet<String> {
    let lines = include_str!("symbols.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn all_symbols_are_declared_and_nothing_else_is() {
    let v58 = contract();
    assert_eq!(declared("-DPERFETTO_C_V58"), v58);
    let mut v59: BTreeSet<_> =
        v58.iter().map(|name| name.replace("PerfettoStreamWriter", "PerfettoPbMsgWriter")).collect();
    v59.extend(["PerfettoDsSetSupportsTracingV2", "PerfettoDsOnFlushArgsGetReason"].map(str::to_owned));
    assert_eq!(declared("-DPERFETTO_C_V59"), v59);
}
