//! [`MemoryWatch`]: a cheap check that the memory of a process is as it was.

use std::os::fd::AsFd;

use super::kept_file::KeptFile;
use super::slice::Slice;
use crate::proc_folder::{FileBuffer, ProcFolder};

/// Tells whether `status` of a process would say the same of its memory as when it was read.
///
/// To make the text of `status`, the kernel needs seven times as long as for one of the two files
/// that are looked at here. `schedstat` says for how many nanoseconds the main thread ran. If that
/// is the same and there is no other thread, the process did nothing, and its memory can only have
/// been taken or given by the kernel. Then `statm`, with the sizes in pages, is different.
///
/// Both files are read before `status`, so that a change between the reads is noticed the next
/// time.
#[derive(Debug, Default)]
pub(crate) struct MemoryWatch {
    /// The process is known to have one thread.
    has_one_thread: bool,
    schedstat: Option<KeptFile>,
    statm: Option<KeptFile>,
    ran: Text,
    sizes: Text,
}

/// Result of the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    Unchanged,
    /// Or not known.
    Changed,
    /// The process of the files has ended.
    Ended,
}

/// A short text of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Text {
    length: u8,
    bytes: [u8; Self::SIZE],
}

impl MemoryWatch {
    /// Looks at the files. Unless the result is [`Watched::Unchanged`], read `status` after this,
    /// and call [`note_threads`](Self::note_threads).
    pub(crate) fn check(&mut self, proc: &ProcFolder, pid: i32, slice: &mut Slice, buffer: &mut FileBuffer) -> Watched {
        if !self.has_one_thread {
            return Watched::Changed;
        }
        slice.spend(1);
        let ran = match look(&mut self.schedstat, proc, pid, b"schedstat", buffer) {
            Look::Ended => return Watched::Ended,
            // A kernel that does not count says this of every process.
            Look::Text(text) if text == Text::new(b"0 0 0\n") => Text::default(),
            Look::Text(text) => text,
            Look::Absent => Text::default(),
        };
        if ran != self.ran || ran == Text::default() {
            // It may well run until the next time: do not spend the other read.
            *self = Self { has_one_thread: true, schedstat: self.schedstat.take(), ran, ..Self::default() };
            return Watched::Changed;
        }
        match look(&mut self.statm, proc, pid, b"statm", buffer) {
            Look::Ended => Watched::Ended,
            Look::Text(sizes) if sizes == self.sizes => Watched::Unchanged,
            Look::Text(sizes) => {
                self.sizes = sizes;
                Watched::Changed
            }
            Look::Absent => Watched::Changed,
        }
    }

    /// Notes the number of threads in the `status` that was read.
    pub(crate) fn note_threads(&mut self, threads: u64) {
        let has_one_thread = threads == 1;
        if has_one_thread != self.has_one_thread {
            *self = Self { has_one_thread, ..Self::default() };
        }
    }
}

impl Default for Text {
    fn default() -> Self {
        Self { length: 0, bytes: [0; Self::SIZE] }
    }
}

impl Text {
    /// Longer than three numbers of 64 bits, or seven of 32 bits.
    const SIZE: usize = 79;

    /// Keeps a text. One that is too long counts as not known.
    fn new(text: &[u8]) -> Self {
        let mut kept = Self::default();
        if let Some(bytes) = kept.bytes.get_mut(..text.len()) {
            bytes.copy_from_slice(text);
            kept.length = text.len() as u8;
        }
        kept
    }
}

enum Look {
    Text(Text),
    Absent,
    Ended,
}

/// Reads a file that is kept open, or opens and keeps it. A file that cannot be kept is of no use.
fn look(kept: &mut Option<KeptFile>, proc: &ProcFolder, pid: i32, name: &[u8], buffer: &mut FileBuffer) -> Look {
    let is_new = kept.is_none();
    if is_new {
        *kept = proc.open_file(pid, name).and_then(KeptFile::keep);
    }
    match kept.as_ref().map(|file| buffer.read(file.as_fd()).map(Text::new)) {
        Some(Some(text)) => Look::Text(text),
        Some(None) if !is_new => Look::Ended,
        _ => {
            *kept = None;
            Look::Absent
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_stats::fake_proc::FakeProc;

    #[test]
    fn a_process_that_did_not_run_is_unchanged_until_the_kernel_takes_memory() {
        let proc = FakeProc::new();
        proc.file("7/schedstat", "100 20 3\n");
        proc.file("7/statm", "10 5 1 1 0 2 0\n");
        let folder = proc.open();
        let mut watch = MemoryWatch::default();
        let check = |watch: &mut MemoryWatch| watch.check(&folder, 7, &mut Slice::new(), &mut FileBuffer::new(128));
        assert_eq!(check(&mut watch), Watched::Changed, "the number of threads is not known");
        watch.note_threads(1);
        assert_eq!(check(&mut watch), Watched::Changed, "there is nothing to compare with");
        watch.note_threads(1);
        assert_eq!(check(&mut watch), Watched::Changed, "the sizes have not been read yet");
        watch.note_threads(1);
        assert_eq!(check(&mut watch), Watched::Unchanged);
        proc.file("7/statm", "10 4 1 1 0 2 0\n");
        assert_eq!(check(&mut watch), Watched::Changed);
        assert_eq!(check(&mut watch), Watched::Unchanged);
        proc.file("7/schedstat", "101 20 3\n");
        assert_eq!(check(&mut watch), Watched::Changed);
        watch.note_threads(2);
        assert_eq!(check(&mut watch), Watched::Changed, "another thread may run");
    }

    #[test]
    fn a_kernel_that_does_not_count_is_noticed() {
        let proc = FakeProc::new();
        proc.file("7/schedstat", "0 0 0\n");
        proc.file("7/statm", "10 5 1 1 0 2 0\n");
        let mut watch = MemoryWatch::default();
        watch.note_threads(1);
        for _ in 0..4 {
            let result = watch.check(&proc.open(), 7, &mut Slice::new(), &mut FileBuffer::new(128));
            assert_eq!(result, Watched::Changed);
        }
    }
}
