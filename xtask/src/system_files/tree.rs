//! [`File`]: a file of a system that is made up here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file that is going to be written.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) to: PathBuf,
    pub(crate) content: Content,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Bytes, and the mode.
    Bytes(Vec<u8>, u32),
    /// A symbolic link with this target.
    Link(String),
}

impl File {
    pub(crate) fn new(to: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>, mode: u32) -> Self {
        Self { to: to.into(), content: Content::Bytes(bytes.into(), mode) }
    }

    pub(crate) fn link(to: impl Into<PathBuf>, target: &str) -> Self {
        Self { to: to.into(), content: Content::Link(target.to_owned()) }
    }

    /// A copy of another file.
    ///
    /// # Errors
    ///
    /// The other file cannot be read.
    pub(crate) fn copy(from: &Path, to: impl Into<PathBuf>, mode: u32) -> Result<Self, String> {
        Ok(Self::new(to, super::read(from)?, mode))
    }

    /// The same file below this folder.
    pub(crate) fn below(mut self, folder: &Path) -> Self {
        self.to = folder.join(self.to.strip_prefix("/").unwrap_or(&self.to));
        self
    }

    /// Takes the place of an older one at once: running programs keep the older one.
    ///
    /// # Errors
    ///
    /// The path and the system's reason.
    pub(crate) fn install(&self) -> Result<(), String> {
        let mut name = self.to.as_os_str().to_owned();
        name.push(".new");
        let new = PathBuf::from(name);
        let done = self.write(&new).and_then(|()| fs::rename(&new, &self.to));
        done.map_err(|error| {
            let _ = fs::remove_file(&new);
            cannot_write(&self.to, &error)
        })
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        // An interrupted run may have left one.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        match &self.content {
            Content::Bytes(bytes, mode) => fs::write(path, bytes).and_then(|()| set_mode(path, *mode)),
            Content::Link(target) => link(target, path),
        }
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn link(target: &str, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

#[cfg(not(unix))]
fn link(_: &str, _: &Path) -> io::Result<()> {
    Err(io::Error::other("no symbolic links on this system"))
}

/// Gives all folders the mode that packages have, whatever the umask is.
pub(crate) fn set_folder_modes(folder: &Path) -> Result<(), String> {
    set_mode(folder, 0o755).map_err(|error| format!("{}: {error}", folder.display()))?;
    for name in super::names(folder)? {
        let path = folder.join(name);
        if path.is_dir() && !path.is_symlink() {
            set_folder_modes(&path)?;
        }
    }
    Ok(())
}

/// Makes a folder and finds out whether files can be written there.
///
/// # Errors
///
/// They cannot.
pub(crate) fn probe(folder: &Path) -> Result<(), String> {
    let file = folder.join(format!(".esatto-install-{}", std::process::id()));
    let done = fs::create_dir_all(folder).and_then(|()| fs::write(&file, [])).and_then(|()| fs::remove_file(&file));
    done.map_err(|error| cannot_write(folder, &error))
}

fn cannot_write(path: &Path, error: &io::Error) -> String {
    format!(
        "cannot write {}: {error}\nchoose another place with --prefix or --destdir, or be another user",
        path.display()
    )
}
