//! The layout of pages and chunks, as numbers (`docs/spec/shared-memory.md` §4, §5).
//!
//! ```text
//! page:   0 page word (u32) | 4 reserved (u32) | 8 chunk 0 | chunk 1 | … | 0–24 bytes unused
//! word:   31 reserved | 28–30 layout | 26–27 chunk 13 | … | 2–3 chunk 1 | 0–1 chunk 0
//! chunk:  0 chunk_id (u32) | 4 writer_id (u16) | 6 packets (u16) | 8 payload …
//! packets: 10–15 flags | 0–9 count
//! ```
//!
//! This module accesses no memory: it has the values, their checks and their arithmetic. The state
//! machine over them is [`crate::Smb`].

use core::fmt;

use crate::error::Error;

/// Bytes before the first chunk of a page: the page word and a reserved word.
pub const PAGE_HEADER_SIZE: usize = 8;
/// Bytes before a chunk's payload.
pub const CHUNK_HEADER_SIZE: usize = 8;
/// Offset of `chunk_id` in a chunk.
pub const CHUNK_ID_OFFSET: usize = 0;
/// Offset of `writer_id` in a chunk.
pub const WRITER_ID_OFFSET: usize = 4;
/// Offset of `packets` (count and flags) in a chunk.
pub const PACKETS_OFFSET: usize = 6;
/// Largest number of chunks in a page.
pub const MAX_CHUNKS_PER_PAGE: usize = 14;
/// Chunks start at multiples of this.
pub const CHUNK_ALIGNMENT: usize = 4;
/// Largest value of a chunk's fragment count (10 bits).
pub const MAX_PACKET_COUNT: u16 = 0x3ff;
/// Bytes of the size field before a fragment. Writers use 4 bytes, readers accept 1 to 4.
pub const FRAGMENT_SIZE_LEN: usize = 4;
/// Size value that means "the writer gave up on this packet" (§6).
pub const DROP_MARKER: u32 = 0x0fff_ffff;
/// Number of `TracePacket.previous_packet_dropped` (§12).
pub(crate) const PREVIOUS_PACKET_DROPPED: u32 = 42;
/// Number of `TracePacket.first_packet_on_sequence` (§9).
pub(crate) const FIRST_PACKET_ON_SEQUENCE: u32 = 87;
/// Bytes of the drop marker in memory.
pub const DROP_MARKER_BYTES: [u8; 4] = [0xff, 0xff, 0xff, 0x7f];
/// Largest writer id that a producer assigns (§8). Before v53 it was 1023.
pub const MAX_WRITER_ID: u16 = 32767;
/// Largest chunk the ABI knows: a Div1 page of 64 KiB.
pub const MAX_CHUNK_SIZE: usize = PageSize::MAX_ABI - PAGE_HEADER_SIZE;
/// Bytes of a patch: one 4-byte redundant varint.
pub const PATCH_SIZE: usize = 4;

const STATE_MASK: u32 = 0x3;
const ALL_STATES_MASK: u32 = 0x0fff_ffff;
const LAYOUT_SHIFT: u32 = 28;
const LAYOUT_MASK: u32 = 0x7;
const FLAGS_SHIFT: u32 = 10;

const _: () = assert!(2 * MAX_CHUNKS_PER_PAGE == LAYOUT_SHIFT as usize);
const _: () = assert!((1 << FLAGS_SHIFT) - 1 == MAX_PACKET_COUNT);
const _: () = assert!(PageSize::MAX_ABI <= 1 << 16, "offsets in a chunk are sent as 16 bits");

/// Size of a page in bytes: a multiple of 4096, at most 65536 (`docs/spec/shared-memory.md` §3).
///
/// These are the limits of the ABI. A service accepts fewer sizes: see [`crate::size`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageSize(u32);

impl PageSize {
    /// Smallest page, and the unit of all others.
    pub const MIN: usize = 4096;
    /// Largest page of the ABI.
    pub const MAX_ABI: usize = 65536;
    /// 4 KiB, the default of all producers and services.
    pub const DEFAULT: Self = Self(4096);

    /// Checks a size in bytes.
    ///
    /// # Errors
    /// [`Error::PageSize`] if it is not a multiple of 4096 between 4096 and 65536.
    #[expect(clippy::cast_possible_truncation, reason = "at most `MAX_ABI`")]
    pub const fn new(bytes: usize) -> Result<Self, Error> {
        if bytes < Self::MIN || bytes > Self::MAX_ABI || bytes % Self::MIN != 0 {
            return Err(Error::PageSize { bytes });
        }
        Ok(Self(bytes as u32))
    }

    /// Checks a size in KiB, the unit in `setup_tracing`.
    ///
    /// # Errors
    /// [`Error::PageSize`], as [`PageSize::new`].
    pub const fn from_kib(kib: u32) -> Result<Self, Error> {
        // Saturating: a number that is too large stays too large on 32-bit machines.
        Self::new((kib as usize).saturating_mul(1024))
    }

    /// Returns the size in bytes.
    #[inline]
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }
}

