//! Trace files of the simulation: slow, short, full.

use std::collections::VecDeque;

/// A file that a session streams into.
#[derive(Debug, Default)]
pub struct SimFile {
    /// What was written.
    pub bytes: Vec<u8>,
    /// Batches that were handed over and not written yet.
    pub waiting: VecDeque<Vec<u8>>,
    /// So many bytes fit.
    pub room: Option<usize>,
    /// A write failed; nothing is written any more.
    pub has_failed: bool,
    /// `CloseFile` was seen.
    pub is_closed: bool,
    /// Nanoseconds that a write takes.
    pub delay_ns: u64,
    /// `max_file_size_bytes` of the config.
    pub limit: Option<u64>,
    /// Bytes up to the end of the last batch that was written wholly.
    pub whole_bytes: usize,
}

impl SimFile {
    /// Writes the oldest batch; short writes are repeated until nothing more fits.
    ///
    /// # Errors
    ///
    /// What a full disk says.
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

    /// Takes the copy of another file.
    ///
    /// # Errors
    ///
    /// What a full disk says.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.room.is_some_and(|room| bytes.len() > room) {
            self.has_failed = true;
            return Err("no space left on device".to_owned());
        }
        self.bytes.extend_from_slice(bytes);
        self.whole_bytes = self.bytes.len();
        Ok(())
    }

    /// Checks what is in it at the end.
    ///
    /// # Panics
    ///
    /// If it is not a Trace of whole packets, or too long.
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
