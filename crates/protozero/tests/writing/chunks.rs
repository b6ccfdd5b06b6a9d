//! Delegate that provides chunks of one size and records all calls.

use esatto_protozero::{Delegate, Filled};

#[derive(Debug)]
pub(crate) struct Chunks {
    pub(crate) size: usize,
    /// The filled part of every chunk, with the lengths at its release.
    pub(crate) raw: Vec<Vec<u8>>,
    pub(crate) filled: Vec<Filled>,
    /// Chunk, offset and value of every length that came later, in the order they were announced.
    pub(crate) lengths: Vec<(usize, usize, Option<[u8; 4]>)>,
}

impl Chunks {
    pub(crate) fn of(size: usize) -> Self {
        Self { size, raw: Vec::new(), filled: Vec::new(), lengths: Vec::new() }
    }

    /// Returns the chunks with all lengths filled in.
    pub(crate) fn patched(&self) -> Vec<Vec<u8>> {
        let mut chunks = self.raw.clone();
        for &(chunk, offset, value) in &self.lengths {
            assert_eq!(self.raw[chunk][offset..offset + 4], [0; 4], "an open length is zero");
            chunks[chunk][offset..offset + 4].copy_from_slice(&value.expect("every length is told"));
        }
        chunks
    }

    /// Returns all bytes in one vector.
    pub(crate) fn stitched(&self) -> Vec<u8> {
        self.patched().concat()
    }
}

impl Delegate for Chunks {
    type Buffer = Vec<u8>;

    fn acquire(&mut self, min_len: usize) -> Option<Vec<u8>> {
        assert!(min_len <= self.size, "chunks are at least as large as what is asked for at once");
        // The content of new memory must not matter.
        Some(vec![0xee; self.size])
    }

    fn release(&mut self, mut buffer: Vec<u8>, filled: Filled) {
        assert_eq!(buffer.len(), self.size);
        buffer.truncate(filled.used);
        self.raw.push(buffer);
        self.filled.push(filled);
    }

    fn defer_length(&mut self, offset: usize) -> Option<u32> {
        self.lengths.push((self.raw.len(), offset, None));
        Some(self.lengths.len() as u32 - 1)
    }

    fn fill_length(&mut self, number: u32, bytes: [u8; 4]) {
        let place = &mut self.lengths[number as usize].2;
        assert!(place.is_none(), "a length is told once");
        *place = Some(bytes);
    }

    fn abandon(&mut self) {
        panic!("nothing is leaked, and chunks are never short");
    }
}
