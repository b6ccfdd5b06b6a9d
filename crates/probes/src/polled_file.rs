//! [`PolledFile`]: a file of `/proc` or `/sys` that is read again and again.

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::data_source::Monotonic;

/// Descriptors that all polled files of the process keep open: a quarter of the limit that most
/// systems give to a process. Beyond it, a file is opened for each read.
const MAX_KEPT_FILES: usize = 256;
/// Bytes read of a file. `/proc/stat` of a machine with 1024 CPUs and 65536 interrupts has less
/// than 1 MiB.
const MAX_FILE_BYTES: usize = 4 << 20;
/// Bytes that a read asks for, at least.
const MIN_READ_BYTES: usize = 4096;
/// A read of a polled file that returns fewer bytes was the last one. The kernel fills at least a
/// page with whole records, and the records of these files are short, or the file is one record.
const LAST_READ_BYTES: usize = 2048;
/// Pause before a file that could not be read is opened again. Each failure doubles it.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// Longest of these pauses.
const LAST_RETRY: Duration = Duration::from_secs(30);

/// Descriptors that polled files keep open now.
static KEPT_FILES: AtomicUsize = AtomicUsize::new(0);

/// A file of `/proc` or `/sys` that is read again and again. It stays open between reads.
///
/// A file that cannot be read is tried again later; the first failure is logged.
#[derive(Debug)]
pub(crate) struct PolledFile {
    path: PathBuf,
    file: Option<KeptFile>,
    failures: Failures,
}

/// Failures of a [`PolledFile`].
#[derive(Debug)]
struct Failures {
    /// The data that the trace lacks without the file, for the log. Empty: failures are not logged.
    missing: &'static str,
    is_logged: bool,
    pause: Duration,
    retry: Monotonic,
}

impl PolledFile {
    /// `missing` says in the log what the trace lacks if the file cannot be read.
    pub(crate) fn new(path: PathBuf, missing: &'static str) -> Self {
        let failures = Failures { missing, is_logged: false, pause: FIRST_RETRY, retry: Duration::ZERO };
        Self { path, file: None, failures }
    }

    /// Makes a file whose failures are not logged.
    pub(crate) fn optional(path: PathBuf) -> Self {
        Self::new(path, "")
    }

    /// Reads the whole file into `buffer`, in place of its content. Returns false, with an empty
    /// buffer, if the file cannot be read.
    pub(crate) fn read(&mut self, now: Monotonic, buffer: &mut Vec<u8>) -> bool {
        buffer.clear();
        let is_read = self.with_file(now, |file| read_whole(file, buffer, MAX_FILE_BYTES, LAST_READ_BYTES)).is_some();
        if !is_read {
            buffer.clear();
        }
        is_read
    }

    /// Reads a short file of sysfs with one system call.
    pub(crate) fn read_short<'b>(&mut self, now: Monotonic, buffer: &'b mut [u8; 64]) -> Option<&'b [u8]> {
        let len = self.with_file(now, |file| retry(|| rustix::io::pread(file, &mut buffer[..], 0)))?;
        Some(&buffer[..len])
    }

    fn with_file<T>(&mut self, now: Monotonic, read: impl FnOnce(&OwnedFd) -> Result<T, Errno>) -> Option<T> {
        let result = match &self.file {
            Some(file) => read(&file.0),
            None if now < self.failures.retry => return None,
            None => self.open(read),
        };
        match result {
            Ok(value) => {
                self.failures.pause = FIRST_RETRY;
                Some(value)
            }
            Err(error) => {
                self.file = None;
                self.failures.add(now, &self.path, error);
                None
            }
        }
    }

    #[cold]
    fn open<T>(&mut self, read: impl FnOnce(&OwnedFd) -> Result<T, Errno>) -> Result<T, Errno> {
        let file = open(&self.path)?;
        let value = read(&file)?;
        self.file = KeptFile::new(file);
        Ok(value)
    }
}

impl Failures {
    #[cold]
    fn add(&mut self, now: Monotonic, path: &Path, error: Errno) {
        self.retry = now + self.pause;
        self.pause = (self.pause * 2).min(LAST_RETRY);
        if !self.is_logged && !self.missing.is_empty() {
            self.is_logged = true;
            log_unreadable(path, error, self.missing);
        }
    }
}

/// Logs that a file or folder cannot be read.
#[cold]
pub(crate) fn log_unreadable(path: &Path, error: Errno, missing: &str) {
    let path = path.as_os_str().as_encoded_bytes().escape_ascii();
    let advice = if matches!(error, Errno::ACCESS | Errno::PERM) { "; run as root" } else { "" };
    log::warn!("cannot read {path}: {error}; the trace has no {missing}{advice}");
}

