//! The trace file that the service creates by itself.

use std::fs::{File, Metadata};
use std::io;
use std::path::PathBuf;

use crate::failure::Failure;
use crate::trace_output::{FileId, lost_file};

/// A file that the service creates exclusively (`docs/spec/service.md` §18).
#[derive(Debug)]
pub(super) struct ServiceFile {
    path: PathBuf,
    /// The name was taken before the session.
    was_taken: bool,
    /// The file, once it was seen.
    id: Option<FileId>,
}

impl ServiceFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { was_taken: path.symlink_metadata().is_ok(), path, id: None }
    }

    /// The file of a session that has begun before.
    pub(super) fn existing(path: PathBuf) -> Self {
        Self { path, was_taken: false, id: None }
    }

    /// Looks for the file, if it was not seen yet.
    pub(super) fn observe(&mut self) {
        if self.id.is_none() && self.path.is_absolute() && !self.was_taken {
            let meta = self.path.symlink_metadata().ok().filter(Metadata::is_file);
            self.id = meta.map(|meta| FileId::of(&meta));
        }
    }

    /// Fails if the file was seen, and its name no longer leads to it.
    pub(super) fn require_in_place(&self) -> Result<(), Failure> {
        let is_lost = self.id.is_some_and(|id| id.has_lost_name(&self.path));
        if is_lost { Err(lost_file(&self.path)) } else { Ok(()) }
    }

    /// Opens the file for reading.
    pub(super) fn open(&self) -> io::Result<File> {
        // The service has its own current folder, and perhaps another user.
        if !self.path.is_absolute() || self.was_taken || !self.path.symlink_metadata()?.is_file() {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        File::open(&self.path)
    }

    /// Returns whether the service has ended the session with `error` because it could not create
    /// the file.
    pub(super) fn is_refused(&self, error: &str) -> bool {
        // For a path that only the service can look up, the text tells.
        error.starts_with("output_path ") || self.is_missing()
    }

    /// Returns whether this program can see that the service has not created the file.
    fn is_missing(&self) -> bool {
        let is_free = || matches!(self.path.try_exists(), Ok(false));
        self.path.is_absolute() && (self.was_taken || is_free())
    }
}
