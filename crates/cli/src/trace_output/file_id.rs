//! Identity of a trace file: another program may remove or replace it during the recording.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::failure::Failure;

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
}

/// Failure of a recording whose file has lost its name.
pub(crate) fn lost_file(path: &Path) -> Failure {
    let what = format!("lost the trace file {}", path.display());
    Failure::new(what, "another program has removed or replaced it during the recording")
}
