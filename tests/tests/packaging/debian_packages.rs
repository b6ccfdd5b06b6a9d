//! The packages for Debian, made once for all tests.

use crate::c_library::{file, root, target};
use crate::unit::{output, tool};
use esatto_tests::{Peer, Skip};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The packages with what is built here.
pub(crate) const NAMES: &[&str] = &["esatto", "libperfetto-c-esatto", "libperfetto-c-esatto-dev"];

/// The folder with the packages of revision 1, and of the later revision 2 the package `esatto`.
///
/// # Errors
///
/// There is no dpkg.
pub(crate) fn folder() -> Result<&'static Path, Skip> {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = file("debian");
        let _ = std::fs::remove_dir_all(&folder);
        make(&folder, &["--revision", "1"]);
        make(&folder, &["--revision", "2", "--package", "esatto"]);
        folder
    });
    tool("dpkg-shlibdeps", "debian")?;
    Ok(&FOLDER)
}

/// `cargo xtask deb` with programs of this profile of Cargo.
fn make(folder: &Path, args: &[&str]) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--locked", "-p", "xtask", "--", "deb", "--out"]).arg(folder).args(args);
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    cargo.args(["--profile", profile, "--compression", "gzip"]);
    output(cargo.current_dir(root()).env("CARGO_TARGET_DIR", target()).env("DPKG_DEB_COMPRESSOR_LEVEL", "1"));
}

/// The file of a package.
pub(crate) fn path(folder: &Path, name: &str, revision: &str) -> PathBuf {
    let architecture = output(Command::new("dpkg").arg("--print-architecture"));
    folder.join(format!("{name}_{}-{revision}_{}.deb", env!("CARGO_PKG_VERSION"), architecture.trim()))
}

/// The package with Perfetto's UI.
///
/// # Errors
///
/// There is no dpkg, or no copy of the UI.
pub(crate) fn ui() -> Result<PathBuf, Skip> {
    Peer::TraceProcessor.require()?;
    Ok(folder()?.join(format!("esatto-ui_{}-1_all.deb", env!("CARGO_PKG_VERSION"))))
}
