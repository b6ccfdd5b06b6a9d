use std::collections::BTreeSet;
use std::process::Command;

use crate::abi_version::{AbiVersion, succeed};
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

/// Perfetto's own header for programs in C, of which a program has one copy, is `perfetto_c.h`.
#[test]
fn beside_perfettos_header_in_either_order() {
    let (theirs, ours) = (file_in_tmp("perfettos-header"), concat!(env!("CARGO_MANIFEST_DIR"), "/include"));
    std::fs::create_dir_all(&theirs).expect("the folder is ours");
    std::fs::write(theirs.join("perfetto_c.h"), "#define PERFETTOS_HEADER 1\n").expect("the folder is ours");
    let source = file_in_tmp("both_headers.c");
    let program = "#include <perfetto_c.h>\n#include <esatto/trace.h>\n\
                   int main(void) { esatto_init(ESATTO_SYSTEM); return PERFETTOS_HEADER; }\n";
    std::fs::write(&source, program).expect("the folder is ours");
    let theirs = theirs.to_str().expect("text");
    for folders in [[theirs, ours], [ours, theirs]] {
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-I", folders[0], "-I", folders[1]]);
        succeed(gcc.arg(&source));
    }
}

/// A file with both would declare everything twice.
#[test]
fn a_file_with_perfettos_header_and_ours_is_refused_with_a_reason() {
    let source = file_in_tmp("both_declarations.c");
    // As Perfetto's header does.
    let program = "#define PERFETTO_ATOMIC(TYPE) _Atomic(TYPE)\n#include <esatto/trace.h>\n";
    std::fs::write(&source, program).expect("the folder is ours");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c11", "-fsyntax-only", "-I", concat!(env!("CARGO_MANIFEST_DIR"), "/include")]);
    let output = gcc.arg(&source).output().expect("gcc runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("include Perfetto's headers or Esatto's, not both"), "{said}");
}

/// Returns the names that the header of a version declares.
fn declared(version: AbiVersion) -> BTreeSet<String> {
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/include/esatto/abi.h");
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
