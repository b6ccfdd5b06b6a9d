//! Compiles the programs of `tests/c` for both versions of the library.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

use crate::abi_version::{AbiVersion, succeed};

impl AbiVersion {
    pub(crate) const ALL: [Self; 2] = [Self::V58, Self::V59];

    pub(crate) fn library(self) -> PathBuf {
        self.folder().join("libperfetto_c.so")
    }

    /// Returns the options that select the header.
    pub(crate) fn options(self) -> &'static [&'static str] {
        if self == Self::V58 { &[] } else { &["-DPERFETTO_C_V59"] }
    }
}

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the path for a compiled file.
pub(crate) fn file_in_tmp(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Compiles a file of `tests/c` with all warnings.
pub(crate) fn compile(compiler: &str, version: AbiVersion, source: &str, output: &Path, options: &[&str]) {
    let folder = version.folder();
    let mut command = Command::new(compiler);
    command.arg("-I").arg(package().join("include")).args(["-Wall", "-Wextra", "-Werror", "-g"]);
    command.arg(package().join("tests/c").join(source)).arg("-o").arg(output).args(version.options()).args(options);
    // As RPATH, which precedes Cargo's LD_LIBRARY_PATH, because that has a library of the same
    // name.
    command.arg("-L").arg(&folder).arg(format!("-Wl,--disable-new-dtags,-rpath,{}", folder.display()));
    succeed(&mut command);
}

/// Compiles a program in C, named after its source, if no test has done so.
pub(crate) fn program(version: AbiVersion, source: &str, options: &[&str]) -> PathBuf {
    static PROGRAMS: Mutex<BTreeMap<PathBuf, Arc<OnceLock<()>>>> = Mutex::new(BTreeMap::new());
    let variant: String = options.iter().flat_map(|option| option.chars()).filter(|c| c.is_alphanumeric()).collect();
    let output = file_in_tmp(&format!("{}-{version:?}{variant}", source.trim_end_matches(".c")));
    let compiled = PROGRAMS.lock().expect("no panic").entry(output.clone()).or_default().clone();
    compiled.get_or_init(|| {
        let options = [&["-std=gnu11", "-pthread", "-lperfetto_c"], options].concat();
        compile("gcc", version, source, &output, &options);
    });
    output
}
