use std::collections::BTreeSet;
use std::process::Command;

use crate::abi_version::AbiVersion;
use crate::build::{compile, file_in_tmp};
use crate::symbols_are_those_of_the_contract::expected;

/// `layout.h` asserts the same layouts as `src/abi/layout.rs`.
#[test]
fn in_c() {
    for version in AbiVersion::ALL {
        for standard in ["-std=c11", "-std=c17"] {
            compile("gcc", version, "header.c", &file_in_tmp("header_c.o"), &[standard, "-Wpedantic", "-c"]);
        }
    }
}

#[test]
fn in_cxx() {
    for version in AbiVersion::ALL {
        for standard in ["-std=c++11", "-std=c++17", "-std=c++20"] {
            compile("g++", version, "header.cc", &file_in_tmp("header_cc.o"), &[standard, "-Wpedantic", "-c"]);
        }
    }
}

/// Returns the names that the header of a version declares.
fn declared(version: AbiVersion) -> BTreeSet<String> {
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/include/perfetto_c.h");
    let output = Command::new("gcc")
        .args(["-E", "-P", "-std=c11"])
        .args(version.options())
        .arg(header)
        .output()
        .expect("gcc runs");
    let text = String::from_utf8(output.stdout).expect("text").replace("_Atomic(_Bool)", "_Bool");
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let last_name = |text: &str| text.rsplit(|c| !is_name(c)).find(|name| !name.is_empty()).map(str::to_owned);
    let declarations = text.split(';').filter(|line| !line.contains("typedef"));
    declarations
        .filter_map(|line| if line.contains("extern") { last_name(line) } else { last_name(line.split_once('(')?.0) })
        .filter(|name| name.to_ascii_lowercase().starts_with("perfetto"))
        .collect()
}

#[test]
fn the_header_declares_all_symbols_and_no_others() {
    for version in AbiVersion::ALL {
        assert_eq!(declared(version), expected(version).into_keys().collect::<BTreeSet<_>>());
    }
}
