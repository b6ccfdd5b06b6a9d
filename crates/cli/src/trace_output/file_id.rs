//! Identity of a trace file: another program may remove or replace it during the recording.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::target::folder_of;
use crate::failure::Failure;

/// Names in a folder that are looked at to find a file that was renamed.
const MAX_NAMES: usize = 100_000;

/// Number of a file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(crate) fn of(meta: &Metadata) -> Self {
        Self { device: meta.dev(), inode: meta.ino() }
    }

    /// Returns whether a name that led to the file leads to none, or to another one.
    pub(crate) fn has_lost_name(self, path: &Path) -> bool {
        match std::fs::metadata(path) {
            Ok(meta) => Self::of(&meta) != self,
            // After other errors nothing is known.
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Returns whether `path` itself is the file, not a link that leads to it.
    fn is_at(self, path: &Path) -> bool {
        path.symlink_metadata().is_ok_and(|meta| Self::of(&meta) == self)
    }

    /// Says where the file is, whose name is no longer `old`. `proc_path` is the link of the kernel
    /// to the open file.
    pub(super) fn place(self, proc_path: &str, old: &Path) -> String {
        // The link of a file that was made without a name leads nowhere.
        let linked = std::fs::read_link(proc_path).ok().filter(|path| self.is_at(path));
        match linked.or_else(|| self.find_in(folder_of(old))) {
            Some(path) => format!("the trace is in {}", path.display()),
            None => {
                let inode = self.inode;
                format!("the trace has another name now: search for it, for instance with `find -inum {inode}`")
            }
        }
    }

    /// Looks for a name of the file among the first names of a folder.
    fn find_in(self, folder: &Path) -> Option<PathBuf> {
        let folder = folder.canonicalize().ok()?;
        let entries = std::fs::read_dir(folder).ok()?.take(MAX_NAMES).flatten();
        entries.filter(|entry| entry.ino() == self.inode).map(|entry| entry.path()).find(|path| self.is_at(path))
    }
}

/// Failure of a recording whose file has lost its name.
pub(crate) fn lost_file(path: &Path) -> Failure {
    let what = format!("lost the trace file {}", path.display());
    Failure::new(what, "another program has removed or replaced it during the recording")
}
