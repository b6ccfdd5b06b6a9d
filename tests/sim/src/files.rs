//! The simulated trace files: slow, with short writes, and full.

use std::collections::VecDeque;

/// A file that a session streams into.
#[derive(Debug, Default)]
pub struct SimFile {
    /// The bytes that were written.
    pub bytes: Vec<u8>,
    /// Batches that the service handed over and that are not written yet.
    pub waiting: VecDeque<Vec<u8>>,
    /// The number of bytes that fit.
    pub room: Option<usize>,
    /// True after a failed write: no more is written.
    pub has_failed: bool,
    /// True after `CloseFile`.
    pub is_closed: bool,
    /// Duration of a write in nanoseconds.
    pub delay_ns: u64,
    /// `max_file_size_bytes` of the config.
    pub limit: Option<u64>,
    /// Bytes up to the end of the last batch that was written wholly.
    pub whole_bytes: usize,
}

impl SimFile {
    /// Writes the oldest batch, and repeats short writes until no more fits.
    ///
    /// # Errors
    ///
    /// The error text of a full disk.
    pub fn write_oldest(&mut self) -> Result<(), String> {
        let batch = self.waiting.pop_front().expect("a write for each event");
        let fits = self.room.map_or(batch.len(), |room| room.saturating_sub(self.bytes.len()).min(batch.len()));
        if self.has_failed || fits < batch.len() {
            if !self.has_failed {
                self.bytes.extend_from_slice(&batch[..fits]);
            }
            self.has_failed = true;
            return Err("no space left on device".to_owned());
        }
        self.bytes.extend_from_slice(&batch);
        self.whole_bytes = self.bytes.len();
        Ok(())
    }

    /// Takes a copy of another file's bytes.
    ///
    /// # Errors
    ///
    /// The error text of a full disk.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.room.is_some_and(|room| bytes.len() > room) {
            self.has_failed = true;
            return Err("no space left on device".to_owned());
        }
        self.bytes.extend_from_slice(bytes);
        self.whole_bytes = self.bytes.len();
        Ok(())
    }

    /// Checks the content of a complete file.
    ///
    /// # Panics
    ///
    /// If the file is not a Trace of whole packets, or too long.
    pub fn assert_whole(&self) {
        let mut rest = &self.bytes[..self.whole_bytes];
        while !rest.is_empty() {
            assert_eq!(rest[0], 0x0a, "files: a trace has another field than its packets");
            rest = &rest[1..];
            let len = crate::pb::take_varint(&mut rest).expect("files: a packet's length is cut") as usize;
            assert!(len <= rest.len(), "files: a packet is cut");
            rest = &rest[len..];
        }
        if let Some(limit) = self.limit {
            assert!(self.bytes.len() as u64 <= limit, "files: {} bytes, at most {limit} are wanted", self.bytes.len());
        }
        assert!(self.is_closed, "files: a file is never closed");
        assert!(self.waiting.is_empty());
    }
}
