//! The central buffer, which holds chunks between commit and reading.
//!
//! It is one fixed piece of memory, used as a ring (or filled once, policy DISCARD). Every
//! committed chunk becomes a *record*: a 16-byte header and the chunk's fragments, padded to 16
//! bytes. Records lie back to back from 0 to the high-water mark, and the write position always
//! lies between two records. The rest of a partly covered record, and a record that was read,
//! become padding records. So the memory can be walked from the write position (oldest) around to
//! it.
//!
//! ```text
//!   0            write                                     used        capacity
//!   ├ rec ┬ rec ─┤ rec ┬ padding ┬ rec ┬ rec ┬ padding ────┤  untouched │
//!     newest        oldest
//! ```
//!
//! A *sequence* is the data of one writer of one producer. It keeps the offsets of its records
//! ordered by chunk id, and the last chunk that was consumed (to refuse duplicates and to see
//! gaps). It also keeps the losses not reported yet. It outlives its records. Reading goes from
//! sequence to sequence, in the order of producer and writer, and returns the packets of each in
//! the order of its chunk ids. It visits only the sequences that have changed since they were read
//! last. A sequence that waits costs nothing until data or patches arrive for it.
//!
//! Overwriting a record consumes it, and everything before it in its sequence, without returning
//! packets: the *erasing read*. Unread data count as overwritten, and the sequence's next packet
//! tells the loss.
//!
//! The behaviour is `docs/spec/trace-buffer.md`, V2, with the amendments of its §19. The loss marks
//! WRITER_ABORT and CHUNK_CORRUPTED stay with the chunk, and are reported after the packets before
//! the loss. READ_GAP is seen in every order of commits. A fragmented packet of empty fragments is
//! not returned.
//!
//! Chunk contents are untrusted: the service checks sizes when it copies a chunk and again whenever
//! it reads one.

mod chunk_list;
mod direct;
mod fragment;
mod histogram;
mod overwrite;
mod read;
mod record;
mod sequence;
mod sequences;
pub(crate) mod table;
mod write;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

pub(crate) use chunk_list::is_before;
pub use histogram::{HISTOGRAM_BUCKETS, HISTOGRAM_LIMITS};
pub use read::{FRAGMENT_COST, MAX_PACKET_COST, Next};
pub use sequences::{BYTES_PER_FREE_SEQUENCE, FREE_SEQUENCES, MAX_EMPTY_SEQUENCES, MIN_CROWDED_RECORD};

pub use crate::ids::{ProducerId, WriterId};
use crate::shared_buffer::ChunkHeader;
use sequences::Sequences;

/// The largest buffer, in KiB: sizes are rounded up to 4096 and must stay below 2^32 bytes.
pub const MAX_SIZE_KB: u32 = 4_194_300;

/// Bits of `TracePacket.previous_packet_dropped` (`docs/spec/trace-buffer.md §12`).
pub mod loss {
    /// Something was lost; set together with any other bit.
    pub const PRESENT: u32 = 1;
    /// A chunk id does not follow the one consumed before.
    pub const READ_GAP: u32 = 2;
    /// A fragment could not be parsed.
    pub const CHUNK_CORRUPTED: u32 = 4;
    /// A continuation without its beginning.
    pub const ORPHAN_CONTINUATION: u32 = 8;
    /// A chunk is missing inside a packet.
    pub const REASSEMBLY_GAP: u32 = 16;
    /// The next chunk does not continue the packet.
    pub const REASSEMBLY_BROKEN_CHAIN: u32 = 32;
    /// Unread data was overwritten.
    pub const OVERWRITE: u32 = 64;
    /// The writer abandoned a packet.
    pub const WRITER_ABORT: u32 = 128;
    /// The writer found the shared memory full. Only writers tell this.
    pub const SHARED_MEMORY_FULL: u32 = 256;
}

/// Costs in units of [`CentralBuffer::work`].
mod work {
    /// Bytes that can be copied in the time of a visit to one record.
    const BYTES_PER_UNIT: usize = 64;

    /// Returns the cost of copying this many bytes.
    pub(super) fn of_copy(bytes: usize) -> u64 {
        1 + (bytes / BYTES_PER_UNIT) as u64
    }
}

/// Identity of a producer, which its transport vouches for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// User id.
    pub uid: i32,
    /// Process id, if it is known.
    pub pid: Option<i32>,
    /// 0 is the host.
    pub machine_id: u32,
}

