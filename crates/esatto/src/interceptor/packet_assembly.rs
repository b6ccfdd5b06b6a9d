//! Assembles packets for an interceptor from chunks in private memory. The writers are ordinary
//! ones.
//!
//! Each writer has its own arbiter, which is polled on the writer's thread as soon as it has
//! chunks.

use core::any::Any;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use esatto_protozero::HeapBuffer;
use esatto_shm::abi::{CHUNK_HEADER_SIZE, ChunkFlags, ChunkHeader, PageSize};
use esatto_shm::{
    Arbiter, ChunkToPatch, CommitRequest, ExhaustedPolicy, Fragment, Fragments, Notify, Options, Outgoing,
    PrivateRegion, TraceWriter,
};

use super::Erased;

/// Space for the chunk being written, the previous one, and spare ones.
const MEMORY_BYTES: usize = 4 * 4096;
/// `TracePacket.trusted_packet_sequence_id`.
const SEQUENCE_ID: u32 = 10;

pub(super) fn create_writer(interceptor: Arc<dyn Erased>) -> TraceWriter {
    static SEQUENCES: AtomicU64 = AtomicU64::new(1);
    let mut prefix = HeapBuffer::new();
    prefix.message().varint(SEQUENCE_ID, SEQUENCES.fetch_add(1, Ordering::Relaxed));
    let assembly = Assembly {
        state: interceptor.new_state(),
        interceptor,
        prefix: prefix.to_vec(),
        chunks: VecDeque::new(),
        partial: None,
    };
    let polling = Arc::new(Polling { arbiter: OnceLock::new(), assembly: Mutex::new(assembly) });
    let mut options = Options::default();
    // Chunks are copied, and are free at once.
    options.emulation = true;
    let region = Arc::new(PrivateRegion::new(MEMORY_BYTES));
    let Ok(arbiter) = Arbiter::with_options(region, PageSize::DEFAULT, polling.clone(), options) else {
        return TraceWriter::null();
    };
    let _ = polling.arbiter.set(Arc::downgrade(&arbiter));
    // The writer keeps its arbiter alive. The number of the buffer has no meaning.
    arbiter.create_writer(1, ExhaustedPolicy::Drop)
}

/// Polls the arbiter when it has something.
struct Polling {
    arbiter: OnceLock<Weak<Arbiter>>,
    assembly: Mutex<Assembly>,
}

/// Assembles packets.
struct Assembly {
    interceptor: Arc<dyn Erased>,
    state: Box<dyn Any + Send>,
    /// The bytes before each packet.
    prefix: Vec<u8>,
    /// Chunks that wait for lengths, and those after them.
    chunks: VecDeque<Chunk>,
    /// A packet that continues in the next chunk.
    partial: Option<Vec<u8>>,
}

struct Chunk {
    header: ChunkHeader,
    payload: Vec<u8>,
    needs_patches: bool,
}

impl Notify for Polling {
    fn wake(&self) {
        let Some(arbiter) = self.arbiter.get().and_then(Weak::upgrade) else { return };
        let mut assembly = self.assembly.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(outgoing) = arbiter.poll_outgoing() {
            if let Outgoing::Commit(request) = outgoing {
                assembly.commit(request);
            }
        }
    }
}

impl Assembly {
    fn commit(&mut self, request: CommitRequest) {
        for entry in request.moves {
            self.add(entry.data.unwrap_or_default());
        }
        for entry in &request.patches {
            self.patch(entry);
        }
        self.deliver();
    }

    fn add(&mut self, mut data: Vec<u8>) {
        let Some(header) = data.first_chunk::<CHUNK_HEADER_SIZE>() else { return };
        let header = ChunkHeader::from_bytes(*header);
        let needs_patches = header.packets.flags().contains(ChunkFlags::NEEDS_PATCHING);
        self.chunks.push_back(Chunk { header, payload: data.split_off(CHUNK_HEADER_SIZE), needs_patches });
    }

    fn patch(&mut self, entry: &ChunkToPatch) {
        let Some(chunk) = self.chunks.iter_mut().find(|chunk| chunk.header.chunk_id == entry.chunk_id) else { return };
        for patch in &entry.patches {
            let at = usize::from(patch.offset);
            if let Some(bytes) = chunk.payload.get_mut(at..at + patch.data.len()) {
                bytes.copy_from_slice(&patch.data);
            }
        }
        chunk.needs_patches &= entry.has_more_patches;
    }

    fn deliver(&mut self) {
        while self.chunks.front().is_some_and(|chunk| !chunk.needs_patches) {
            let Some(chunk) = self.chunks.pop_front() else { break };
            let packets = chunk.header.packets;
            let (first_continues, last_continues) = (
                packets.flags().contains(ChunkFlags::FIRST_CONTINUES),
                packets.flags().contains(ChunkFlags::LAST_CONTINUES),
            );
            if !first_continues {
                self.partial = None;
            }
            let last = packets.count().wrapping_sub(1);
            for (number, fragment) in (0..).zip(Fragments::new(&chunk.payload, packets.count())) {
                let Fragment::Data(data) = fragment else {
                    self.partial = None;
                    break;
                };
                let mut packet = match self.partial.take() {
                    Some(begun) if number == 0 => begun,
                    // The rest of a packet whose begin was lost.
                    _ if number == 0 && first_continues => continue,
                    _ => self.prefix.clone(),
                };
                packet.extend_from_slice(data);
                if last_continues && number == last {
                    self.partial = Some(packet);
                } else if packet.len() > self.prefix.len() {
                    let (interceptor, state) = (&self.interceptor, &mut self.state);
                    let _ = catch_unwind(AssertUnwindSafe(|| interceptor.packet(&mut **state, &packet)));
                }
            }
        }
    }
}
