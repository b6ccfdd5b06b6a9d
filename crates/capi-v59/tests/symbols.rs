//! The v59 library exports what v58's does, under the names of v59 (`docs/spec/c-abi.md` §18), and serves a program that is compiled for it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The folder of the library. Cargo builds it for no test, as tests cannot use it as a crate: so the first that asks does.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "-p", env!("CARGO_PKG_NAME"), "--target-dir"]).arg(target);
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    cargo.args((profile == "release").then_some("--release")).current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(cargo.status().expect("Cargo runs").success());
    target.join(profile)
});

/// Names of v59.
fn expected() -> BTreeSet<String> {
    let v58 = include_str!("../../capi/tests/c_abi/symbols.txt").lines().filter(|line| !line.starts_with('#'));
    let names = v58.filter_map(|line| line.split_whitespace().next());
    let renamed = names.map(|name| name.replace("PerfettoStreamWriter", "PerfettoPbMsgWriter"));
    let new = ["PerfettoDsSetSupportsTracingV2", "PerfettoDsOnFlushArgsGetReason"].map(str::to_owned);
    renamed.chain(new).collect()
}

#[test]
fn are_those_of_v59() {
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(FOLDER.join("libperfetto_c_v59.so")).output();
    let output = String::from_utf8(output.expect("nm runs").stdout).expect("text");
    let exported: BTreeSet<String> =
        output.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect();
    assert_eq!(exported, expected());
}

#[test]
fn serve_a_program_that_is_compiled_for_it() {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("v59");
    let mut gcc = Command::new("gcc");
    gcc.args([
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-g",
        "-DPERFETTO_C_V59",
        "-I",
        "../capi/include",
        "tests/c/v59.c",
        "-o",
    ])
    .arg(&program);
    gcc.arg("-L").arg(&*FOLDER).args(["-lperfetto_c_v59"]).arg(format!("-Wl,-rpath,{}", FOLDER.display()));
    assert!(gcc.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("gcc runs").success());
    let output = Command::new(program).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn serve_the_macros_of_c_and_cxx() {
    for (compiler, source, standard) in [("gcc", "macros.c", "-std=c11"), ("g++", "macros.cc", "-std=c++17")] {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(source.replace('.', "_v59_"));
        let mut build = Command::new(compiler);
        build.args([standard, "-DPERFETTO_C_V59", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g"]);
        build.args(["-I", "../capi/include", "-o"]).arg(&program).arg(Path::new("../capi/tests/c").join(source));
        build.arg("-L").arg(&*FOLDER).args(["-lperfetto_c_v59", "-lpthread"]);
        build.arg(format!("-Wl,-rpath,{}", FOLDER.display()));
        assert!(build.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("the compiler runs").success());
        let traces = ["events", "packets"].map(|kind| program.with_extension(kind));
        let output = Command::new(program).args(traces).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
