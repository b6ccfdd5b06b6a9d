//! The versions of the library, built for the tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// A version of the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AbiVersion {
    V58,
    V59,
}

impl AbiVersion {
    /// Returns its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::V58 => "v58",
            Self::V59 => "v59",
        }
    }

    /// Returns a folder with `libperfetto_c.so`, as an installation has it.
    pub(crate) fn folder(self) -> PathBuf {
        let (v58, v59) = &*FOLDERS;
        if self == Self::V58 { v58.clone() } else { v59.clone() }
    }
}

/// Folders with the libraries. Cargo does not build them for tests, which cannot use them as
/// crates. So the first test builds them.
static FOLDERS: LazyLock<(PathBuf, PathBuf)> = LazyLock::new(|| {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "-p", "esatto-capi", "-p", "esatto-capi-v59", "--target-dir"]).arg(target);
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    cargo.args((profile == "release").then_some("--release"));
    succeed(&mut cargo);
    let link = |version: AbiVersion, file: &str| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lib-{}", version.name()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (link, library) = (folder.join("libperfetto_c.so"), target.join(profile).join(file));
        if std::fs::read_link(&link).ok().as_deref() != Some(&library) {
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(library, &link).expect("a link to the library");
        }
        folder
    };
    (link(AbiVersion::V58, "libperfetto_c.so"), link(AbiVersion::V59, "libperfetto_c_v59.so"))
});

/// Runs a command, which must succeed.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{error}", output.status);
    output
}
