//! [`FolderWatch`]: wakes up when files in some folders change.

use core::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

/// Reads of events in a row. Events that remain ask for the next turn.
const READS_PER_TURN: usize = 16;

/// Wakes up when files in some folders change. Its descriptor is readable then.
#[derive(Debug)]
pub(super) struct FolderWatch(OwnedFd);

/// Changes since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Some file was written.
    pub(super) has_writes: bool,
    /// Files or folders came, went or were renamed.
    pub(super) has_new_names: bool,
}

impl FolderWatch {
    /// Watches nothing yet. The system limits the number of watches of a user.
    pub(super) fn new() -> rustix::io::Result<Self> {
        inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map(Self)
    }

    /// Watches for names that appear in a folder. The folder need not exist, and may be watched
    /// already.
    pub(super) fn watch_names(&self, folder: &Path) {
        self.watch(folder, WatchFlags::CREATE | WatchFlags::MOVED_TO);
    }

    /// Watches for names and for writes to the files of a folder.
    pub(super) fn watch_files(&self, folder: &Path) {
        let names = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM | WatchFlags::DELETE;
        self.watch(folder, names | WatchFlags::MODIFY);
    }

    fn watch(&self, folder: &Path, flags: WatchFlags) {
        if let Err(why) = inotify::add_watch(&self.0, folder, flags | WatchFlags::ONLYDIR) {
            if why != rustix::io::Errno::NOENT {
                log::warn!("cannot watch {folder:?}: {why}; entries of the journal come with the next flush");
            }
        }
    }

    /// Takes the changes since the last call.
    pub(super) fn take_changes(&self) -> Changes {
        let mut changes = Changes::default();
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.0, &mut buffer);
        let mut reads = 0;
        while reads < READS_PER_TURN || !reader.is_buffer_empty() {
            if reader.is_buffer_empty() {
                reads += 1;
            }
            let Ok(event) = reader.next() else { break };
            if event.events() == ReadFlags::MODIFY {
                changes.has_writes = true;
            } else {
                // Also if events were lost.
                changes = Changes { has_writes: true, has_new_names: true };
            }
        }
        changes
    }
}

impl AsFd for FolderWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