/// Behaviour of a full buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillPolicy {
    /// New records overwrite the oldest ones.
    Ring,
    /// The buffer accepts nothing more.
    Discard,
}

/// A chunk to be stored. Everything but the first two fields is untrusted.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// The producer that committed it.
    pub producer: ProducerId,
    /// That producer's identity.
    pub identity: Identity,
    /// The header as it was loaded.
    pub header: ChunkHeader,
    /// False if the chunk was still being written when it was copied. Its last fragment then cannot
    /// be trusted.
    pub complete: bool,
    /// The chunk without its header, used or not.
    pub payload: &'a [u8],
}

/// The four bytes that a patch puts at an offset of a chunk's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// From the start of the payload.
    pub offset: u32,
    /// The bytes.
    pub data: [u8; 4],
}

/// A packet that a reader gets.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The producer of the packet.
    pub producer: ProducerId,
    /// The writer of the packet.
    pub writer: WriterId,
    /// The producer's identity.
    pub identity: Identity,
    /// [`loss`] bits for data of this sequence lost directly before this packet, 0 = nothing.
    pub loss: u32,
    data: &'a [u8],
    ranges: &'a [(u32, u32)],
}

impl<'a> Packet<'a> {
    /// Iterates over the packet's bytes, one slice per non-empty fragment.
    pub fn slices(&self) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        let data = self.data;
        self.ranges.iter().map(move |&(offset, len)| &data[offset as usize..][..len as usize])
    }

    /// Returns the bytes of all slices.
    pub fn size_bytes(&self) -> usize {
        self.ranges.iter().map(|&(_, len)| len as usize).sum()
    }
}

/// Counters of one buffer, named as in `TraceStats.BufferStats` (`docs/spec/trace-buffer.md §14`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the protocol, explained there")]
pub struct Stats {
    pub bytes_written: u64,
    pub chunks_written: u64,
    pub chunks_rewritten: u64,
    pub chunks_relocated: u64,
    pub chunks_overwritten: u64,
    pub bytes_overwritten: u64,
    pub chunks_read: u64,
    pub bytes_read: u64,
    pub padding_bytes_written: u64,
    pub padding_bytes_cleared: u64,
    pub chunks_committed_out_of_order: u64,
    pub write_wrap_count: u64,
    pub patches_succeeded: u64,
    pub patches_failed: u64,
    pub readaheads_succeeded: u64,
    pub readaheads_failed: u64,
    pub abi_violations: u64,
    pub chunks_discarded: u64,
    pub trace_writer_packet_loss: u64,
    /// Not in the protocol: the chunks of `chunks_discarded` that found the buffer full or closed.
    /// The others had been read already, or came too late, which shows as a gap.
    pub chunks_without_room: u64,
    /// Not in the protocol: the part of `patches_failed` whose chunks a ring has overwritten. These
    /// chunks are lost, and the patches are not a loss beside them.
    pub patches_of_overwritten: u64,
    /// Not in the protocol: gaps between two packets of a writer that found the shared memory full.
    /// `trace_writer_packet_loss` counts the gaps that begin within a packet.
    pub gaps_between_packets: u64,
}

/// Statistics of one writer's chunks.
#[derive(Clone, Copy, Debug)]
pub struct WriterStats {
    /// The producer.
    pub producer: ProducerId,
    /// Its writer.
    pub writer: WriterId,
    /// The producer's identity.
    pub identity: Identity,
    /// Chunks per bucket of fragment bytes.
    pub counts: [u64; HISTOGRAM_BUCKETS],
    /// Sum of the fragment bytes per bucket.
    pub sums: [u64; HISTOGRAM_BUCKETS],
}

impl WriterStats {
    fn of(sequence: &sequence::Sequence) -> Self {
        let (counts, sums) = sequence.histogram.buckets();
        let (producer, writer, identity) = (sequence.producer, sequence.writer, sequence.identity);
        Self { producer, writer, identity, counts, sums }
    }
}

/// Reason why a buffer cannot be allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocateError {
    /// The size is 0 or above [`MAX_SIZE_KB`].
    Size {
        /// The size that was asked for.
        size_kb: u32,
    },
    /// The memory cannot be reserved.
    Memory {
        /// The size that was asked for.
        size_kb: u32,
    },
}

/// When the writers of a ring were last asked for their names.
#[derive(Clone, Copy, Debug, Default)]
struct Named {
    /// `stats.bytes_written` at that time.
    bytes: u64,
    /// The monotonic clock before which they are not asked again.
    next_ns: u64,
    /// They have to be asked again.
    is_due: bool,
}

