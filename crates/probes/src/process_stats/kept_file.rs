//! [`KeptFile`]: a file of a process that stays open between two polls.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, getrlimit, setrlimit};

/// An open file, counted against the bound of this program.
///
/// To read an open file again takes a third less time than to open it again. It also belongs to
/// one process for ever: if the process ends, reads fail, even if another process has its id.
#[derive(Debug)]
pub(crate) struct KeptFile(OwnedFd);

/// Files that all instances keep open together. The kernel has a page of text for most of them.
const MAX_KEPT_FILES: usize = 8192;

/// Descriptors that this program asks for: twice [`MAX_KEPT_FILES`].
const WANTED_DESCRIPTORS: u64 = 16 * 1024;

static COUNT: AtomicUsize = AtomicUsize::new(0);

impl KeptFile {
    /// Keeps a file open if there is room, and closes it otherwise.
    pub(crate) fn keep(file: OwnedFd) -> Option<Self> {
        let bound = bound();
        let counted =
            COUNT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < bound).then_some(count + 1));
        counted.is_ok().then_some(Self(file))
    }
}

impl AsFd for KeptFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the largest number of kept files: at most half of the descriptors that this program may
/// have. Raises that number first, as far as it may.
fn bound() -> usize {
    static BOUND: OnceLock<usize> = OnceLock::new();
    *BOUND.get_or_init(|| {
        let mut limit = getrlimit(Resource::Nofile);
        let allowed = limit.maximum.unwrap_or(u64::MAX).min(WANTED_DESCRIPTORS);
        if limit.current.is_some_and(|current| current < allowed) {
            let raised = rustix::process::Rlimit { current: Some(allowed), ..limit };
            if setrlimit(Resource::Nofile, raised).is_ok() {
                limit.current = raised.current;
            }
        }
        let half = limit.current.unwrap_or(u64::MAX) / 2;
        usize::try_from(half).unwrap_or(usize::MAX).min(MAX_KEPT_FILES)
    })
}
