//! The 16-byte header of a record in the buffer.
//!
//! ```text
//! offset  0         4          8          10         12       14      15
//!         sequence  chunk id   reserved   available  read     flags   0        a chunk
//!         size      –          –          –          –        0       0        padding
//! ```

use super::fragment::{self, Broken, Fragment};

/// Bytes of a header, and the alignment of records.
pub(super) const HEADER: usize = 16;

/// The first fragment continues a packet of the chunk before.
pub(super) const FIRST_CONTINUES: u8 = 0x01;
/// The last fragment continues in the next chunk.
pub(super) const LAST_CONTINUES: u8 = 0x02;
/// Length fields of the last packet are not filled in yet.
pub(super) const NEEDS_PATCHING: u8 = 0x04;
/// The flags of the protocol.
pub(super) const WIRE_FLAGS: u8 = 0x07;
/// The chunk was still being written when it was copied.
pub(super) const INCOMPLETE: u8 = 0x08;
/// After the available fragments the writer abandoned a packet.
pub(super) const ABORTED: u8 = 0x10;
/// After the available fragments the chunk is malformed.
pub(super) const CORRUPTED: u8 = 0x20;
/// The flags that tell of a loss at the end of the chunk.
pub(super) const LOSSES: u8 = ABORTED | CORRUPTED;
/// This is a chunk, not padding.
const CHUNK: u8 = 0x80;

/// Empty packets at the end of a chunk that are checked when it is overwritten.
///
/// Protects the event loop, because a chunk may have 65,535 of them, and one input may overwrite
/// many chunks. A chunk with more counts as unread, and the next packet of its sequence is marked.
/// No ordinary writer makes such a chunk.
const MAX_EMPTY_FRAGMENTS: u64 = 8;

/// A record's header, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// Free space.
    Padding {
        /// Bytes, header included.
        size: usize,
    },
    /// A chunk.
    Chunk(ChunkRecord),
}

/// The header of a stored chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkRecord {
    /// Slot of its sequence.
    pub(super) slot: u32,
    pub(super) chunk_id: u32,
    /// Bytes set aside for fragments.
    pub(super) reserved: u16,
    /// Bytes of valid fragments.
    pub(super) available: u16,
    /// Bytes of them that were consumed.
    pub(super) read: u16,
    pub(super) flags: u8,
}

/// Returns the bytes of a record that holds this many payload bytes.
pub(super) fn size_for(payload_bytes: usize) -> usize {
    (HEADER + payload_bytes).next_multiple_of(HEADER)
}

impl ChunkRecord {
    pub(super) fn size(&self) -> usize {
        size_for(self.reserved.into())
    }

    pub(super) fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    pub(super) fn is_read(&self) -> bool {
        self.read >= self.available
    }

    /// Tells whether it has no fragment and lost none.
    pub(super) fn is_empty(&self) -> bool {
        self.available == 0 && !self.has(LOSSES)
    }

    /// Tells whether the fragment that ends here (in payload bytes) is the last of the chunk.
    pub(super) fn ends_at(&self, payload_end: usize) -> bool {
        payload_end >= self.available.into()
    }

    /// Returns the valid fragments of the record at `offset`.
    fn fragments<'d>(&self, data: &'d [u8], offset: usize) -> &'d [u8] {
        data.get(offset + HEADER..).and_then(|rest| rest.get(..self.available.into())).unwrap_or_default()
    }

    /// Returns the fragment at `at` bytes into the payload of the record at `offset`.
    pub(super) fn fragment(&self, data: &[u8], offset: usize, at: usize) -> Result<Fragment, Broken> {
        fragment::parse(self.fragments(data, offset), at)
    }

    /// Tells whether there is an unread fragment with content, or so many empty ones that there may
    /// be, and how many fragments were visited.
    pub(super) fn has_unread(&self, data: &[u8], offset: usize) -> (bool, u64) {
        let mut at = usize::from(self.read);
        let mut visited = 0;
        while at < self.available.into() {
            if visited == MAX_EMPTY_FRAGMENTS {
                return (true, visited);
            }
            visited += 1;
            match self.fragment(data, offset, at) {
                Ok(fragment) if fragment.len == 0 => at = fragment.end(),
                _ => return (true, visited),
            }
        }
        (false, visited)
    }
}

impl Record {
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Padding { size } => *size,
            Self::Chunk(chunk) => chunk.size(),
        }
    }
}

/// Decodes the header at `offset`, which must be the start of a record.
pub(super) fn load(data: &[u8], offset: usize) -> Record {
    let header: [u8; HEADER] = data[offset..offset + HEADER].try_into().expect("a slice of that length");
    let [a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, d0, d1, e0, e1, flags, _] = header;
    let first = u32::from_le_bytes([a0, a1, a2, a3]);
    if flags & CHUNK == 0 {
        return Record::Padding { size: first as usize };
    }
    Record::Chunk(ChunkRecord {
        slot: first,
        chunk_id: u32::from_le_bytes([b0, b1, b2, b3]),
        reserved: u16::from_le_bytes([c0, c1]),
        available: u16::from_le_bytes([d0, d1]),
        read: u16::from_le_bytes([e0, e1]),
        flags: flags & !CHUNK,
    })
}

/// Decodes the header of a stored chunk; `offset` comes from a sequence's list.
pub(super) fn load_chunk(data: &[u8], offset: u32) -> ChunkRecord {
    match load(data, offset as usize) {
        Record::Chunk(chunk) => chunk,
        Record::Padding { .. } => unreachable!("sequences list chunks only"),
    }
}

/// Writes the header of a chunk.
pub(super) fn store_chunk(data: &mut [u8], offset: usize, record: &ChunkRecord) {
    let header = &mut data[offset..offset + HEADER];
    header[0..4].copy_from_slice(&record.slot.to_le_bytes());
    header[4..8].copy_from_slice(&record.chunk_id.to_le_bytes());
    header[8..10].copy_from_slice(&record.reserved.to_le_bytes());
    header[10..12].copy_from_slice(&record.available.to_le_bytes());
    header[12..14].copy_from_slice(&record.read.to_le_bytes());
    header[14] = record.flags | CHUNK;
    header[15] = 0;
}

/// Turns `size` bytes into padding.
pub(super) fn store_padding(data: &mut [u8], offset: usize, size: usize) {
    let size = u32::try_from(size).expect("a buffer is smaller than 2^32 bytes");
    let header = &mut data[offset..offset + HEADER];
    header.fill(0);
    header[0..4].copy_from_slice(&size.to_le_bytes());
}