/// One central buffer.
#[derive(Debug)]
pub struct CentralBuffer {
    /// All records. Its length is the high-water mark; its capacity is reserved from the start.
    data: Vec<u8>,
    /// Bytes that may be used; a multiple of 4096.
    capacity: usize,
    /// Offset of the next record; ≤ data.len().
    write: usize,
    policy: FillPolicy,
    /// DISCARD only: a chunk did not fit.
    closed: bool,
    read_only: bool,
    /// Bytes of the records that are not consumed.
    unread: usize,
    /// See [`keep_unread`](Self::keep_unread).
    keeps_unread: bool,
    /// Packets that were returned with a loss before them.
    losses_told: u64,
    /// When writers were last asked for their names.
    named: Named,
    sequences: Sequences,
    stats: Stats,
    /// Position of the read pass.
    pass: read::Pass,
    /// Work that was done outside of `sequences`.
    work: u64,
    /// Offset and length of each fragment of the packet returned last.
    ranges: Vec<(u32, u32)>,
}

impl CentralBuffer {
    /// Reserves a buffer. Memory is touched only as data arrives.
    ///
    /// # Errors
    ///
    /// The size is out of range, or the memory cannot be reserved.
    pub fn new(size_kb: u32, policy: FillPolicy) -> Result<Self, AllocateError> {
        if size_kb == 0 || size_kb > MAX_SIZE_KB {
            return Err(AllocateError::Size { size_kb });
        }
        let memory = AllocateError::Memory { size_kb };
        let size = usize::try_from(size_kb).map_err(|_| memory)?;
        let capacity = size.checked_mul(1024).and_then(|bytes| bytes.checked_next_multiple_of(4096)).ok_or(memory)?;
        Self::with_capacity(capacity, policy).ok_or(memory)
    }

    fn with_capacity(capacity: usize, policy: FillPolicy) -> Option<Self> {
        let mut data = Vec::new();
        data.try_reserve_exact(capacity).ok()?;
        Some(Self::over(data, capacity, policy))
    }

    fn over(data: Vec<u8>, capacity: usize, policy: FillPolicy) -> Self {
        Self {
            data,
            capacity,
            write: 0,
            policy,
            closed: false,
            read_only: false,
            unread: 0,
            keeps_unread: false,
            losses_told: 0,
            named: Named::default(),
            sequences: Sequences::new(capacity),
            stats: Stats::default(),
            pass: read::Pass::Over,
            work: 0,
            ranges: Vec::new(),
        }
    }

    /// Returns the bytes of the buffer, rounded up to 4096.
    pub fn size_bytes(&self) -> usize {
        self.capacity
    }

    /// Returns the bytes that a clone copies: all records with padding, and the state of each
    /// sequence.
    pub(crate) fn clone_bytes(&self) -> usize {
        self.data.len() + self.sequences.bytes()
    }

    /// Returns the counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the work so far: records and fragments visited, list entries compared and moved,
    /// bytes copied (64 are one unit).
    ///
    /// For each byte that goes in or out it grows by no more than a constant, times the logarithm
    /// of the stored chunks.
    pub fn work(&self) -> u64 {
        self.work + self.sequences.work()
    }

    /// Iterates over every writer that the buffer remembers, in the order of producer and writer.
    /// Sorts them first.
    pub fn writers(&self) -> impl Iterator<Item = WriterStats> {
        self.sequences.current().into_iter().map(WriterStats::of)
    }

    /// Iterates over the writers in no particular order, for callers that want only some of them.
    pub(crate) fn unsorted_writers(&self) -> impl Iterator<Item = WriterStats> {
        self.sequences.unsorted().map(WriterStats::of)
    }

    /// Tells whether the buffer holds no records.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Moves the buffer out, and leaves a new one of the same size and policy without content,
    /// sequences and counts. Returns `None`, and changes nothing, if there is no memory.
    pub fn try_take(&mut self) -> Option<Self> {
        let mut fresh = Self::with_capacity(self.capacity, self.policy)?;
        fresh.keeps_unread = self.keeps_unread;
        Some(core::mem::replace(self, fresh))
    }

    /// Marks the next packet of each sequence of another buffer, whose content is lost unread.
    pub fn inherit_loss(&mut self, gone: &Self) {
        for sequence in gone.sequences.in_order() {
            let unread = if sequence.chunks().is_empty() { 0 } else { loss::PRESENT | loss::OVERWRITE };
            let lost = sequence.loss | unread;
            if lost != 0 {
                self.sequences.lose(sequence.producer, sequence.writer, sequence.identity, lost);
            }
        }
    }