/// How a page is divided (`docs/spec/shared-memory.md` §4).
///
/// Every shipping producer uses only [`PageLayout::Div1`]. A service accepts all five.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PageLayout {
    /// One chunk per page.
    Div1 = 1,
    /// Two chunks.
    Div2 = 2,
    /// Four chunks.
    Div4 = 3,
    /// Seven chunks.
    Div7 = 4,
    /// Fourteen chunks.
    Div14 = 5,
}

impl PageLayout {
    /// All layouts, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Div1, Self::Div2, Self::Div4, Self::Div7, Self::Div14];

    /// Returns the layout with this number; `None` for 0 (not partitioned) and the reserved 6 and
    /// 7.
    #[inline]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        match bits {
            1 => Some(Self::Div1),
            2 => Some(Self::Div2),
            3 => Some(Self::Div4),
            4 => Some(Self::Div7),
            5 => Some(Self::Div14),
            _ => None,
        }
    }

    /// Returns the number of chunks in a page.
    #[inline]
    pub const fn chunks(self) -> usize {
        match self {
            Self::Div1 => 1,
            Self::Div2 => 2,
            Self::Div4 => 4,
            Self::Div7 => 7,
            Self::Div14 => 14,
        }
    }

    /// Returns the size of one chunk in bytes, header included.
    #[inline]
    pub const fn chunk_size(self, page: PageSize) -> usize {
        let size = (page.bytes() - PAGE_HEADER_SIZE) / self.chunks();
        size - size % CHUNK_ALIGNMENT
    }
}

/// State of one chunk (`docs/spec/shared-memory.md` §4, §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ChunkState {
    /// Free: the chunk has no owner, and its header is zero.
    Free = 0,
    /// A writer of the producer fills it.
    BeingWritten = 1,
    /// The service copies it.
    BeingRead = 2,
    /// The producer has finished it, and it waits for the service.
    Complete = 3,
}

impl ChunkState {
    const fn from_bits(bits: u32) -> Self {
        match bits & STATE_MASK {
            0 => Self::Free,
            1 => Self::BeingWritten,
            2 => Self::BeingRead,
            _ => Self::Complete,
        }
    }
}

/// Page word, read once (`docs/spec/shared-memory.md` §4).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageWord(pub u32);

impl PageWord {
    /// Word of a page that is not partitioned: the whole page is free.
    pub const FREE: Self = Self(0);

    /// Returns the word of a page that was just partitioned: all chunks are free.
    #[inline]
    pub const fn partitioned(layout: PageLayout) -> Self {
        Self((layout as u32) << LAYOUT_SHIFT)
    }

    /// Returns the layout; `None` if the page is not partitioned or the layout is reserved. Bit 31
    /// is ignored.
    #[inline]
    pub const fn layout(self) -> Option<PageLayout> {
        PageLayout::from_bits((self.0 >> LAYOUT_SHIFT) & LAYOUT_MASK)
    }

    /// Returns the number of chunks of the layout; 0 if there is no valid layout.
    #[inline]
    pub const fn chunks(self) -> usize {
        match self.layout() {
            Some(layout) => layout.chunks(),
            None => 0,
        }
    }

    /// Returns the state of chunk `index`; `None` if the layout has no such chunk.
    #[inline]
    pub const fn state(self, index: usize) -> Option<ChunkState> {
        if index >= self.chunks() {
            return None;
        }
        Some(ChunkState::from_bits(self.0 >> (2 * index)))
    }

    /// Returns the word after chunk `index` went to `state`.
    ///
    /// Freeing the last chunk that was not free gives [`PageWord::FREE`]: the same store ends the
    /// partition of the page.
    #[inline]
    pub const fn with_state(self, index: usize, state: ChunkState) -> Self {
        debug_assert!(index < MAX_CHUNKS_PER_PAGE);
        let shift = 2 * index;
        let word = (self.0 & !(STATE_MASK << shift)) | ((state as u32) << shift);
        if word & ALL_STATES_MASK == 0 && matches!(state, ChunkState::Free) {
            return Self::FREE;
        }
        Self(word)
    }

    /// Returns the index of the lowest free chunk of a partitioned page.
    #[inline]
    pub fn first_free_chunk(self) -> Option<usize> {
        (0..self.chunks()).find(|&i| self.state(i) == Some(ChunkState::Free))
    }
}

impl fmt::Debug for PageWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageWord({:#010x}", self.0)?;
        if let Some(layout) = self.layout() {
            write!(f, " {layout:?}")?;
            for i in 0..layout.chunks() {
                write!(f, " {:?}", ChunkState::from_bits(self.0 >> (2 * i)))?;
            }
        }
        f.write_str(")")
    }
}

/// Flags of a chunk (`docs/spec/shared-memory.md` §5): a set of bits, in which unknown bits are
/// kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ChunkFlags(pub u8);

