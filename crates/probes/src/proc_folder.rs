//! [`ProcFolder`]: files of processes and threads under `/proc`.

use core::mem::MaybeUninit;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, RawDir, open, openat, readlinkat_raw};

/// A mounted `/proc`, or a folder like it.
///
/// Processes come and go while it is read: each method reports a file that does not exist, cannot
/// be opened or cannot be read in the same way, as absent.
#[derive(Debug)]
pub(crate) struct ProcFolder {
    root: OwnedFd,
}

/// Bytes of the file that was read last. Its memory is used again for the next one.
#[derive(Debug)]
pub(crate) struct FileBuffer {
    /// All initialized; the file is at the beginning.
    memory: Vec<u8>,
    filled: usize,
    max_bytes: usize,
}

/// Numeric names of a folder, in the order of the kernel. It reads the folder in pieces.
#[derive(Debug)]
pub(crate) struct Numbers {
    folder: OwnedFd,
    /// Numbers of the piece that was read last, the next one at the end.
    piece: Vec<u32>,
    kind: FileType,
}

/// Largest piece of a folder that is read at once: some 300 processes.
const PIECE_SIZE: usize = 8 * 1024;

/// First size of a [`FileBuffer`]. Nearly every `status` is smaller.
const FIRST_BUFFER_SIZE: usize = 4 * 1024;

impl ProcFolder {
    /// Opens the folder.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        Ok(Self { root: open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())? })
    }

    /// Returns the ids of all processes.
    pub(crate) fn processes(&self) -> Option<Numbers> {
        self.numbers(b".", FileType::Directory)
    }

    /// Returns the ids of the threads of a process.
    pub(crate) fn threads(&self, pid: i32) -> Option<Numbers> {
        self.numbers(FilePath::new(pid, b"task").as_bytes(), FileType::Directory)
    }

    /// Returns the open file descriptors of a process.
    pub(crate) fn descriptors(&self, pid: i32) -> Option<Numbers> {
        self.numbers(FilePath::new(pid, b"fd").as_bytes(), FileType::Symlink)
    }

    /// Opens a file of a process or thread.
    pub(crate) fn open_file(&self, id: i32, name: &[u8]) -> Option<OwnedFd> {
        self.open_path(FilePath::new(id, name).as_bytes())
    }

    /// Opens a file of the folder itself.
    pub(crate) fn open_path(&self, path: &[u8]) -> Option<OwnedFd> {
        openat(&self.root, path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty()).ok()
    }

    /// Reads a file of a process or thread. An empty file counts as absent.
    pub(crate) fn read<'b>(&self, id: i32, name: &[u8], buffer: &'b mut FileBuffer) -> Option<&'b [u8]> {
        buffer.read(self.open_file(id, name)?)
    }

    /// Returns the target of a descriptor of a process, cut to the buffer's size.
    pub(crate) fn descriptor_target<'b>(&self, pid: i32, descriptor: u32, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let mut path = FilePath::new(pid, b"fd/");
        path.push_number(descriptor);
        let length = readlinkat_raw(&self.root, path.as_bytes(), &mut *buffer).ok()?;
        buffer.get(..length)
    }

    fn numbers(&self, path: &[u8], kind: FileType) -> Option<Numbers> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(&self.root, path, flags, Mode::empty()).ok()?;
        Some(Numbers { folder, piece: Vec::new(), kind })
    }
}

impl FileBuffer {
    /// Makes a buffer for files of which only the first `max_bytes` are wanted.
    pub(crate) const fn new(max_bytes: usize) -> Self {
        Self { memory: Vec::new(), filled: 0, max_bytes }
    }

    /// Reads a file from its beginning. An empty file counts as absent.
    ///
    /// The kernel makes the text of most files of `/proc` at each read of their beginning, and
    /// returns all of it if the buffer suffices. So a buffer that is not filled has the whole file.
    pub(crate) fn read(&mut self, file: impl AsFd) -> Option<&[u8]> {
        self.filled = 0;
        if self.memory.is_empty() {
            self.memory.resize(FIRST_BUFFER_SIZE.min(self.max_bytes), 0);
        }
        loop {
            match rustix::io::pread(&file, &mut self.memory[self.filled..], self.filled as u64) {
                Err(rustix::io::Errno::INTR) => continue,
                // The process ended meanwhile. A beginning without its end is of no use.
                Err(_) => self.filled = 0,
                Ok(count) => {
                    self.filled += count;
                    if count > 0 && self.filled == self.memory.len() && self.filled < self.max_bytes {
                        self.memory.resize((self.filled * 2).min(self.max_bytes), 0);
                        continue;
                    }
                }
            }
            return (self.filled > 0).then(|| self.bytes());
        }
    }

