//! [`FolderWalk`]: a walk through all folders of some file systems, in steps.

use core::mem::MaybeUninit;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use esatto_schema::inode_file_map::entry::Type;
use rustix::fs::{FileType, Mode, OFlags, RawDir};

/// Folders that wait for their turn. In a file system with more, some are left out.
const MAX_WAITING_FOLDERS: usize = 1 << 16;

/// Bytes of names that are read from the kernel at once.
const BUFFER_BYTES: usize = 16 << 10;

/// A walk through all folders below some roots. It stays in the file systems of the roots, and
/// follows no symbolic links.
#[derive(Debug, Default)]
pub(super) struct FolderWalk {
    /// Folders that wait, with their device.
    waiting: Vec<Folder>,
    current: Option<(OwnedFd, Folder)>,
    /// Folders that were left out.
    pub(super) omitted: u64,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Device whose files are looked for.
    device: u64,
    /// `st_dev` of the root, which may be another number than `device`; nothing for the root.
    stat_device: Option<u64>,
}

impl FolderWalk {
    /// Adds a root for a device.
    pub(super) fn add(&mut self, root: PathBuf, device: u64) {
        self.waiting.push(Folder { path: root, device, stat_device: None });
    }

    pub(super) fn is_done(&self) -> bool {
        self.current.is_none() && self.waiting.is_empty()
    }

    /// Looks at about `names` files. Passes device, inode, kind, folder and name of each to
    /// `visit`, which returns whether files of this device are still looked for.
    pub(super) fn step(&mut self, mut names: usize, visit: &mut dyn FnMut(u64, u64, Type, &Path, &OsStr) -> bool) {
        while names > 0 && !self.is_done() {
            // A folder that cannot be opened counts, or many of them would take any time.
            names -= 1;
            if self.current.is_none() {
                self.open_next();
            }
            self.read_some(&mut names, visit);
        }
    }

    fn open_next(&mut self) {
        let Some(mut folder) = self.waiting.pop() else { return };
        let mut flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        if folder.stat_device.is_some() {
            flags |= OFlags::NOFOLLOW;
        }
        // It may have vanished, or be private.
        let Ok(fd) = rustix::fs::open(&folder.path, flags, Mode::empty()) else { return };
        let Ok(stat) = rustix::fs::fstat(&fd) else { return };
        let is_inside = folder.stat_device.is_none_or(|device| device == stat.st_dev);
        if is_inside {
            folder.stat_device = Some(stat.st_dev);
            self.current = Some((fd, folder));
        }
    }

    /// Reads one buffer of names from the current folder.
    fn read_some(&mut self, names: &mut usize, visit: &mut dyn FnMut(u64, u64, Type, &Path, &OsStr) -> bool) {
        let Some((fd, folder)) = &self.current else { return };
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut entries = RawDir::new(fd, &mut buffer);
        loop {
            let Some(Ok(entry)) = entries.next() else {
                self.current = None;
                return;
            };
            *names = names.saturating_sub(1);
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                let kind = match entry.file_type() {
                    FileType::Directory => Type::DIRECTORY,
                    FileType::RegularFile => Type::FILE,
                    _ => Type::UNKNOWN,
                };
                let name = OsStr::from_bytes(name);
                if kind == Type::DIRECTORY {
                    if self.waiting.len() < MAX_WAITING_FOLDERS {
                        let path = folder.path.join(name);
                        self.waiting.push(Folder { path, device: folder.device, stat_device: folder.stat_device });
                    } else {
                        self.omitted += 1;
                    }
                }
                if !visit(folder.device, entry.ino(), kind, &folder.path, name) {
                    let device = folder.device;
                    self.waiting.retain(|waiting| waiting.device != device);
                    self.current = None;
                    return;
                }
            }
            if entries.is_buffer_empty() {
                return;
            }
        }
    }
}
