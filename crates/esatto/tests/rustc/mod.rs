//! Compiler for small programs that use the library.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// Compiles a program, with the library that was built for this test. Writes into the folder of the
/// program.
pub(crate) fn compile(source: &Path, args: &[&str]) -> Output {
    static LIBRARY: LazyLock<PathBuf> = LazyLock::new(library);
    compile_with(&LIBRARY, source, args)
}

fn compile_with(library: &Path, source: &Path, args: &[&str]) -> Output {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.current_dir(source.parent().expect("is in a folder"));
    rustc.args(["--edition", "2024", "--cap-lints", "allow"]).args(args);
    rustc.arg("--extern").arg(format!("esatto={}", library.display()));
    rustc.arg("-L").arg(format!("dependency={}", library.parent().expect("is in a folder").display()));
    rustc.arg(source).output().expect("rustc runs")
}

/// Programs that tell which features the library has: all that the test has, and `in-process`.
const HAS_FEATURES: &str = if cfg!(feature = "macros") { "use esatto::trace;" } else { "use esatto::TrackSliceGuard;" };
const IN_PROCESS: &str = "use esatto::trace_to_file;";

/// Returns the newest build of the library that has the features of this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("has a path");
    let files = std::fs::read_dir(test.parent().expect("is in a folder")).expect("is a folder");
    let is_library = |name: &str| name.starts_with("libesatto-") && name.ends_with(".rlib");
    let built = files.filter_map(Result::ok).filter(|file| is_library(&file.file_name().to_string_lossy()));
    let mut built: Vec<_> = built.collect();
    built.sort_by_key(|file| std::cmp::Reverse(file.metadata().and_then(|data| data.modified()).ok()));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = folder.join(format!("probe_{}.rs", std::process::id()));
    let compiles = |library: &PathBuf, probe: &str| {
        std::fs::write(&source, probe).expect("writes");
        compile_with(library, &source, &["--crate-type", "lib", "--emit", "metadata"]).status.success()
    };
    let fits = |library: &PathBuf| {
        compiles(library, HAS_FEATURES) && compiles(library, IN_PROCESS) == cfg!(feature = "in-process")
    };
    let library = built.iter().map(std::fs::DirEntry::path).find(fits);
    std::fs::remove_file(&source).expect("was written");
    library.expect("the library was built")
}
