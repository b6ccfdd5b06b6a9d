//! The state machine of pages and chunks (`docs/spec/shared-memory.md` §7).
//!
//! ```text
//!             producer                      producer              service              service
//!  (free)  ──────────────► BeingWritten ──────────────► Complete ─────────► BeingRead ─────────► (free)
//!          acquire_for_writing            complete        acquire_for_reading         free
//! ```
//!
//! Each state with an owner is a type. Holding a [`Chunk<BeingWritten>`] *is* the right to write
//! into it. A transition consumes one state and returns the next. A free chunk has no owner and no
//! value. On the service's side a complete chunk has no value either: the service learns of it by
//! two numbers in a message.
//!
//! All transitions are compare-exchanges on the page word, because other chunks of the same page
//! change at the same time. Each exchange releases the earlier writes of its side (payload,
//! header), and acquires those of the other side (clearing the header):
//!
//! | store | makes visible | to the load |
//! |---|---|---|
//! | complete (AcqRel) | payload, header | acquire for reading; the page word, when scraping |
//! | free (AcqRel) | the cleared header, and that the copy is done | acquire for writing |
//! | `packets` (Release) | all fragments but the last one announced | scraping |
//!
//! Every ordering has a name in [`Access`], so that the models can remove it and see which model
//! fails.
//!
//! If a process dies between two of these stores, the chunk stays in its state. The service frees
//! the whole region with the connection, so nothing has to be recovered.

use core::{fmt, marker::PhantomData};

use crate::{
    abi::{
        CHUNK_HEADER_SIZE, CHUNK_ID_OFFSET, ChunkHeader, ChunkState, MAX_CHUNKS_PER_PAGE, PACKETS_OFFSET,
        PAGE_HEADER_SIZE, Packets, PageLayout, PageSize, PageWord, WRITER_ID_OFFSET,
    },
    error::{Error, Lost},
    memory::Region,
    orderings::Access,
    sync::{AtomicU16, AtomicU32, Ordering},
};

/// Attempts of the service to change a page word. Each of the other chunks of a page, at most 13,
/// changes at most twice before the service reaches it. An honest producer cannot make more
/// attempts fail. A producer that changes the word without a pause keeps its chunk.
#[expect(clippy::cast_possible_truncation, reason = "a page has at most 14 chunks")]
pub(crate) const MAX_SERVICE_ATTEMPTS: u32 = 2 * MAX_CHUNKS_PER_PAGE as u32;

/// Attempts of a writer to change a page word. Other writers and a correct service make far fewer
/// attempts fail. Without a bound, a service that changes the word without a pause would hold a
/// thread of the program for ever. At the bound the chunk is lost.
pub(crate) const MAX_WRITER_ATTEMPTS: u32 = 1024;

/// States of a chunk that has an owner, as types.
pub mod state {
    use crate::abi::ChunkState;

    /// A state as a type.
    pub trait Owned {
        /// The state as a value.
        const STATE: ChunkState;
    }

    /// Owned by a writer.
    #[derive(Debug)]
    pub enum BeingWritten {}
    /// Finished by its writer, which writes to it no more.
    #[derive(Debug)]
    pub enum Complete {}
    /// Owned by the reader.
    #[derive(Debug)]
    pub enum BeingRead {}

    impl Owned for BeingWritten {
        const STATE: ChunkState = ChunkState::BeingWritten;
    }
    impl Owned for Complete {
        const STATE: ChunkState = ChunkState::Complete;
    }
    impl Owned for BeingRead {
        const STATE: ChunkState = ChunkState::BeingRead;
    }
}

use state::{BeingRead, BeingWritten, Complete, Owned};

/// Chunk in state `S`, and the right to move it to the next state.
///
/// Dropping it leaves the chunk in its state. All its numbers were computed from one load of the
/// page word.
pub struct Chunk<S> {
    page: u32,
    index: u8,
    layout: PageLayout,
    offset: usize,
    size: usize,
    state: PhantomData<fn() -> S>,
}

impl<S> Chunk<S> {
    /// Returns the index of the page.
    pub fn page(&self) -> u32 {
        self.page
    }

    /// Returns the index of the chunk in its page.
    pub fn index(&self) -> u32 {
        u32::from(self.index)
    }

    /// Returns the offset of the chunk (its header) in the region.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the size of the chunk in bytes, header included.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the offset of the payload in the region.
    pub fn payload_offset(&self) -> usize {
        self.offset + CHUNK_HEADER_SIZE
    }

