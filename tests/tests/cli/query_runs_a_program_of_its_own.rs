//! `esatto query`, `esatto export` and `esatto lake` run `esatto-query`, which is installed apart.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use esatto_tests::{Harness, esatto_bin, wait_until};

fn write_program(harness: &Harness, folder: &str, text: &str) {
    let folder = harness.path(folder);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let path = std::path::Path::new(&folder).join("esatto-query");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a program can be written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it can be made executable");
}

fn query(harness: &Harness, program: &std::path::Path, args: &[&str]) -> Output {
    run(harness, program, &[&["query"], args].concat())
}

fn run(harness: &Harness, program: &std::path::Path, args: &[&str]) -> Output {
    let mut command: Command = harness.command(program);
    command.args(args).env("PATH", harness.path("bin"));
    // A child of another test may still have the copy open for writing, until its `exec`.
    wait_until("the copy can run", || match command.output() {
        Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => None,
        output => Some(output.expect("esatto runs")),
    })
}

/// A copy of `esatto` in a folder of its own, without a neighbour.
fn copy_of_esatto(harness: &Harness) -> std::path::PathBuf {
    let folder = harness.path("own");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let copy = std::path::Path::new(&folder).join("esatto");
    std::fs::copy(esatto_bin(), &copy).expect("esatto can be copied");
    copy
}

#[test]
fn the_program_of_path_gets_all_arguments_and_its_status_counts() {
    let harness = Harness::new();
    let esatto = copy_of_esatto(&harness);
    write_program(&harness, "bin", "for arg; do echo \"[$arg]\"; done; exit 3");
    let output = query(&harness, &esatto, &["a trace", "--help", "select 1", "-p", "x=1"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[a trace]\n[--help]\n[select 1]\n[-p]\n[x=1]\n");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn export_and_lake_are_commands_of_the_same_program() {
    let harness = Harness::new();
    let esatto = copy_of_esatto(&harness);
    write_program(&harness, "bin", "for arg; do echo \"[$arg]\"; done; exit 1");
    let output = run(&harness, &esatto, &["export", "a trace", "--to", "lake"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[export]\n[a trace]\n[--to]\n[lake]\n");
    assert_eq!(output.status.code(), Some(1));
    let output = run(&harness, &esatto, &["lake", "check", "--help"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[lake]\n[check]\n[--help]\n");
}

#[test]
fn the_program_beside_esatto_comes_first() {
    let harness = Harness::new();
    let esatto = copy_of_esatto(&harness);
    write_program(&harness, "bin", "echo PATH");
    write_program(&harness, "own", "echo neighbour");
    assert_eq!(query(&harness, &esatto, &["t"]).stdout, b"neighbour\n");
}

#[test]
fn a_missing_program_is_told() {
    let harness = Harness::new();
    let output = query(&harness, &copy_of_esatto(&harness), &["t", "select 1"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("esatto: cannot answer queries: esatto-query is neither beside esatto"), "{stderr}");
    assert!(stderr.contains("cargo install --path query/query"), "{stderr}");
    let output = run(&harness, &copy_of_esatto(&harness), &["export", "t", "--to", "lake"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("esatto: cannot export traces: esatto-query is neither beside esatto"), "{stderr}");
}
