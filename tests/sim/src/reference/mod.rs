//! The reference buffer: the central buffer as `docs/spec/trace-buffer.md` describes it (V2 with
//! the amendments of §19). It is simple and slow. The service must return the same packets.

mod read;
mod room;
mod sequences;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

const HEADER: usize = 16;
const FIRST_CONTINUES: u8 = 1;
const LAST_CONTINUES: u8 = 2;
const NEEDS_PATCHING: u8 = 4;
const WIRE: u8 = 7;
/// Most chunks that are freed before an overwritten one, or after it with their packet (§4).
const TAKEN_ALONG: usize = 16;
/// Empty packets after which an overwritten chunk counts as unread (§4).
const EMPTY_PACKETS: usize = 8;

/// Loss bits (§12).
pub mod loss {
    #![allow(missing_docs, reason = "the names of the spec")]
    pub const PRESENT: u32 = 1;
    pub const READ_GAP: u32 = 2;
    pub const CHUNK_CORRUPTED: u32 = 4;
    pub const ORPHAN: u32 = 8;
    pub const REASSEMBLY_GAP: u32 = 16;
    pub const BROKEN_CHAIN: u32 = 32;
    pub const OVERWRITE: u32 = 64;
    pub const WRITER_ABORT: u32 = 128;
}

/// Producer and writer.
pub type Key = (u16, u16);

/// The same, with a number for each writer that had this id.
type Life = (u16, u16, u32);

/// A chunk as it comes out of shared memory or a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Incoming {
    /// Number in its sequence.
    pub chunk_id: u32,
    /// The writer.
    pub writer: u16,
    /// Fragments announced.
    pub count: u16,
    /// Flags.
    pub flags: u8,
    /// False if it was scraped while its writer was writing.
    pub complete: bool,
    /// The bytes after the header.
    pub payload: Vec<u8>,
}

/// A packet that must come next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The sequence of the packet.
    pub key: Key,
    /// The loss directly before it.
    pub loss: u32,
    /// All its bytes.
    pub bytes: Vec<u8>,
}

/// `TraceStats.BufferStats` (§14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the spec")]
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
    pub out_of_order: u64,
    pub write_wrap_count: u64,
    pub patches_succeeded: u64,
    pub patches_failed: u64,
    pub readaheads_succeeded: u64,
    pub readaheads_failed: u64,
    pub abi_violations: u64,
    pub chunks_discarded: u64,
    pub packet_loss: u64,
}

#[derive(Clone, Debug)]
struct Chunk {
    id: u32,
    offset: usize,
    reserved: usize,
    /// The valid fragments.
    bytes: Vec<u8>,
    read: usize,
    flags: u8,
    incomplete: bool,
    /// The loss after the fragments.
    lost_behind: u32,
}

impl Chunk {
    fn is_read(&self) -> bool {
        self.read >= self.bytes.len()
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.lost_behind == 0
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns true if it has a packet that counts as overwritten when the chunk is overwritten
    /// (§4).
    fn has_unread(&self) -> bool {
        let mut at = self.read;
        for _ in 0..EMPTY_PACKETS {
            match fragment(&self.bytes, at) {
                _ if at >= self.bytes.len() => return false,
                Ok((start, 0)) => at = start,
                _ => return true,
            }
        }
        at < self.bytes.len()
    }

    fn size(&self) -> usize {
        record_size(self.reserved)
    }
}

#[derive(Clone, Debug, Default)]
struct Sequence {
    chunks: VecDeque<Chunk>,
    /// Id, fragment bytes, and whether it was incomplete.
    consumed: Option<(u32, usize, bool)>,
    loss: u32,
    /// True while it waits, for the rest of a packet or for something else, and nothing has
    /// changed.
    waits: Option<bool>,
    /// The first and the last chunk of the packet whose rest it waits for.
    begun: Option<(u32, u32)>,
    last_used: u64,
    /// True if another writer has its id.
    is_retired: bool,
    /// True if it may be a sequence that was forgotten.
    is_ended: bool,
    may_be_known: bool,
}

impl Sequence {
    /// Returns the loss that is known or possible when the read of its first chunk begins (§11,
    /// §12).
    fn lost_before(&self, first: &Chunk) -> u32 {
        match self.consumed {
            Some((id, ..)) if first.read != 0 || first.id == id => 0,
            Some((id, ..)) if first.id != id.wrapping_add(1) => loss::PRESENT | loss::READ_GAP,
            // The end of its last chunk never came.
            Some((_, _, true)) => loss::PRESENT | loss::OVERWRITE,
            // The buffer may have forgotten the sequence.
            None if self.may_be_known && first.id != 0 && first.read == 0 => loss::PRESENT | loss::READ_GAP,
            _ => 0,
        }
    }