impl ChunkFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The first fragment continues the last packet of the writer's previous chunk.
    pub const FIRST_CONTINUES: Self = Self(1);
    /// The last fragment continues in the writer's next chunk.
    pub const LAST_CONTINUES: Self = Self(2);
    /// Length fields in the chunk are still zero. Their values come as patches.
    pub const NEEDS_PATCHING: Self = Self(4);

    /// Returns true if all bits of `other` are set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the bits of both sets.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns this set without the bits of `other`.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// The `packets` field of a chunk header: fragment count and flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Packets(pub u16);

impl Packets {
    /// Joins a count and flags.
    #[inline]
    pub const fn new(count: u16, flags: ChunkFlags) -> Self {
        debug_assert!(count <= MAX_PACKET_COUNT);
        Self((count & MAX_PACKET_COUNT) | ((flags.0 as u16) << FLAGS_SHIFT))
    }

    /// Returns the number of fragments in the chunk, including one being written and a trailing
    /// empty one.
    #[inline]
    pub const fn count(self) -> u16 {
        self.0 & MAX_PACKET_COUNT
    }

    /// Returns the flags.
    #[inline]
    pub const fn flags(self) -> ChunkFlags {
        ChunkFlags((self.0 >> FLAGS_SHIFT) as u8)
    }
}

/// A chunk header, read once or about to be stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ChunkHeader {
    /// Number of the chunk in its writer's sequence. It wraps.
    pub chunk_id: u32,
    /// The writer, 0 if none.
    pub writer_id: u16,
    /// Fragment count and flags.
    pub packets: Packets,
}

impl ChunkHeader {
    /// Reads a header from the first 8 bytes of a whole chunk (native byte order).
    pub fn from_bytes(bytes: [u8; CHUNK_HEADER_SIZE]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        Self {
            chunk_id: u32::from_ne_bytes([a, b, c, d]),
            writer_id: u16::from_ne_bytes([e, f]),
            packets: Packets(u16::from_ne_bytes([g, h])),
        }
    }

    /// Returns the bytes of the header in memory.
    pub fn to_bytes(self) -> [u8; CHUNK_HEADER_SIZE] {
        let [a, b, c, d] = self.chunk_id.to_ne_bytes();
        let [e, f] = self.writer_id.to_ne_bytes();
        let [g, h] = self.packets.0.to_ne_bytes();
        [a, b, c, d, e, f, g, h]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_sizes_are_the_table_of_the_spec() {
        let table = [
            (4096, [4088, 2044, 1020, 584, 292]),
            (8192, [8184, 4092, 2044, 1168, 584]),
            (16384, [16376, 8188, 4092, 2336, 1168]),
            (32768, [32760, 16380, 8188, 4680, 2340]),
            (65536, [65528, 32764, 16380, 9360, 4680]),
        ];
        for (page, sizes) in table {
            let page = PageSize::new(page).unwrap();
            for (layout, size) in PageLayout::ALL.into_iter().zip(sizes) {
                assert_eq!(layout.chunk_size(page), size, "{page:?} {layout:?}");
                assert!(PAGE_HEADER_SIZE + size * layout.chunks() <= page.bytes());
            }
        }
    }

    #[test]
    fn page_words_are_the_table_of_the_spec() {
        let table = [
            (PageLayout::Div1, 0x1000_0000, 0x1000_0003),
            (PageLayout::Div2, 0x2000_0000, 0x2000_000f),
            (PageLayout::Div4, 0x3000_0000, 0x3000_00ff),
            (PageLayout::Div7, 0x4000_0000, 0x4000_3fff),
            (PageLayout::Div14, 0x5000_0000, 0x5fff_ffff),
        ];
        for (layout, partitioned, complete) in table {
            let mut word = PageWord::partitioned(layout);
            assert_eq!(word.0, partitioned);
            for i in 0..layout.chunks() {
                word = word.with_state(i, ChunkState::Complete);
            }
            assert_eq!(word.0, complete);
            for i in 0..layout.chunks() {
                word = word.with_state(i, ChunkState::Free);
            }
            assert_eq!(word, PageWord::FREE);
        }
    }

    #[test]
    fn reserved_layouts_have_no_chunks() {
        for word in [0, 0x6000_0000, 0x7000_0003, 0x8000_0000] {
            assert_eq!(PageWord(word).chunks(), 0);
            assert_eq!(PageWord(word).state(0), None);
        }
        assert_eq!(PageWord(0x9000_0000).layout(), Some(PageLayout::Div1), "bit 31 is ignored");
    }

    #[test]
    fn count_and_flags_share_a_field() {
        let flags = ChunkFlags::FIRST_CONTINUES.with(ChunkFlags::LAST_CONTINUES);
        assert_eq!(Packets::new(5, flags).0, 0x0c05);
        assert_eq!(Packets(0xffff).count(), 1023);
        assert_eq!(Packets(0xffff).flags().0, 63);
    }

    #[test]
    fn page_sizes_outside_the_abi_are_refused() {
        for bytes in [0, 1, 4095, 4097, 65537, 69632, usize::MAX] {
            assert!(PageSize::new(bytes).is_err(), "{bytes}");
        }
        assert!(PageSize::from_kib(u32::MAX).is_err());
        assert_eq!(PageSize::from_kib(64).unwrap().bytes(), 65536);
    }
}
