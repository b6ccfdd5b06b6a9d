//! The flavours of the library, built.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// Whose ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    V58,
    V59,
}

impl Flavour {
    /// Its name, in this project.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::V58 => "v58",
            Self::V59 => "v59",
        }
    }

    /// A folder with `libperfetto_c.so`, as an installation would have it.
    pub(crate) fn folder(self) -> PathBuf {
        let (v58, v59) = &*FOLDERS;
        if self == Self::V58 { v58.clone() } else { v59.clone() }
    }
}

/// Cargo builds the libraries for no test, as tests cannot use them as crates: so the first that asks does.
static FOLDERS: LazyLock<(PathBuf, PathBuf)> = LazyLock::new(|| {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "-p", "esatto-capi", "-p", "esatto-capi-v59", "--target-dir"]).arg(target);
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    cargo.args((profile == "release").then_some("--release"));
    succeed(&mut cargo);
    let link = |flavour: Flavour, file: &str| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lib-{}", flavour.name()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (link, library) = (folder.join("libperfetto_c.so"), target.join(profile).join(file));
        if std::fs::read_link(&link).ok().as_deref() != Some(&library) {
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(library, &link).expect("a link to the library");
        }
        folder
    };
    (link(Flavour::V58, "libperfetto_c.so"), link(Flavour::V59, "libperfetto_c_v59.so"))
});

/// Runs a command to its end, which must be a good one.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{error}", output.status);
    output
}