    /// Forgets the bytes.
    pub(crate) fn clear(&mut self) {
        self.filled = 0;
    }

    /// Returns the bytes of the file that was read last.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[..self.filled]
    }
}

impl Iterator for Numbers {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.piece.is_empty() {
            self.read_piece();
        }
        self.piece.pop()
    }
}

impl Numbers {
    /// Reads the next piece that has a number. At the end of the folder, or if it vanished, none is
    /// there.
    fn read_piece(&mut self) {
        let mut memory = [MaybeUninit::uninit(); PIECE_SIZE];
        let mut entries = RawDir::new(&self.folder, &mut memory);
        while let Some(Ok(entry)) = entries.next() {
            let has_kind = entry.file_type() == self.kind || entry.file_type() == FileType::Unknown;
            if let Some(number) = decimal(entry.file_name().to_bytes()).filter(|_| has_kind) {
                self.piece.push(number);
            }
            if entries.is_buffer_empty() && !self.piece.is_empty() {
                break;
            }
        }
        self.piece.reverse();
    }
}

/// Returns the number that a name spells.
fn decimal(name: &[u8]) -> Option<u32> {
    let starts_well = name.first().is_some_and(|&digit| digit != b'0' || name.len() == 1);
    let mut digits = name.iter().map(|byte| u32::from(byte.wrapping_sub(b'0')));
    let number = digits.try_fold(0_u32, |number, digit| match digit {
        0..=9 => number.checked_mul(10)?.checked_add(digit),
        _ => None,
    });
    number.filter(|_| starts_well)
}

/// Path of a file of a process, made without allocation: `123/status`.
struct FilePath {
    bytes: [u8; 48],
    length: usize,
}

impl FilePath {
    fn new(id: i32, name: &[u8]) -> Self {
        let mut path = Self { bytes: [0; 48], length: 0 };
        path.push_number(id.unsigned_abs());
        path.push(b"/");
        path.push(name);
        path
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Names are short constants of this crate.
    fn push(&mut self, part: &[u8]) {
        self.bytes[self.length..][..part.len()].copy_from_slice(part);
        self.length += part.len();
    }

    fn push_number(&mut self, mut number: u32) {
        let mut digits = [0; 10];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.push(&digits[first..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_stats::fake_proc::FakeProc;

    #[test]
    fn only_numeric_folders_are_processes() {
        let proc = FakeProc::new();
        for name in ["1", "20", "4194304", "0x1", "01", "1a", "-3", "99999999999"] {
            proc.folder(name);
        }
        proc.file("300", "not a folder");
        let mut pids: Vec<u32> = proc.open().processes().expect("a folder").collect();
        pids.sort_unstable();
        assert_eq!(pids, [1, 20, 4_194_304]);
    }

    #[test]
    fn a_folder_of_many_pieces_is_read_whole() {
        let proc = FakeProc::new();
        for pid in 1..=2000 {
            proc.folder(&pid.to_string());
        }
        let mut pids: Vec<u32> = proc.open().processes().expect("a folder").collect();
        pids.sort_unstable();
        assert!(pids.into_iter().eq(1..=2000));
    }

    #[test]
    fn a_long_file_is_read_whole_and_cut_at_the_bound() {
        let proc = FakeProc::new();
        let text = "0123456789".repeat(3000);
        proc.file("7/status", &text);
        let folder = proc.open();
        let mut large = FileBuffer::new(1 << 20);
        assert_eq!(folder.read(7, b"status", &mut large), Some(text.as_bytes()));
        let mut small = FileBuffer::new(10_001);
        assert_eq!(folder.read(7, b"status", &mut small), Some(&text.as_bytes()[..10_001]));
        proc.file("7/status", "short");
        assert_eq!(folder.read(7, b"status", &mut large), Some(&b"short"[..]));
        assert_eq!(folder.read(8, b"status", &mut large), None, "there is no such process");
    }
}
