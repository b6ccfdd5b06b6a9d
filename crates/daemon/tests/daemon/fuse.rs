//! A file system in this process, with one file whose `close` never ends.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Numbers of the kernel (`linux/fuse.h`).
const FORGET: u32 = 2;
const LOOKUP: u32 = 1;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const INTERRUPT: u32 = 36;
const BATCH_FORGET: u32 = 42;
const ENOSYS: i32 = 38;
/// Node of the only file; the root is 1.
const FILE: u64 = 2;

/// The mounted file system. When it is dropped, all blocked calls end.
pub(crate) struct Fuse {
    folder: PathBuf,
}

impl Fuse {
    /// Mounts the file system. Needs root and `/dev/fuse`.
    pub(crate) fn mount(folder: PathBuf) -> std::io::Result<Self> {
        let device = File::options().read(true).write(true).open("/dev/fuse")?;
        std::fs::create_dir(&folder)?;
        let data = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        let data = CString::new(data).expect("no zero");
        mount("fuse", &folder, "fuse", MountFlags::NOSUID | MountFlags::NODEV, Some(data.as_c_str()))?;
        std::thread::spawn(move || serve(device));
        Ok(Self { folder })
    }

    pub(crate) fn open(&self) -> File {
        File::options().read(true).write(true).open(self.folder.join("file")).unwrap()
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        // Unmount by force, which aborts waiting requests. If the file system is still busy, it
        // ends with its last user.
        let _ = unmount(&self.folder, UnmountFlags::FORCE);
        let _ = unmount(&self.folder, UnmountFlags::DETACH);
    }
}

/// Answers requests until the file system is unmounted.
fn serve(mut device: File) {
    let mut request = vec![0; 256 << 10];
    while let Ok(len) = device.read(&mut request) {
        assert!(len >= 40, "a whole request");
        let word = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
        let long = |at: usize| u64::from_ne_bytes(request[at..at + 8].try_into().unwrap());
        let (opcode, unique, node) = (word(4), long(8), long(16));
        let (error, answer) = match opcode {
            // Requests without an answer.
            FLUSH | FORGET | INTERRUPT | BATCH_FORGET => continue,
            INIT => (0, words(&[7, 31, 0, 0, 0, 4096, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
            LOOKUP => (0, [longs(&[FILE, 0, 3600, 3600]), words(&[0, 0]), attributes(FILE)].concat()),
            GETATTR => (0, [longs(&[3600]), words(&[0, 0]), attributes(node)].concat()),
            OPEN => (0, longs(&[1, 0])),
            RELEASE => (0, Vec::new()),
            _ => (-ENOSYS, Vec::new()),
        };
        let header = [(16 + answer.len() as u32).to_ne_bytes(), error.to_ne_bytes()].concat();
        let _ = device.write(&[header, unique.to_ne_bytes().to_vec(), answer].concat());
    }
}

fn attributes(node: u64) -> Vec<u8> {
    let mode = if node == FILE { 0o100_666 } else { 0o040_755 };
    [longs(&[node, 0, 0, 0, 0, 0]), words(&[0, 0, 0, mode, 1, 0, 0, 0, 4096, 0])].concat()
}

fn words(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn longs(all: &[u64]) -> Vec<u8> {
    all.iter().flat_map(|long| long.to_ne_bytes()).collect()
}
