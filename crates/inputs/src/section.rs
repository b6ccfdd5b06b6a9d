//! Part of a file, with a position of its own.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

/// Part of a file. Several parts of a file are read independently of each other.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    file: Arc<File>,
    begin: u64,
    length: u64,
    at: u64,
}

impl Section {
    /// Creates the section of a whole file.
    pub(crate) fn whole(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file: Arc::new(file), begin: 0, length, at: 0 })
    }

    /// Returns a part of this section. It ends where this section ends.
    pub(crate) fn part(&self, begin: u64, length: u64) -> Self {
        let begin = begin.min(self.length);
        let length = length.min(self.length - begin);
        Self { file: Arc::clone(&self.file), begin: self.begin + begin, length, at: 0 }
    }

    pub(crate) fn len(&self) -> u64 {
        self.length
    }
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.length.saturating_sub(self.at);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read_at(&mut buffer[..wanted], self.begin + self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Section {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(offset) => self.length.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
        };
        self.at = at.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a position before the begin"))?;
        Ok(self.at)
    }
}