    /// Notes that its writer sends no more.
    fn ends(&mut self) {
        if let Some((_, _, incomplete @ true)) = &mut self.consumed {
            *incomplete = false;
            self.loss |= loss::PRESENT | loss::OVERWRITE;
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Record {
    size: usize,
    /// `None` is padding.
    chunk: Option<(Life, u32)>,
}

/// One buffer.
#[derive(Clone, Debug)]
pub struct Reference {
    capacity: usize,
    discards: bool,
    closed: bool,
    /// True for the buffer of a clone.
    pub(crate) read_only: bool,
    write: usize,
    used: usize,
    records: BTreeMap<usize, Record>,
    sequences: BTreeMap<Life, Sequence>,
    /// The number of the writer to which the next chunk of an id belongs.
    current: BTreeMap<Key, u32>,
    lives: u32,
    /// The counters of the spec.
    pub stats: Stats,
    /// Writers whose next packet reports a loss that follows it.
    pub(crate) told_early: BTreeSet<Key>,
    has_forgotten: bool,
    empty: usize,
    copies: u64,
    /// The pass under way: the sequence whose turn it is, and its last chunk in this pass.
    pass: Option<Option<(Life, u32)>>,
    /// Chunks that became free space.
    pub(crate) left: u64,
}

fn record_size(payload: usize) -> usize {
    (HEADER + payload).next_multiple_of(16)
}

fn before(a: u32, b: u32) -> bool {
    a != b && b.wrapping_sub(a) < 1 << 31
}

/// Start and length of the fragment whose size field is at `at`; `Err(true)`: a drop marker.
fn fragment(bytes: &[u8], at: usize) -> Result<(usize, usize), bool> {
    let mut value = 0u128;
    for i in 0..10 {
        let Some(&byte) = bytes.get(at + i) else { return Err(false) };
        value |= u128::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            let value = value as u64;
            if value == 0x0fff_ffff {
                return Err(true);
            }
            let start = at + i + 1;
            return if value <= (bytes.len() - start) as u64 { Ok((start, value as usize)) } else { Err(false) };
        }
    }
    Err(false)
}

impl Reference {
    /// Creates a buffer of `size_kb` KiB.
    pub fn new(size_kb: u32, discards: bool) -> Self {
        Self {
            capacity: (size_kb as usize * 1024).next_multiple_of(4096),
            discards,
            closed: false,
            read_only: false,
            write: 0,
            used: 0,
            records: BTreeMap::new(),
            sequences: BTreeMap::new(),
            current: BTreeMap::new(),
            lives: 0,
            stats: Stats::default(),
            told_early: BTreeSet::new(),
            has_forgotten: false,
            empty: 0,
            copies: 0,
            pass: None,
            left: 0,
        }
    }

    /// Bytes of the buffer.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Number of writers that it knows.
    pub fn sequence_count(&self) -> usize {
        self.sequences.len()
    }

    /// Returns a clone (§15).
    pub fn cloned(&self) -> Self {
        let mut clone = self.clone();
        clone.stats.chunks_read = 0;
        clone.stats.bytes_read = 0;
        clone.stats.readaheads_succeeded = 0;
        clone.stats.readaheads_failed = 0;
        clone.pass = None;
        clone
    }

    /// Returns true if nothing was ever stored in it.
    pub fn is_untouched(&self) -> bool {
        self.used == 0
    }

    /// Returns an empty buffer of the same kind.
    pub fn emptied(&self) -> Self {
        Self::new((self.capacity / 1024) as u32, self.discards)
    }

    /// Stores a chunk (§3 to §7).
    pub fn copy(&mut self, producer: u16, chunk: &Incoming) {
        if self.closed {
            self.stats.chunks_discarded += 1;
            return;
        }
        let payload = &chunk.payload;
        if payload.len() > 65535 {
            self.stats.abi_violations += 1;
            return;
        }
        let mut flags = chunk.flags & WIRE;
        let mut count = chunk.count;
        if !chunk.complete {
            flags &= FIRST_CONTINUES;
            count = count.saturating_sub(1);
        }
        let (mut valid, mut lost_behind, mut broken) = (0, 0, None);
        for _ in 0..count {
            match fragment(payload, valid) {
                Ok((start, len)) => valid = start + len,
                Err(is_marker) => {
                    flags &= FIRST_CONTINUES;
                    lost_behind = if is_marker { loss::WRITER_ABORT } else { loss::CHUNK_CORRUPTED };
                    broken = Some(is_marker);
                    break;
                }
            }
        }
        let reserved = if chunk.complete { valid } else { payload.len() };
        if record_size(reserved) > self.capacity {
            self.stats.abi_violations += 1;
            return;
        }
        let new = Chunk {
            id: chunk.chunk_id,
            offset: 0,
            reserved,
            bytes: payload[..valid].to_vec(),
            read: 0,
            flags,
            incomplete: !chunk.complete,
            lost_behind,
        };
        let key = self.touch((producer, chunk.writer));
        let sequence = &self.sequences[&key];
        let mut new = new;
        match sequence.consumed {
            Some((id, bytes, true)) if id == new.id && valid > bytes => new.read = bytes,
            Some((id, bytes, was_incomplete)) if !before(id, new.id) => {
                let is_next_begun = sequence.chunks.front().is_some_and(|next| next.read > 0);
                if id == new.id && was_incomplete && chunk.complete && valid == bytes && !is_next_begun {
                    // It has no more packets, but perhaps a loss.
                    let sequence = self.sequences.get_mut(&key).expect("touched");
                    sequence.consumed = Some((id, bytes, false));
                    if lost_behind != 0 {
                        sequence.loss |= loss::PRESENT | lost_behind;
                    }
                    self.count_broken(broken);
                }
                self.stats.chunks_discarded += 1;
                return;
            }
            _ => {}
        }
        let at = match sequence.chunks.back() {
            Some(last) if !before(last.id, new.id) => {
                sequence.chunks.partition_point(|stored| before(stored.id, new.id))
            }
            _ => sequence.chunks.len(),
        };
        if sequence.chunks.get(at).is_some_and(|stored| stored.id == new.id) {
            self.copy_again(key, at, new, broken);
            return;
        }
        if at == 0 && sequence.chunks.front().is_some_and(|first| first.read > 0) {
            self.stats.chunks_discarded += 1;
            return;
        }
        if let (Some(first), Some(last)) = (sequence.chunks.front(), sequence.chunks.back()) {
            // Ids that are half of all apart have no order.
            let (first, last) = if before(new.id, first.id) { (new.id, last.id) } else { (first.id, new.id) };
            if first != last && !before(first, last) {
                self.stats.abi_violations += 1;
                return;
            }
        }
        self.count_broken(broken);
        new.read = self.read_position(key, &new.bytes, new.read);
        self.store(key, new);
    }

    /// Returns the first end of a fragment that is not before the consumed bytes (§6).
    fn read_position(&mut self, key: Life, bytes: &[u8], consumed: usize) -> usize {
        let mut end = 0;
        while end < consumed {
            end = fragment(bytes, end).map_or(bytes.len(), |(start, len)| start + len);
        }
        if end != consumed {
            self.stats.abi_violations += 1;
            self.sequences.get_mut(&key).expect("touched").loss |= loss::PRESENT | loss::CHUNK_CORRUPTED;
        }
        end
    }

    fn count_broken(&mut self, broken: Option<bool>) {
        match broken {
            Some(true) => self.stats.packet_loss += 1,
            Some(false) => self.stats.abi_violations += 1,
            None => {}
        }
    }

    fn copy_again(&mut self, key: Life, at: usize, new: Chunk, broken: Option<bool>) {
        let stored = &self.sequences[&key].chunks[at];
        let is_patched = !new.incomplete && stored.has(NEEDS_PATCHING) && !new.has(NEEDS_PATCHING);
        let missing = stored.flags & !new.flags & if is_patched { !NEEDS_PATCHING } else { !0 };
        let most = if stored.incomplete { stored.reserved } else { stored.bytes.len() };
        if new.bytes.len() < stored.bytes.len() || new.bytes.len() > most || missing != 0 {
            self.stats.abi_violations += 1;
            return;
        }
        let completes = !new.incomplete && stored.incomplete;
        let grows = new.bytes.len() > stored.bytes.len();
        if !grows && !is_patched && !completes {
            return;
        }
        let (offset, size, consumed) = (stored.offset, stored.size(), stored.read);
        let moves = grows && !self.discards && completes && stored.is_read() && at == 0;
        let read = if grows || is_patched { self.read_position(key, &new.bytes, consumed) } else { consumed };
        self.count_broken(broken);
        let sequence = self.sequences.get_mut(&key).expect("touched");
        if moves {
            sequence.chunks.pop_front();
            (sequence.waits, sequence.begun) = (None, None);
            self.empty += usize::from(sequence.chunks.is_empty());
            self.records.insert(offset, Record { size, chunk: None });
            self.stats.chunks_relocated += 1;
            self.store(key, Chunk { read, ..new });
            return;
        }
        if grows {
            self.stats.chunks_rewritten += 1;
        }
        let stored = &mut sequence.chunks[at];
        stored.read = read;
        if grows || is_patched {
            stored.bytes = new.bytes;
        }
        // The latest copy of the chunk tells its losses.
        stored.flags = new.flags;
        stored.lost_behind = new.lost_behind;
        stored.incomplete &= new.incomplete;
        sequence.waits = None;
    }

    fn store(&mut self, key: Life, mut new: Chunk) {
        let size = new.size();
        let Some(offset) = self.make_room(size) else {
            self.stats.chunks_discarded += 1;
            return;
        };
        self.write = offset + size;
        let sequence = self.sequences.get_mut(&key).expect("touched");
        let overtaken = sequence.consumed.is_some_and(|(id, bytes, incomplete)| {
            let goes_on = id == new.id && incomplete && new.bytes.len() > bytes;
            !goes_on && !before(id, new.id)
        });
        if overtaken {
            sequence.loss |= loss::PRESENT | loss::OVERWRITE;
            self.stats.chunks_discarded += 1;
            self.pad(offset, size);
            return;
        }
        self.stats.chunks_written += 1;
        self.stats.bytes_written += size as u64;
        new.offset = offset;
        let id = new.id;
        let at = match sequence.chunks.back() {
            Some(last) if !before(last.id, id) => sequence.chunks.partition_point(|stored| before(stored.id, id)),
            _ => sequence.chunks.len(),
        };
        self.stats.out_of_order += u64::from(at != sequence.chunks.len());
        self.empty -= usize::from(sequence.chunks.is_empty());
        sequence.chunks.insert(at, new);
        sequence.waits = None;
        self.records.insert(offset, Record { size, chunk: Some((key, id)) });
    }

    /// Applies patches (§8). `None` stands for a patch with a wrong size, which was skipped.
    pub fn patch(&mut self, key: Key, chunk_id: u32, patches: &[(u32, [u8; 4])], more: bool) {
        let life = self.current.get(&key).map(|&life| (key.0, key.1, life)).filter(|_| !self.read_only);
        let sequence = life.and_then(|life| self.sequences.get_mut(&life));
        // The fragments of a waiting packet stay as they are.
        let is_begun = |sequence: &Sequence| {
            sequence.begun.is_some_and(|(first, last)| chunk_id.wrapping_sub(first) <= last.wrapping_sub(first))
        };
        let Some(sequence) =
            sequence.filter(|sequence| !is_begun(sequence) && sequence.chunks.iter().any(|chunk| chunk.id == chunk_id))
        else {
            self.stats.patches_failed += 1;
            return;
        };
        sequence.waits = None;
        let chunk = sequence.chunks.iter_mut().find(|chunk| chunk.id == chunk_id).expect("it was found");
        for &(offset, data) in patches {
            let offset = offset as usize;
            let Some(target) = chunk.bytes.get_mut(offset..offset + 4) else {
                self.stats.patches_failed += 1;
                return;
            };
            target.copy_from_slice(&data);
        }
        self.stats.patches_succeeded += patches.len() as u64;
        if !more {
            chunk.flags &= !NEEDS_PATCHING;
        }
    }
}
