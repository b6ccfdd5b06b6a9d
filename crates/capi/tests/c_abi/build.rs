//! Compiling the programs of `tests/c` for either flavour of the library.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

/// Whose ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    V58,
    V59,
}

impl Flavour {
    pub(crate) const ALL: [Self; 2] = [Self::V58, Self::V59];

    /// A folder with `libperfetto_c.so`, as an installation would have it.
    pub(crate) fn folder(self) -> PathBuf {
        let (v58, v59) = &*FOLDERS;
        if self == Self::V58 { v58.clone() } else { v59.clone() }
    }

    pub(crate) fn library(self) -> PathBuf {
        self.folder().join("libperfetto_c.so")
    }

    pub(crate) fn options(self) -> &'static [&'static str] {
        if self == Self::V58 { &[] } else { &["-DPERFETTO_C_V59"] }
    }
}

/// Cargo builds the libraries for no test, as tests cannot use them as crates: so the first that asks does.
static FOLDERS: LazyLock<(PathBuf, PathBuf)> = LazyLock::new(|| {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "-p", "esatto-capi", "-p", "esatto-capi-v59", "--target-dir"]).arg(target);
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    cargo.args((profile == "release").then_some("--release"));
    succeed(cargo.current_dir(package()));
    let link = |flavour: &str, file: &str| {
        let folder = file_in_tmp(flavour);
        std::fs::create_dir_all(&folder).expect("a folder");
        let (link, library) = (folder.join("libperfetto_c.so"), target.join(profile).join(file));
        if std::fs::read_link(&link).ok().as_deref() != Some(&library) {
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(library, &link).expect("a link to the library");
        }
        folder
    };
    (link("v58", "libperfetto_c.so"), link("v59", "libperfetto_c_v59.so"))
});

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where what is compiled goes.
pub(crate) fn file_in_tmp(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Compiles a file of `tests/c` with all warnings.
pub(crate) fn compile(compiler: &str, flavour: Flavour, source: &str, output: &Path, options: &[&str]) {
    let folder = flavour.folder();
    let mut command = Command::new(compiler);
    command.arg("-I").arg(package().join("include")).args(["-Wall", "-Wextra", "-Werror", "-g"]);
    command.arg(package().join("tests/c").join(source)).arg("-o").arg(output).args(flavour.options()).args(options);
    command.arg("-L").arg(&folder).arg(format!("-Wl,-rpath,{}", folder.display()));
    succeed(&mut command);
}

/// Compiles a program in C, named after its source: once, whoever asks.
pub(crate) fn program(flavour: Flavour, source: &str, options: &[&str]) -> PathBuf {
    static PROGRAMS: Mutex<BTreeMap<PathBuf, Arc<OnceLock<()>>>> = Mutex::new(BTreeMap::new());
    let variant: String = options.iter().flat_map(|option| option.chars()).filter(|c| c.is_alphanumeric()).collect();
    let output = file_in_tmp(&format!("{}-{flavour:?}{variant}", source.trim_end_matches(".c")));
    let compiled = PROGRAMS.lock().expect("no panic").entry(output.clone()).or_default().clone();
    compiled.get_or_init(|| {
        let options = [&["-std=gnu11", "-pthread", "-lperfetto_c"], options].concat();
        compile("gcc", flavour, source, &output, &options);
    });
    output
}

pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{error}", output.status);
    output
}
