//! Numbers of files, which stay when another program renames or removes a file.

use std::fs::{File, Metadata};
use std::path::PathBuf;

/// Number of a file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Returns the number of a file; `None` if this system has none.
    #[cfg(unix)]
    #[expect(clippy::unnecessary_wraps, reason = "other systems have none")]
    pub(crate) fn of(meta: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;

        Some(Self { device: meta.dev(), inode: meta.ino() })
    }

    /// Returns `None`.
    #[cfg(not(unix))]
    pub(crate) fn of(_: &Metadata) -> Option<Self> {
        None
    }
}

/// Returns whether an open file has a name, whatever it is.
#[cfg(unix)]
pub(crate) fn has_name(meta: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    meta.nlink() > 0
}

/// Returns true: nothing else is known.
#[cfg(not(unix))]
pub(crate) fn has_name(_: &Metadata) -> bool {
    true
}

/// Returns a name that leads to an open file, if the system tells it.
#[cfg(unix)]
pub(crate) fn name_of(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd as _;

    let name = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let (found, wanted) = (std::fs::symlink_metadata(&name).ok()?, file.metadata().ok()?);
    (FileId::of(&found) == FileId::of(&wanted)).then_some(name)
}

/// Returns `None`.
#[cfg(not(unix))]
pub(crate) fn name_of(_: &File) -> Option<PathBuf> {
    None
}