    /// Returns the size of the payload in bytes.
    pub fn payload_size(&self) -> usize {
        self.size - CHUNK_HEADER_SIZE
    }

    fn into_state<T>(self) -> Chunk<T> {
        let Self { page, index, layout, offset, size, .. } = self;
        Chunk { page, index, layout, offset, size, state: PhantomData }
    }
}

impl<S: Owned> fmt::Debug for Chunk<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk<{:?}>({}/{})", S::STATE, self.page, self.index)
    }
}

/// Reason why an access to a chunk did not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Skip {
    /// The region has no such page.
    NoSuchPage {
        /// The page index that was named.
        page: u32,
        /// Pages the region has.
        pages: u32,
    },
    /// The page has fewer chunks.
    NoSuchChunk {
        /// The chunk index that was named.
        chunk: u32,
        /// Chunks the page has at the moment.
        chunks: u32,
    },
    /// The chunk is in another state than this access requires.
    WrongState {
        /// The state it is in.
        state: ChunkState,
    },
    /// The peer changed the layout or the state while this side owned the chunk.
    Changed {
        /// The page word found.
        word: PageWord,
    },
    /// The peer changes the page without a pause: the bound of attempts was reached.
    Contended {
        /// Number of attempts.
        attempts: u32,
    },
    /// The pages of the memory were taken away: see [`Lost`].
    Lost,
    /// The header names writer 0, which does not exist. The chunk was freed.
    NoWriter,
    /// The chunk bytes of an emulated commit are too short or too long.
    DataSize {
        /// Their number.
        len: usize,
    },
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoSuchPage { page, pages } => write!(f, "page {page} of {pages}"),
            Self::NoSuchChunk { chunk, chunks } => write!(f, "chunk {chunk} of {chunks}"),
            Self::WrongState { state } => write!(f, "chunk is {state:?}"),
            Self::Changed { word } => write!(f, "page changed by the peer to {word:?}"),
            Self::Contended { attempts } => write!(f, "page changed by the peer during {attempts} attempts"),
            Self::Lost => Lost.fmt(f),
            Self::NoWriter => f.write_str("chunk of writer 0"),
            Self::DataSize { len } => write!(f, "chunk data of {len} bytes"),
        }
    }
}

impl std::error::Error for Skip {}

/// Shared memory buffer: a region, divided into pages and chunks.
#[derive(Clone, Debug)]
pub struct Smb<R> {
    region: R,
    page_size: PageSize,
    pages: u32,
}

impl<R: Region> Smb<R> {
    /// Divides a region into pages. Bytes after the last whole page stay unused.
    ///
    /// # Errors
    /// [`Error::Size`] if there is not a single page, or so many that their index does not fit.
    pub fn new(region: R, page_size: PageSize) -> Result<Self, Error> {
        let bytes = region.len();
        match u32::try_from(bytes / page_size.bytes()) {
            Ok(pages) if pages > 0 => Ok(Self { region, page_size, pages }),
            _ => Err(Error::Size { bytes, page_size: page_size.bytes() }),
        }
    }

    /// Returns the memory.
    pub fn region(&self) -> &R {
        &self.region
    }

    /// Returns the size of a page.
    pub fn page_size(&self) -> PageSize {
        self.page_size
    }

    /// Returns the number of pages.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Loads the word of a page (acquire).
    ///
    /// # Panics
    /// If there is no such page.
    pub fn page_word(&self, page: u32) -> PageWord {
        PageWord(self.region.atomic_u32(self.page_offset(page)).load(Access::LoadPageWord.ordering()))
    }

    /// Returns false if the word of a page is that of a free page. Unlike loading the word, it
    /// allocates no memory for a page that was never used.
    ///
    /// # Panics
    /// If there is no such page.
    pub fn is_page_used(&self, page: u32) -> bool {
        self.region.is_written(self.page_offset(page))
    }

    /// Divides a free page. Returns false if it is not free.
    ///
    /// # Panics
    /// If there is no such page.
    pub fn try_partition(&self, page: u32, layout: PageLayout) -> bool {
        let (free, partitioned) = (PageWord::FREE.0, PageWord::partitioned(layout).0);
        self.region
            .atomic_u32(self.page_offset(page))
            .compare_exchange(free, partitioned, Access::Partition.ordering(), Ordering::Relaxed)
            .is_ok()
    }