/// Reads a file once, up to `max` bytes.
pub(crate) fn read_once(path: &Path, max: usize) -> Result<Vec<u8>, Errno> {
    let mut buffer = Vec::new();
    read_whole(&open(path)?, &mut buffer, max, 1)?;
    Ok(buffer)
}

fn open(path: &Path) -> Result<OwnedFd, Errno> {
    // Nothing in `/proc` and `/sys` that is polled is a FIFO. A path of the user's own might be.
    retry(|| rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty()))
}

/// Appends the whole file. If it is longer than `max` bytes, the line that is cut is left out. A
/// read of fewer than `last` bytes ends it.
fn read_whole(file: &OwnedFd, buffer: &mut Vec<u8>, max: usize, last: usize) -> Result<(), Errno> {
    loop {
        if buffer.len() >= max {
            buffer.truncate(max);
            let end = memchr::memrchr(b'\n', buffer).map_or(0, |end| end + 1);
            buffer.truncate(end);
            return Ok(());
        }
        if buffer.capacity() - buffer.len() < MIN_READ_BYTES {
            buffer.reserve(buffer.len().max(2 * MIN_READ_BYTES));
        }
        let offset = buffer.len() as u64;
        // Most files come a page at a time, so a read that returns less than it asked for need not
        // be the last one.
        if retry(|| rustix::io::pread(file, spare_capacity(buffer), offset))? < last {
            return Ok(());
        }
    }
}

fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// A descriptor that stays open, one of at most [`MAX_KEPT_FILES`].
#[derive(Debug)]
struct KeptFile(OwnedFd);

impl KeptFile {
    /// Returns `None`, and closes the file, if too many are open.
    fn new(file: OwnedFd) -> Option<Self> {
        if KEPT_FILES.fetch_add(1, Ordering::Relaxed) < MAX_KEPT_FILES {
            Some(Self(file))
        } else {
            KEPT_FILES.fetch_sub(1, Ordering::Relaxed);
            None
        }
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        KEPT_FILES.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::test_folder::TestFolder;

    const fn seconds(seconds: u64) -> Monotonic {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_file_that_changes_is_read_whole_again() {
        let folder = TestFolder::new();
        let long = "line\n".repeat(100_000);
        folder.write("stat", &long);
        let mut file = PolledFile::optional(folder.path("stat"));
        let mut buffer = Vec::new();
        assert!(file.read(seconds(1), &mut buffer));
        assert_eq!(buffer, long.as_bytes());
        folder.write("stat", "short\n");
        assert!(file.read(seconds(1), &mut buffer));
        assert_eq!(buffer, b"short\n");
    }

    #[test]
    fn a_file_that_appears_is_found_after_a_pause() {
        let folder = TestFolder::new();
        let mut file = PolledFile::optional(folder.path("late"));
        let mut buffer = [0; 64];
        assert_eq!(file.read_short(seconds(1), &mut buffer), None);
        folder.write("late", "7\n");
        assert_eq!(file.read_short(seconds(1), &mut buffer), None, "not tried yet");
        assert_eq!(file.read_short(seconds(2), &mut buffer), Some(&b"7\n"[..]));
    }

    #[test]
    fn pauses_double_up_to_half_a_minute() {
        let mut file = PolledFile::optional(PathBuf::from("/does/not/exist"));
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let now = file.failures.retry;
            assert!(!file.read(now, &mut Vec::new()));
            pauses.push((file.failures.retry - now).as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30, 30]);
    }

    #[test]
    fn a_huge_file_is_cut_after_a_line() {
        let folder = TestFolder::new();
        folder.write("huge", "12345\n".repeat(10_000));
        let read = read_once(&folder.path("huge"), 10_000).expect("a file");
        assert_eq!(read.len(), 10_000 / 6 * 6);
        fs::remove_file(folder.path("huge")).expect("a file");
        assert_eq!(read_once(&folder.path("huge"), 10_000), Err(Errno::NOENT));
    }

    #[test]
    fn files_beyond_the_limit_are_read_all_the_same() {
        let folder = TestFolder::new();
        folder.write("value", "5\n");
        let mut files: Vec<_> = (0..MAX_KEPT_FILES + 10).map(|_| PolledFile::optional(folder.path("value"))).collect();
        let mut buffer = [0; 64];
        for file in &mut files {
            assert_eq!(file.read_short(seconds(1), &mut buffer), Some(&b"5\n"[..]));
            assert_eq!(file.read_short(seconds(1), &mut buffer), Some(&b"5\n"[..]));
        }
        assert!(files.iter().filter(|file| file.file.is_some()).count() <= MAX_KEPT_FILES);
    }
}
