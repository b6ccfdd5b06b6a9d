//! The C library in both flavours, its headers, and what pkg-config and CMake want to know.

use super::{Build, File, names, read_text};
use crate::shell;
use std::path::{Path, PathBuf};

/// The packages with the two flavours.
pub(crate) const PACKAGES: &[&str] = &["esatto-capi", "esatto-capi-v59"];
/// The profile that makes them small.
pub(crate) const PROFILE: &str = "library";

/// The headers, in the workspace.
const HEADERS: &str = "crates/capi/include/esatto";
/// Folder of the files that are installed, as they are or with changes.
const PACKAGING: &str = "packaging/c";
/// Folder below the prefix for files that do not depend on the machine.
const SHARE: &str = "share/perfetto_c";

/// Returns the folders below a prefix that the files are in.
pub(crate) fn folders(prefix: &Path, libdir: &Path) -> Vec<PathBuf> {
    let lib = prefix.join(libdir);
    let mut folders = vec![lib.join("v59"), lib.join("pkgconfig"), lib.join("cmake/perfetto_c")];
    folders.extend([prefix.join("include/esatto"), prefix.join(SHARE), lib]);
    folders
}

/// Returns the files below a prefix.
///
/// # Errors
///
/// A file is missing, because nothing was built.
pub(crate) fn files(build: &Build, profile: &str, prefix: &Path, libdir: &Path) -> Result<Vec<File>, String> {
    let mut files = libraries(build, profile, &prefix.join(libdir))?;
    let headers = shell::root().join(HEADERS);
    for name in names(&headers)? {
        files.push(File::copy(&headers.join(&name), prefix.join("include/esatto").join(&name), 0o644)?);
    }
    for suppressions in ["leak-sanitizer.supp", "thread-sanitizer.supp"] {
        let to = prefix.join(SHARE).join(suppressions);
        files.push(File::copy(&shell::root().join(PACKAGING).join(suppressions), to, 0o644)?);
    }
    for (template, folder, name) in [
        ("perfetto_c.pc.in", "pkgconfig", "perfetto_c.pc"),
        ("perfetto_c_v59.pc.in", "pkgconfig", "perfetto_c_v59.pc"),
        ("perfetto_cConfig.cmake.in", "cmake/perfetto_c", "perfetto_cConfig.cmake"),
        ("perfetto_cConfigVersion.cmake", "cmake/perfetto_c", "perfetto_cConfigVersion.cmake"),
    ] {
        let text = configured(&read_text(&shell::root().join(PACKAGING).join(template))?, libdir, folder);
        files.push(File::new(prefix.join(libdir).join(folder).join(name), text, 0o644));
    }
    Ok(files)
}

fn libraries(build: &Build, profile: &str, lib: &Path) -> Result<Vec<File>, String> {
    let built = build.output(profile);
    let mut files = Vec::new();
    for (from, to) in [("libperfetto_c", "libperfetto_c"), ("libperfetto_c_v59", "v59/libperfetto_c")] {
        files.push(File::copy(&built.join(format!("{from}.so")), lib.join(format!("{to}.so")), 0o755)?);
        files.push(File::copy(&built.join(format!("{from}.a")), lib.join(format!("{to}.a")), 0o644)?);
    }
    Ok(files)
}

/// Fills the place of a file into its text.
fn configured(text: &str, libdir: &Path, folder: &str) -> String {
    let up = vec![".."; libdir.join(folder).components().count()].join("/");
    let text = text.replace("@UP@", &up).replace("@LIBDIR@", &libdir.to_string_lossy());
    text.replace("@VERSION@", env!("CARGO_PKG_VERSION"))
}
