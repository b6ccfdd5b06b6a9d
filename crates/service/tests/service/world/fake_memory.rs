//! Shared memory of the tests.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use esatto_service::{ChunkHeader, ScrapedChunk, SharedBuffer};

/// Shared memory without bytes: chunks in slots.
#[derive(Clone, Debug, Default)]
pub(crate) struct FakeMemory(Arc<Mutex<Slots>>);

#[derive(Debug, Default)]
struct Slots {
    size_bytes: usize,
    page_size_bytes: usize,
    chunks: BTreeMap<(u32, u32), (ChunkHeader, bool, Vec<u8>)>,
    /// Complete chunks that a thread writes during each of the next scrapes, behind and before it.
    during_scrapes: VecDeque<[NewChunk; 2]>,
}

/// A page, and the complete chunk that it gets.
type NewChunk = (u32, ChunkHeader, Vec<u8>);

impl FakeMemory {
    pub(crate) fn new(size_bytes: usize, page_size_bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(Slots { size_bytes, page_size_bytes, ..Slots::default() })))
    }

    pub(crate) fn put(&self, page: u32, header: ChunkHeader, complete: bool, payload: &[u8]) {
        self.0.lock().unwrap().chunks.insert((page, 0), (header, complete, payload.to_vec()));
    }

    /// The next scrape sees only the second of these chunks, those after it both.
    pub(crate) fn write_during_scrape(&self, behind: NewChunk, before: NewChunk) {
        self.0.lock().unwrap().during_scrapes.push_back([behind, before]);
    }

    pub(crate) fn chunks(&self) -> usize {
        self.0.lock().unwrap().chunks.len()
    }
}

impl SharedBuffer for FakeMemory {
    fn size_bytes(&self) -> usize {
        self.0.lock().unwrap().size_bytes
    }

    fn page_size_bytes(&self) -> usize {
        self.0.lock().unwrap().page_size_bytes
    }

    fn take_chunk(&mut self, page: u32, chunk: u32, payload: &mut Vec<u8>) -> Option<ChunkHeader> {
        let mut slots = self.0.lock().unwrap();
        let (header, _, bytes) = match slots.chunks.get(&(page, chunk)) {
            Some((_, true, _)) => slots.chunks.remove(&(page, chunk))?,
            _ => return None,
        };
        payload.clear();
        payload.extend_from_slice(&bytes);
        Some(header)
    }

    fn scrape(&mut self, _: &mut Vec<u8>, each: &mut dyn FnMut(ScrapedChunk<'_>)) {
        let mut slots = self.0.lock().unwrap();
        let mut passed = None;
        for (is_seen, (page, header, payload)) in
            [false, true].into_iter().zip(slots.during_scrapes.pop_front().into_iter().flatten())
        {
            if !is_seen {
                passed = Some((page, 0));
            }
            slots.chunks.insert((page, 0), (header, true, payload));
        }
        for (at, (header, complete, payload)) in &slots.chunks {
            if Some(*at) != passed && (*complete || header.count >= 2) {
                each(ScrapedChunk { header: *header, complete: *complete, payload });
            }
        }
    }
}