    /// Takes a free chunk to write into, and stores its header.
    ///
    /// # Errors
    /// [`Skip`] with the reason. Nothing is changed then.
    pub fn acquire_for_writing(&self, page: u32, index: u32, header: ChunkHeader) -> Result<Chunk<BeingWritten>, Skip> {
        let chunk = self.acquire(page, index, ChunkState::Free, Access::AcquireForWriting, MAX_WRITER_ATTEMPTS)?;
        self.region.atomic_u32(chunk.offset + CHUNK_ID_OFFSET).store(header.chunk_id, Ordering::Relaxed);
        self.region.atomic_u16(chunk.offset + WRITER_ID_OFFSET).store(header.writer_id, Ordering::Relaxed);
        // Release: a reader that sees this count sees the two ids (§7, scraping).
        self.packets_field(&chunk).store(header.packets.0, Access::StoreHeader.ordering());
        Ok(chunk)
    }

    /// Takes a complete chunk to copy it.
    ///
    /// # Errors
    /// [`Skip`] with the reason. Nothing is changed then.
    pub fn acquire_for_reading(&self, page: u32, index: u32) -> Result<Chunk<BeingRead>, Skip> {
        if page < self.pages && !self.is_page_used(page) {
            return Err(Skip::NoSuchChunk { chunk: index, chunks: 0 });
        }
        self.acquire(page, index, ChunkState::Complete, Access::AcquireForReading, MAX_SERVICE_ATTEMPTS)
    }

    /// Returns the count and flags of a chunk. Only its writer stores to them, with [`announce`].
    pub fn packets_field<S>(&self, chunk: &Chunk<S>) -> &AtomicU16 {
        self.region.atomic_u16(chunk.offset + PACKETS_OFFSET)
    }

    /// Loads the header of a chunk: count and flags first (acquire), then the rest.
    pub fn header<S>(&self, chunk: &Chunk<S>) -> ChunkHeader {
        self.header_at(chunk.offset)
    }

    /// Publishes a chunk.
    ///
    /// # Errors
    /// [`Skip::Changed`] if the page word no longer says that this side writes the chunk,
    /// [`Skip::Contended`] if the word changes all the time. The chunk is lost then.
    pub fn complete(&self, chunk: Chunk<BeingWritten>) -> Result<Chunk<Complete>, Skip> {
        self.transition(&chunk, ChunkState::Complete, Access::Complete, MAX_WRITER_ATTEMPTS)?;
        Ok(chunk.into_state())
    }

    /// Frees a chunk that was read.
    ///
    /// # Errors
    /// [`Skip::Changed`] if the peer changed layout or state meanwhile, [`Skip::Contended`] if it
    /// does so all the time. The page stays as the peer made it.
    pub fn free(&self, chunk: Chunk<BeingRead>) -> Result<(), Skip> {
        self.clear_header(&chunk);
        self.transition(&chunk, ChunkState::Free, Access::Free, MAX_SERVICE_ATTEMPTS)
    }

    /// Frees a complete chunk without a reader. Only for emulation, where the producer frees chunks
    /// (§17).
    ///
    /// # Errors
    /// [`Skip::Changed`], as [`Smb::free`].
    pub fn free_unread(&self, chunk: Chunk<Complete>) -> Result<(), Skip> {
        self.clear_header(&chunk);
        self.transition(&chunk, ChunkState::Free, Access::Free, MAX_WRITER_ATTEMPTS)
    }

    /// Returns where a chunk lies that the caller does not own, for scraping. `word` is the
    /// caller's copy of the page word.
    pub(crate) fn observe(&self, page: u32, index: usize, word: PageWord) -> Option<Observed> {
        let layout = word.layout()?;
        let state = word.state(index)?;
        let size = layout.chunk_size(self.page_size);
        let offset = self.page_offset(page) + PAGE_HEADER_SIZE + index * size;
        Some(Observed { state, offset, size })
    }

    pub(crate) fn header_at(&self, offset: usize) -> ChunkHeader {
        // `packets` first: after its acquire, the ids are those of this chunk.
        let packets = self.region.atomic_u16(offset + PACKETS_OFFSET).load(Access::LoadPackets.ordering());
        ChunkHeader {
            chunk_id: self.region.atomic_u32(offset + CHUNK_ID_OFFSET).load(Ordering::Relaxed),
            writer_id: self.region.atomic_u16(offset + WRITER_ID_OFFSET).load(Ordering::Relaxed),
            packets: Packets(packets),
        }
    }

    fn page_offset(&self, page: u32) -> usize {
        assert!(page < self.pages, "page {page} of {}", self.pages);
        page as usize * self.page_size.bytes()
    }

