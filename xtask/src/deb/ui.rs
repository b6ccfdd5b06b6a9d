//! The package with Perfetto's UI, which is not a part of this repository.

use crate::system_files::{File, names, read, read_text};
use std::path::Path;

/// Name of the package.
pub(super) const PACKAGE: &str = "esatto-ui";
/// The version of which `packaging/debian/esatto-ui.copyright` tells the licences.
const VERSION: &str = "v52.";
/// Where `esatto view` looks for the UI.
const PLACE: &str = "/usr/share/esatto/ui";

/// Returns the files of a copy of the UI, at their places in the system.
///
/// # Errors
///
/// It is no copy, or one of a version whose licences nobody has looked at.
pub(super) fn files(ui: &Path) -> Result<Vec<File>, String> {
    let version = ui.join("version");
    let version =
        read_text(&version).map_err(|error| format!("{error}: run 'cargo xtask peers ui', or name a copy"))?;
    if !version.starts_with(VERSION) {
        let copyright = "packaging/debian/esatto-ui.copyright";
        return Err(format!("{}: version {version}: {copyright} has the licences of {VERSION}", ui.display()));
    }
    let mut files = Vec::new();
    add(ui, Path::new(PLACE), &mut files)?;
    Ok(files)
}

fn add(from: &Path, to: &Path, files: &mut Vec<File>) -> Result<(), String> {
    for name in names(from)? {
        let path = from.join(&name);
        if path.is_dir() {
            add(&path, &to.join(&name), files)?;
        } else if name != "LICENSE" {
            // Debian has the text of this licence at a place of its own.
            files.push(File::new(to.join(&name), read(&path)?, 0o644));
        }
    }
    Ok(())
}
