//! Writers of an honest producer, which fill chunks with packets.

use std::sync::Arc;

use esatto_shm::abi::{ChunkFlags, ChunkHeader, ChunkState, Packets, PageLayout};
use esatto_shm::state::BeingWritten;
use esatto_shm::sync::Ordering;
use esatto_shm::{Chunk, PrivateRegion, Smb};

use super::{Move, PatchEntry, Producer};
use crate::content::{self, Name};
use crate::memory;
use crate::pb::varint4;
use crate::world::{Phase, World};

const DROP_MARKER: [u8; 4] = [0xff, 0xff, 0xff, 0x7f];
/// Bytes of a chunk that travels by value.
const EMULATED_CHUNK: usize = 4088;
/// Chunks of this many packets are full.
const MAX_PACKETS: u16 = 1000;

/// A writer: the packets of one sequence.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) id: u16,
    pub(super) target: u16,
    pub(super) instance: u64,
    next_chunk: u32,
    next_number: u32,
    open: Option<Open>,
    half: Option<Half>,
}

/// A packet that is being written.
#[derive(Debug)]
struct Half {
    bytes: Vec<u8>,
    size_at: usize,
}

/// The chunk that a writer fills.
#[derive(Debug)]
struct Open {
    id: u32,
    place: Place,
    used: usize,
    size: usize,
    count: u16,
    flags: u8,
}

#[derive(Debug)]
enum Place {
    Shared(Chunk<BeingWritten>),
    Own(Vec<u8>),
}

impl Writer {
    pub(super) const fn new(id: u16, target: u16, instance: u64, next_chunk: u32) -> Self {
        Self { id, target, instance, next_chunk, next_number: 0, open: None, half: None }
    }
}

impl Producer {
    pub(super) fn write_packet(&mut self, at: usize, world: &mut World) {
        if self.writers[at].half.is_some() {
            return;
        }
        let profile = &world.profile;
        let is_large = profile.large != 0 && world.rng.percent(profile.large);
        let filler = match is_large {
            true => world.rng.between(3000, 20_000),
            false => world.rng.below(profile.packet_bytes),
        } as usize;
        let writer = &self.writers[at];
        let name = Name { producer: self.tag, writer: writer.id, number: writer.next_number };
        let (bytes, length_at) = content::packet(name, filler, self.tells_first);
        if !self.has_room(at, bytes.len()) {
            return;
        }
        self.writers[at].next_number += 1;
        if world.rng.percent(world.profile.aborted) && self.free_chunks() > 2 {
            return self.write_aborted(at, &bytes);
        }
        let room = self.writers[at].open.as_ref().map_or(0, |open| open.size - open.used);
        if bytes.len() + 4 <= room && world.rng.percent(world.profile.half_written) {
            return self.begin_half(at, bytes);
        }
        let patched = world.rng.percent(world.profile.patched);
        self.write_whole(at, &bytes, patched.then_some(length_at));
    }

    /// Returns true if enough chunks are free for a packet.
    fn has_room(&self, at: usize, bytes: usize) -> bool {
        let Some(smb) = &self.smb else { return true };
        let open = self.writers[at].open.as_ref().map_or(0, |open| open.size - open.used);
        if bytes + 4 <= open {
            return true;
        }
        let payload = self.layout.chunk_size(smb.page_size()) - 8;
        self.free_chunks() >= bytes / (payload - 4) + 3
    }

    fn free_chunks(&self) -> usize {
        let Some(smb) = &self.smb else { return usize::MAX };
        (0..smb.pages())
            .map(|page| match smb.page_word(page) {
                word if word.chunks() == 0 => self.layout.chunks(),
                word => (0..word.chunks()).filter(|&i| word.state(i) == Some(ChunkState::Free)).count(),
            })
            .sum()
    }

    fn write_whole(&mut self, at: usize, bytes: &[u8], patch_at: Option<usize>) {
        let mut rest = bytes;
        let mut is_first = true;
        while !rest.is_empty() {
            self.open_chunk(at, if is_first { 0 } else { 1 });
            let open = self.writers[at].open.as_ref().expect("just opened");
            let room = open.size - open.used;
            // The first fragment holds the length that may be patched.
            let least = if is_first { rest.len().min(16) } else { 1 };
            if room < least + 4 {
                assert!(open.count > 0, "a chunk has room for a piece of a packet");
                self.finish_chunk(at);
                continue;
            }
            let (piece, more) = rest.split_at(rest.len().min(room - 4));
            let start = open.used + 4;
            let mut piece = piece.to_vec();
            let patch = patch_at.filter(|_| is_first && !more.is_empty());
            if let Some(offset) = patch {
                let data = piece[offset..offset + 4].try_into().expect("four bytes");
                piece[offset..offset + 4].fill(0);
                let writer = &self.writers[at];
                let chunk = writer.open.as_ref().expect("just opened").id;
                let entry =
                    PatchEntry { target: writer.target, writer: writer.id, chunk, offset: start + offset, data };
                self.pending.patches.push(entry);
            }
            self.put_fragment(at, &varint4(piece.len() as u32), &piece);
            if !more.is_empty() {
                self.raise_flags(at, if patch.is_some() { 2 | 4 } else { 2 });
                self.finish_chunk(at);
            }
            rest = more;
            is_first = false;
        }
        if self.writers[at].open.as_ref().is_some_and(|open| open.count >= MAX_PACKETS || open.size - open.used < 24) {
            self.finish_chunk(at);
        }
    }

