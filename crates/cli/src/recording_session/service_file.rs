//! The trace file that the service creates by itself.

use std::fs::File;
use std::io;
use std::path::PathBuf;

/// A file that the service creates exclusively (`docs/spec/service.md` §18).
#[derive(Debug)]
pub(super) struct ServiceFile {
    path: PathBuf,
    /// The name was taken before the session.
    was_taken: bool,
}

impl ServiceFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { was_taken: path.symlink_metadata().is_ok(), path }
    }

    /// Opens the file for reading.
    pub(super) fn open(&self) -> io::Result<File> {
        // The service has its own current folder, and perhaps another user.
        if !self.path.is_absolute() || self.was_taken || !self.path.symlink_metadata()?.is_file() {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        File::open(&self.path)
    }

    /// Returns whether this program can see that the service has not created the file.
    pub(super) fn is_missing(&self) -> bool {
        let is_free = || matches!(self.path.try_exists(), Ok(false));
        self.path.is_absolute() && (self.was_taken || is_free())
    }
}