    /// Lets new records step over those that are not consumed, as long as there is room elsewhere.
    /// Otherwise a ring overwrites the oldest records.
    ///
    /// For a buffer that is read faster than it fills: the owner of the chunks waits while
    /// [`unread_bytes`](Self::unread_bytes) is too large. A packet whose rest comes late then stays,
    /// however many other chunks come meanwhile.
    pub fn keep_unread(&mut self) {
        self.keeps_unread = true;
    }

    /// Returns whether new records [step over](Self::keep_unread) others.
    pub(crate) fn keeps_unread(&self) -> bool {
        self.keeps_unread
    }

    /// Returns how many packets were read that follow a loss.
    pub(crate) fn losses_told(&self) -> u64 {
        self.losses_told
    }

    /// Returns whether the writers of a ring have to write their names again, once until
    /// [`ask_for_names`](Self::ask_for_names). This is so each time `1 / parts` of the ring has been
    /// written.
    pub(crate) fn begins_to_need_names(&mut self, parts: u64) -> bool {
        let written = self.stats.bytes_written - self.named.bytes;
        let begins = !self.named.is_due && self.policy == FillPolicy::Ring && written * parts >= self.capacity as u64;
        self.named.is_due |= begins;
        begins
    }

    /// Returns whether the writers may be asked now, and takes them as asked.
    pub(crate) fn ask_for_names(&mut self, now_ns: u64) -> bool {
        self.named.is_due = false;
        let may_ask = now_ns >= self.named.next_ns;
        if may_ask {
            self.named.bytes = self.stats.bytes_written;
        }
        may_ask
    }

    /// Lets no writer be asked for names before this time.
    pub(crate) fn ask_no_names_before(&mut self, next_ns: u64) {
        self.named.next_ns = next_ns;
    }

    /// Returns the bytes that a chunk takes in a buffer.
    pub(crate) fn record_bytes(payload_bytes: usize) -> usize {
        record::size_for(payload_bytes)
    }

    /// Returns the bytes of the records that are not consumed.
    pub fn unread_bytes(&self) -> usize {
        self.unread
    }

    /// Makes the buffer read-only.
    pub fn make_read_only(&mut self) {
        self.read_only = true;
    }

    /// Copies the content into an independent read-only buffer. Returns `None` if there is no
    /// memory.
    ///
    /// The copy has no packets that were read here, but it has the pending loss marks.
    pub fn try_clone(&self) -> Option<Self> {
        let mut data = Vec::new();
        data.try_reserve_exact(self.data.len()).ok()?;
        data.extend_from_slice(&self.data);
        let mut copy = Self::over(data, self.capacity, self.policy);
        copy.write = self.write;
        copy.closed = self.closed;
        copy.unread = self.unread;
        copy.read_only = true;
        copy.sequences = self.sequences.clone();
        copy.sequences.clear_histograms();
        copy.stats =
            Stats { chunks_read: 0, bytes_read: 0, readaheads_succeeded: 0, readaheads_failed: 0, ..self.stats };
        Some(copy)
    }

    /// Checks that records, sequences and write position agree. For tests: it visits every record.
    ///
    /// # Panics
    ///
    /// If they do not agree.
    pub fn assert_consistent(&self) {
        let mut at = 0;
        let mut chunks = 0;
        let mut unread = 0;
        let mut saw_write = self.write == self.data.len();
        while at < self.data.len() {
            saw_write |= at == self.write;
            let record = record::load(&self.data, at);
            if let record::Record::Chunk(chunk) = record {
                chunks += 1;
                unread += chunk.size();
                assert!(chunk.read <= chunk.available && chunk.available <= chunk.reserved);
                let stored = self.sequences.get(chunk.slot).chunks().find(chunk.chunk_id);
                assert_eq!(stored.map(|stored| stored.offset as usize), Some(at));
            }
            assert!(record.size() >= record::HEADER && record.size() % record::HEADER == 0);
            at += record.size();
        }
        assert_eq!(at, self.data.len());
        assert_eq!(unread, self.unread);
        assert!(saw_write, "the write position is between two records");
        assert!(self.data.len() <= self.capacity);
        assert_eq!(chunks, self.sequences.iter().map(|sequence| sequence.chunks().len()).sum::<usize>());
        self.sequences.assert_consistent();
    }
}