    /// Writes a packet of which the service sees at most the beginning.
    fn write_aborted(&mut self, at: usize, bytes: &[u8]) {
        self.open_chunk(at, 0);
        let open = self.writers[at].open.as_ref().expect("just opened");
        let room = open.size - open.used;
        if room < 8 {
            self.finish_chunk(at);
            self.open_chunk(at, 0);
        }
        if bytes.len() % 2 == 0 && room >= 24 {
            // Begins it in one chunk and gives it up in the next.
            let piece = bytes[..8].to_vec();
            self.put_fragment(at, &varint4(8), &piece);
            self.raise_flags(at, 2);
            self.finish_chunk(at);
            self.open_chunk(at, 1);
        }
        self.put_fragment(at, &DROP_MARKER, &[]);
        self.finish_chunk(at);
    }

    fn begin_half(&mut self, at: usize, bytes: Vec<u8>) {
        self.open_chunk(at, 0);
        let open = self.writers[at].open.as_ref().expect("just opened");
        let size_at = open.used;
        let half = bytes.len() / 2;
        // Announces it, with an open length and some of its bytes.
        let piece = bytes[..half].to_vec();
        self.put_fragment(at, &[0x80, 0x80, 0x80, 0], &piece);
        self.writers[at].half = Some(Half { bytes, size_at });
    }

    pub(super) fn finish_half(&mut self, at: usize, world: &mut World) {
        if self.writers[at].half.is_none() || world.rng.percent(50) && world.phase == Phase::Running {
            return;
        }
        let Some(half) = self.writers[at].half.take() else { return };
        let written = half.bytes.len() / 2;
        self.put_bytes(at, &half.bytes[written..]);
        let size = varint4(half.bytes.len() as u32);
        let open = self.writers[at].open.as_mut().expect("a packet is being written into it");
        open.put(self.smb.as_ref(), half.size_at, &size);
    }

    /// Ensures that the writer has a chunk. A new chunk begins with these flags.
    fn open_chunk(&mut self, at: usize, flags: u8) {
        let writer = &mut self.writers[at];
        if writer.open.is_some() {
            return;
        }
        let id = writer.next_chunk;
        writer.next_chunk = id.wrapping_add(1);
        let header = ChunkHeader { chunk_id: id, writer_id: writer.id, packets: Packets::new(0, ChunkFlags(flags)) };
        let (place, size) = match &self.smb {
            Some(smb) => {
                let chunk = acquire(smb, self.layout, header).expect("has_room counted");
                let size = chunk.payload_size();
                (Place::Shared(chunk), size)
            }
            None => {
                let mut data = vec![0; EMULATED_CHUNK];
                data[..8].copy_from_slice(&header.to_bytes());
                (Place::Own(data), EMULATED_CHUNK - 8)
            }
        };
        writer.open = Some(Open { id, place, used: 0, size, count: 0, flags });
    }

    fn put_fragment(&mut self, at: usize, size: &[u8; 4], bytes: &[u8]) {
        let open = self.writers[at].open.as_mut().expect("a chunk is open");
        open.count += 1;
        open.publish(self.smb.as_ref());
        self.put_bytes(at, size);
        self.put_bytes(at, bytes);
    }

    fn put_bytes(&mut self, at: usize, bytes: &[u8]) {
        let open = self.writers[at].open.as_mut().expect("a chunk is open");
        let used = open.used;
        open.put(self.smb.as_ref(), used, bytes);
        open.used += bytes.len();
    }

    fn raise_flags(&mut self, at: usize, flags: u8) {
        let open = self.writers[at].open.as_mut().expect("a chunk is open");
        open.flags |= flags;
        open.publish(self.smb.as_ref());
    }

    /// Completes the chunk, so that its commit is due, unless it ends in half a packet.
    pub(super) fn finish_chunk(&mut self, at: usize) {
        if self.writers[at].half.is_some() {
            return;
        }
        let Some(open) = self.writers[at].open.take() else { return };
        let target = self.writers[at].target;
        let entry = match open.place {
            Place::Shared(chunk) => {
                let (page, chunk_index) = (chunk.page(), chunk.index());
                let smb = self.smb.as_ref().expect("the chunk is from there");
                smb.complete(chunk).expect("the page is ours");
                Move { page, chunk: chunk_index, target, data: None }
            }
            Place::Own(mut data) => {
                data.truncate(8 + open.used);
                Move { page: 0, chunk: 0, target, data: Some(data) }
            }
        };
        self.pending.moves.push(entry);
    }
}

impl Open {
    fn put(&mut self, smb: Option<&Smb<Arc<PrivateRegion>>>, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.size, "a packet stays inside its chunk");
        match (&mut self.place, smb) {
            (Place::Shared(chunk), Some(smb)) => memory::write(smb.region(), chunk.payload_offset() + at, bytes),
            (Place::Own(data), _) => data[8 + at..8 + at + bytes.len()].copy_from_slice(bytes),
            (Place::Shared(_), None) => unreachable!("shared chunks come from shared memory"),
        }
    }

    fn publish(&mut self, smb: Option<&Smb<Arc<PrivateRegion>>>) {
        let packets = Packets::new(self.count, ChunkFlags(self.flags));
        match (&mut self.place, smb) {
            (Place::Shared(chunk), Some(smb)) => smb.packets_field(chunk).store(packets.0, Ordering::Release),
            (Place::Own(data), _) => data[6..8].copy_from_slice(&packets.0.to_le_bytes()),
            (Place::Shared(_), None) => unreachable!("shared chunks come from shared memory"),
        }
    }
}

fn acquire(smb: &Smb<Arc<PrivateRegion>>, layout: PageLayout, header: ChunkHeader) -> Option<Chunk<BeingWritten>> {
    for page in 0..smb.pages() {
        if smb.page_word(page).chunks() == 0 {
            smb.try_partition(page, layout);
        }
        if let Some(index) = smb.page_word(page).first_free_chunk() {
            return smb.acquire_for_writing(page, index as u32, header).ok();
        }
    }
    None
}
