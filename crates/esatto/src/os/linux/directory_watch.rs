//! Watches a directory for a socket file that appears.

use std::os::fd::{AsFd, OwnedFd};

use esatto_ipc::Address;

use super::Interest;
use crate::os::kernel;

/// Watches the directory of a socket.
#[derive(Debug)]
pub(crate) struct DirectoryWatch(OwnedFd);

impl DirectoryWatch {
    /// Starts to watch. `None` for sockets without a file, or if it is not possible.
    pub(crate) fn of(address: &Address) -> Option<Self> {
        let Address::Path(path) = address else { return None };
        let directory =
            path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or_else(|| std::path::Path::new("."));
        kernel::watch(directory).ok().map(Self)
    }

    pub(crate) fn interest(&self) -> Interest<'_> {
        Interest { fd: self.0.as_fd(), wants_write: false }
    }

    /// Returns whether anything has changed since the last time.
    pub(crate) fn has_changed(&self) -> bool {
        let mut events = [0_u8; 4096];
        let mut changed = false;
        while matches!(rustix::io::read(&self.0, &mut events), Ok(n) if n > 0) {
            changed = true;
        }
        changed
    }
}
