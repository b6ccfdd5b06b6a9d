//! [`SoleWriter`]: the promise that no other program writes the trace file, as far as one can know.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::PACKET_TAG;
use crate::failure::Failure;

/// Bytes by which a trace is known again. Clocks and a random id are among them.
const BEGINNING_BYTES: usize = 256;

/// Knowledge of a trace file by which its writer notices that another program has emptied it, or
/// has written into it.
///
/// A lock of the file (`flock`) keeps other recordings away. Programs that do not ask for the lock,
/// such as a shell's redirection or Perfetto's command, are noticed afterwards: the file has
/// shrunk, or does not begin as it did. What it contains then is no trace, because its writers
/// wrote over each other.
#[derive(Debug, Default)]
pub(super) struct SoleWriter {
    beginning: Vec<u8>,
}

impl SoleWriter {
    /// Remembers these bytes, which have been written at `offset` of the trace.
    pub(super) fn note_written(&mut self, bytes: &[u8], offset: u64) {
        if offset == self.beginning.len() as u64 {
            let room = BEGINNING_BYTES - self.beginning.len();
            self.beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    /// Remembers the beginning of a file that a service writes.
    pub(super) fn note_beginning(&mut self, file: &File) {
        if self.beginning.is_empty() {
            let mut bytes = [0; BEGINNING_BYTES];
            // If it cannot be read, only its size tells.
            let read = file.read_at(&mut bytes, 0).unwrap_or(0);
            self.beginning.extend_from_slice(&bytes[..read]);
        }
    }

    /// Fails if another program has changed the file, which should have at least this size.
    pub(super) fn require(&self, file: &File, name: &Path, min_size: u64) -> Result<(), Failure> {
        let Ok(meta) = file.metadata() else { return Ok(()) };
        if !meta.is_file() || (meta.len() >= min_size && self.is_beginning_of(file)) {
            return Ok(());
        }
        let what = format!("lost the trace file {}", name.display());
        let why = "another program has emptied it, or has written into it, during the recording";
        Err(Failure::new(what, why).hint("give each recording a file of its own"))
    }

    /// Returns false if the file begins in another way than the trace.
    fn is_beginning_of(&self, file: &File) -> bool {
        let mut bytes = [0; BEGINNING_BYTES];
        let Ok(read) = file.read_at(&mut bytes, 0) else { return true };
        let is_trace = bytes[..read].first().is_none_or(|&first| first == PACKET_TAG);
        is_trace && bytes[..read].starts_with(&self.beginning)
    }
}

/// Locks the file until it is closed or [unlocked](unlock). Fails if another recording has locked
/// it.
pub(crate) fn lock(file: &File, name: &Path) -> Result<(), Failure> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {
            let what = format!("cannot write {}", name.display());
            let why = io::Error::other("another recording writes it at the moment");
            Err(Failure::new(what, why).hint("choose another file with -o FILE"))
        }
        // The file system may have no locks.
        _ => Ok(()),
    }
}

/// Returns whether a recording has locked the file.
pub(crate) fn is_being_written(file: &File) -> bool {
    let locked = flock(file, FlockOperation::NonBlockingLockShared);
    if locked.is_ok() {
        unlock(file);
    }
    matches!(locked, Err(Errno::WOULDBLOCK))
}

/// Ends the lock, also that of a service that still has the file open.
pub(super) fn unlock(file: &File) {
    // Best effort: closing the file ends it too.
    let _ = flock(file, FlockOperation::Unlock);
}
