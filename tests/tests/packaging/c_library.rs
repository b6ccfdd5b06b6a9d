//! The C library, installed once for all tests, and programs that are built on it.

use crate::unit::{output, tool};
use esatto_tests::Skip;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// `cargo xtask install` with these arguments.
pub(crate) fn install(args: &[&str]) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--locked", "-p", "xtask", "--", "install"]).args(args);
    cargo.current_dir(root()).env("CARGO_TARGET_DIR", target());
    cargo
}

/// The folder that stands for the root of the system.
pub(crate) fn stage() -> &'static Path {
    static STAGE: LazyLock<PathBuf> = LazyLock::new(|| {
        let stage = file("c-library");
        let _ = std::fs::remove_dir_all(&stage);
        let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
        let folder = stage.to_str().expect("text");
        output(&mut install(&["c-library", "--destdir", folder, "--prefix", "/opt/perfetto", "--profile", profile]));
        stage
    });
    &STAGE
}

/// Where it is, which it does not know: it was told `/opt/perfetto`.
pub(crate) fn prefix() -> PathBuf {
    stage().join("opt/perfetto")
}

/// Builds programs of the examples by their Makefile, into a folder.
pub(crate) fn make(folder: &str, programs: &[&str], variables: &[&str]) -> Result<PathBuf, Skip> {
    let mut make = tool("make", "cmake")?;
    tool("pkg-config", "cmake")?;
    let out = file(folder);
    let warnings = "-g -O1 -Wall -Wextra -Wpedantic -Werror";
    make.arg("-B").arg(format!("OUT={}", out.display())).args(variables);
    make.args([format!("CFLAGS={warnings}"), format!("CXXFLAGS={warnings}")]);
    make.args(programs.iter().map(|program| out.join(program)));
    make.current_dir(examples()).env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    make.env("CC", "gcc").env("CXX", "g++");
    output(&mut make);
    Ok(out)
}

/// Builds programs of the examples by CMake, with a target of the package, into a folder.
pub(crate) fn cmake(folder: &str, programs: &[&str], target: &str) -> Result<PathBuf, Skip> {
    let mut configure = tool("cmake", "cmake")?;
    let out = file(folder);
    let _ = std::fs::remove_dir_all(&out);
    configure.arg("-S").arg(examples()).arg("-B").arg(&out).arg(format!("-DPERFETTO_C={target}"));
    output(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display())));
    let mut build = tool("cmake", "cmake")?;
    output(build.arg("--build").arg(&out).arg("--target").args(programs));
    Ok(out)
}

/// The file names that a program asks the dynamic linker for.
pub(crate) fn needed(program: &Path) -> Vec<String> {
    let listing = output(Command::new("readelf").args(["-W", "-d"]).arg(program));
    let names = listing.lines().filter(|line| line.contains("(NEEDED)"));
    names.filter_map(|line| Some(line.split_once('[')?.1.strip_suffix(']')?.to_owned())).collect()
}

/// A file of this test's.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

pub(crate) fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder")
}

fn examples() -> PathBuf {
    root().join("examples/c-and-cxx")
}
