//! [`Group`]: counters that are polled together.

use core::fmt;

use esatto_schema::SysStatsWriter;

use crate::data_source::Monotonic;
use crate::polled_file::PolledFile;

/// Counters that are polled together, with a period of their own.
///
/// Reading and writing are separate: all groups of a tick are read one right after the other, and
/// only then a packet begins.
pub(super) trait Group {
    /// Reads the system. Returns true if there is something to write.
    fn read(&mut self, now: Monotonic) -> bool;

    /// Writes what [`read`](Self::read) found.
    fn write(&mut self, stats: &mut SysStatsWriter<'_>);
}

/// A group that is one file.
pub(super) struct FileGroup<W> {
    file: PolledFile,
    text: Vec<u8>,
    /// Writes the counters of the file's text.
    writer: W,
}

impl<W: FnMut(&[u8], &mut SysStatsWriter<'_>)> FileGroup<W> {
    pub(super) fn new(file: PolledFile, writer: W) -> Self {
        Self { file, text: Vec::new(), writer }
    }
}

impl<W: FnMut(&[u8], &mut SysStatsWriter<'_>)> Group for FileGroup<W> {
    fn read(&mut self, now: Monotonic) -> bool {
        self.file.read(now, &mut self.text)
    }

    fn write(&mut self, stats: &mut SysStatsWriter<'_>) {
        (self.writer)(&self.text, stats);
    }
}

impl<W> fmt::Debug for FileGroup<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileGroup").field("file", &self.file).finish_non_exhaustive()
    }
}

/// Groups that are one.
pub(super) struct Both<A, B>(pub(super) A, pub(super) B);

impl<A: Group, B: Group> Group for Both<A, B> {
    fn read(&mut self, now: Monotonic) -> bool {
        self.0.read(now) | self.1.read(now)
    }

    fn write(&mut self, stats: &mut SysStatsWriter<'_>) {
        self.0.write(stats);
        self.1.write(stats);
    }
}
