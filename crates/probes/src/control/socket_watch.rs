//! [`SocketWatch`]: tells when a socket file appears.

use core::mem::MaybeUninit;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

/// Descriptor that is readable when something appears in a folder of interest.
pub(super) struct SocketWatch {
    inotify: OwnedFd,
    /// Name of interest in the folder.
    name: OsString,
}

impl SocketWatch {
    /// Watches for a file at this path. If its folder does not exist, watches for the folder.
    /// Returns `None` if the kernel refuses; then only time makes the next attempt.
    pub(super) fn new(path: &Path) -> Option<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let (folder, name) = nearest(path)?;
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ATTRIB | WatchFlags::ONLYDIR;
        inotify::add_watch(&inotify, folder, flags).ok()?;
        Some(Self { inotify, name })
    }

    /// Reads all events. Returns whether the file of interest was among them.
    pub(super) fn has_appeared(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        let mut appeared = false;
        while let Ok(event) = reader.next() {
            appeared |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            appeared |= event.file_name().is_some_and(|name| name.to_bytes() == self.name.as_bytes());
        }
        appeared
    }
}

impl AsFd for SocketWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

/// Returns the nearest folder above `path` that exists, and the name in it that leads to `path`.
fn nearest(path: &Path) -> Option<(&Path, OsString)> {
    let mut path = path;
    loop {
        let name = path.file_name()?;
        let folder = path.parent()?;
        let folder = if folder.as_os_str().as_bytes().is_empty() { Path::new(".") } else { folder };
        if folder.is_dir() {
            return Some((folder, name.to_owned()));
        }
        path = folder;
    }
}
