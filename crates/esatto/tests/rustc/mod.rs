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

/// Returns the newest build of the library that has the default features.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("has a path");
    let files = std::fs::read_dir(test.parent().expect("is in a folder")).expect("is a folder");
    let is_library = |name: &str| name.starts_with("libesatto-") && name.ends_with(".rlib");
    let built = files.filter_map(Result::ok).filter(|file| is_library(&file.file_name().to_string_lossy()));
    let mut built: Vec<_> = built.collect();
    built.sort_by_key(|file| std::cmp::Reverse(file.metadata().and_then(|data| data.modified()).ok()));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let probe = folder.join(format!("probe_{}.rs", std::process::id()));
    std::fs::write(&probe, "use esatto::{TrackSliceGuard, trace, trace_to_file};").expect("writes");
    let has_features = |library: &PathBuf| {
        compile_with(library, &probe, &["--crate-type", "lib", "--emit", "metadata"]).status.success()
    };
    let library = built.iter().map(std::fs::DirEntry::path).find(has_features);
    std::fs::remove_file(&probe).expect("was written");
    library.expect("the library was built")
}
