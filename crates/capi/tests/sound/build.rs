//! Compiles the programs in `c`, and runs them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Returns true if the library and the programs are compiled for AddressSanitizer, as for `cargo
/// xtask soak asan`.
fn is_sanitized() -> bool {
    std::env::var_os("ESATTO_CAPI_ASAN").is_some()
}

/// Returns the folder of the library. Cargo does not build it for tests, which cannot use it as a
/// crate. So the first test builds it.
pub(crate) fn library_folder() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--locked", "-p", "esatto-capi", "-p", "esatto-capi-v59"]);
        if is_sanitized() {
            const HOST: &str = "x86_64-unknown-linux-gnu";
            let target = target.join("asan");
            cargo.args(["--release", "--target", HOST, "--target-dir"]).arg(&target);
            cargo.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address -Cdebug-assertions");
            succeed(&mut cargo);
            return target.join(HOST).join("release");
        }
        cargo.arg("--target-dir").arg(target);
        let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
        cargo.args((profile == "release").then_some("--release"));
        succeed(&mut cargo);
        target.join(profile)
    });
    &FOLDER
}

/// Compiles a program of one file, with all warnings, and returns its path. Compiles it once: two
/// tests may run it, and a file that is written cannot run.
pub(crate) fn program(name: &str, options: &[&str]) -> PathBuf {
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sound_{}", name.replace('.', "_")));
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = library_folder();
    static COMPILED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if compiled.contains(&output) {
        return output;
    }
    let mut gcc = Command::new(if name.ends_with(".cc") { "g++" } else { "gcc" });
    gcc.arg(if name.ends_with(".cc") { "-std=c++17" } else { "-std=gnu11" });
    gcc.args(["-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g", "-pthread"]);
    gcc.args(is_sanitized().then_some("-fsanitize=address"));
    gcc.arg("-I").arg(package.join("include"));
    gcc.arg(package.join("tests/sound/c").join(name)).arg("-o").arg(&output);
    gcc.arg("-L").arg(folder).arg(format!("-Wl,-rpath,{}", folder.display())).args(options);
    succeed(&mut gcc);
    compiled.push(output.clone());
    output
}

/// As [`program`], linked with the library.
pub(crate) fn linked(name: &str) -> PathBuf {
    program(name, &["-lperfetto_c"])
}

pub(crate) fn succeed(command: &mut Command) -> Output {
    // The programs do not free the trace that they read, and types of data sources cannot be freed.
    let output =
        command.env("ASAN_OPTIONS", "detect_leaks=0").output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{error}", output.status);
    output
}
