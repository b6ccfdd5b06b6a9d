//! Files that Esatto puts into a system: for `install`, the Debian packages and the archive.
//!
//! ```text
//! build       compiles programs and libraries, on request without a trace of this machine
//! programs ─┐
//! c_library ├─ lists of files: path, content, mode
//! notices ──┘
//! tree        writes such a list into a folder
//! ```

pub(crate) mod build;
pub(crate) mod c_library;
pub(crate) mod dependencies;
pub(crate) mod notices;
pub(crate) mod programs;
mod tree;

pub(crate) use build::Build;
pub(crate) use tree::{Content, File, probe, set_folder_modes};

use std::fs;
use std::path::{Path, PathBuf};

/// Reads a file of the repository or of a build.
///
/// # Errors
///
/// The path and the system's reason.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// As [`read`], a text.
///
/// # Errors
///
/// The path and the system's reason.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Returns the names in a folder, in order.
///
/// # Errors
///
/// The folder and the system's reason.
pub(crate) fn names(folder: &Path) -> Result<Vec<String>, String> {
    let wrap = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(wrap)? {
        let name = entry.map_err(wrap)?.file_name();
        names.push(name.into_string().map_err(|name| format!("{}: the name {name:?} is no text", folder.display()))?);
    }
    names.sort();
    Ok(names)
}

/// Makes a folder that is empty, whatever was there.
///
/// # Errors
///
/// The folder and the system's reason.
pub(crate) fn empty_folder(folder: &Path) -> Result<PathBuf, String> {
    let removed = match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    removed
        .and_then(|()| fs::create_dir_all(folder))
        .map_err(|error| format!("cannot make {} an empty folder: {error}", folder.display()))?;
    Ok(folder.to_path_buf())
}

/// Compares the files of two folders.
///
/// # Errors
///
/// The names of those that differ.
pub(crate) fn compare(first: &Path, second: &Path) -> Result<(), String> {
    let mut all = names(first)?;
    all.extend(names(second)?);
    all.sort();
    all.dedup();
    all.retain(|name| !matches!((read(&first.join(name)), read(&second.join(name))), (Ok(a), Ok(b)) if a == b));
    if all.is_empty() {
        println!("built twice, in two folders: the same bytes");
        return Ok(());
    }
    let (first, second) = (first.display(), second.display());
    Err(format!("a second build differs in {}: compare {first} with {second}", all.join(", ")))
}
