//! Compiling the programs of `tests/c`, and running them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// The folder of the library. Cargo builds it for no test, as tests cannot use it as a crate: so the first that asks does.
pub(crate) fn library_folder() -> PathBuf {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--locked", "-p", env!("CARGO_PKG_NAME"), "--target-dir"]).arg(target);
        let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
        cargo.args((profile == "release").then_some("--release"));
        succeed(cargo.current_dir(package()));
        target.join(profile)
    });
    FOLDER.clone()
}

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where the files of a test go.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Compiles a file of `tests/c` with all warnings.
pub(crate) fn compile(compiler: &str, source: &str, output: &Path, options: &[&str]) {
    let folder = library_folder();
    let mut command = Command::new(compiler);
    command.arg("-I").arg(package().join("include")).args(["-Wall", "-Wextra", "-Werror", "-g"]);
    command.arg(package().join("tests/c").join(source)).arg("-o").arg(output).args(options);
    command.arg("-L").arg(&folder).arg(format!("-Wl,-rpath,{}", folder.display()));
    succeed(&mut command);
}

/// Compiles a program and runs it.
pub(crate) fn run(source: &str, program: &str, options: &[&str], arguments: &[&Path]) -> Output {
    let output = file(program);
    compile("gcc", source, &output, &[&["-std=gnu11", "-lperfetto_c", "-lpthread"], options].concat());
    succeed(Command::new(output).args(arguments))
}

/// Runs a command, which must end well.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{error}", output.status);
    output
}