    #[expect(clippy::cast_possible_truncation, reason = "a page has at most 14 chunks")]
    fn acquire<S: Owned>(
        &self,
        page: u32,
        index: u32,
        from: ChunkState,
        access: Access,
        attempts: u32,
    ) -> Result<Chunk<S>, Skip> {
        if page >= self.pages {
            return Err(Skip::NoSuchPage { page, pages: self.pages });
        }
        let offset = self.page_offset(page);
        let i = index as usize;
        let layout = exchange(self.region.atomic_u32(offset), access, attempts, |word| {
            let chunks = word.chunks();
            let (Some(layout), Some(state)) = (word.layout(), word.state(i)) else {
                return Err(Skip::NoSuchChunk { chunk: index, chunks: chunks as u32 });
            };
            if state != from {
                return Err(Skip::WrongState { state });
            }
            Ok((word.with_state(i, S::STATE), layout))
        })?;
        let size = layout.chunk_size(self.page_size);
        let offset = offset + PAGE_HEADER_SIZE + i * size;
        Ok(Chunk { page, index: i as u8, layout, offset, size, state: PhantomData })
    }

    fn transition<S: Owned>(
        &self,
        chunk: &Chunk<S>,
        to: ChunkState,
        access: Access,
        attempts: u32,
    ) -> Result<(), Skip> {
        let i = usize::from(chunk.index);
        exchange(self.region.atomic_u32(self.page_offset(chunk.page)), access, attempts, |word| {
            if word.layout() != Some(chunk.layout) || word.state(i) != Some(S::STATE) {
                return Err(Skip::Changed { word });
            }
            Ok((word.with_state(i, to), ()))
        })
    }

    fn clear_header<S>(&self, chunk: &Chunk<S>) {
        self.region.atomic_u16(chunk.offset + WRITER_ID_OFFSET).store(0, Ordering::Relaxed);
        self.region.atomic_u32(chunk.offset + CHUNK_ID_OFFSET).store(0, Ordering::Relaxed);
        self.packets_field(chunk).store(0, Access::ClearHeader.ordering());
    }
}

/// Changes a page word to the result of `next`. Tries again if another thread changed the word, up
/// to a bound.
fn exchange<T>(
    field: &AtomicU32,
    access: Access,
    attempts: u32,
    mut next: impl FnMut(PageWord) -> Result<(PageWord, T), Skip>,
) -> Result<T, Skip> {
    let mut word = PageWord(field.load(Ordering::Relaxed));
    for _ in 0..attempts {
        let (new, value) = next(word)?;
        match field.compare_exchange(word.0, new.0, access.ordering(), Ordering::Relaxed) {
            Ok(_) => return Ok(value),
            Err(found) => word = PageWord(found),
        }
    }
    Err(Skip::Contended { attempts })
}

/// Publishes count and flags of a chunk being written. All counted fragments except the last are
/// complete.
#[inline]
pub fn announce(field: &AtomicU16, packets: Packets) {
    field.store(packets.0, Access::Announce.ordering());
}

/// Place of a chunk that the reader does not own.
pub(crate) struct Observed {
    pub(crate) state: ChunkState,
    pub(crate) offset: usize,
    pub(crate) size: usize,
}

#[cfg(all(test, not(esatto_loom)))]
mod tests {
    use super::*;

    /// Changes the word before each of the first attempts, as a thread of a hostile peer may.
    fn attempts_against_a_peer(changes: u32) -> (u32, Result<(), Skip>) {
        let field = AtomicU32::new(0);
        let mut looks = 0;
        let result = exchange(&field, Access::AcquireForReading, MAX_SERVICE_ATTEMPTS, |word| {
            looks += 1;
            if looks <= changes {
                field.fetch_add(1, Ordering::Relaxed);
            }
            Ok((PageWord(word.0 | 1 << 31), ()))
        });
        (looks, result)
    }

    #[test]
    fn a_word_that_a_peer_keeps_changing_is_given_up() {
        let contended = Skip::Contended { attempts: MAX_SERVICE_ATTEMPTS };
        assert_eq!(attempts_against_a_peer(u32::MAX), (MAX_SERVICE_ATTEMPTS, Err(contended)));
    }

    /// All other chunks of a page change twice.
    #[test]
    fn an_honest_peer_never_reaches_the_bound() {
        let changes = 2 * (MAX_CHUNKS_PER_PAGE as u32 - 1);
        assert_eq!(attempts_against_a_peer(changes), (changes + 1, Ok(())));
    }
}
