//! The state machine of pages and chunks (`docs/spec/shared-memory.md` §7).
//!
//! ```text
//!             producer                      producer              service              service
//!  (free)  ──────────────► BeingWritten ──────────────► Complete ─────────► BeingRead ─────────► (free)
//!          acquire_for_writing            complete        acquire_for_reading         free
//! ```
//!
//! Each state that belongs to somebody is a type: holding a [`Chunk<BeingWritten>`] *is* the right to
//! write into it, and the transitions consume one and return the next. A free chunk belongs to nobody and has no value;
//! neither has a complete one on the service's side, which only learns of it by two numbers in a
//! message.
//!
//! All transitions are compare-exchanges on the page word, because other chunks of the same page change at the
//! same time. Each one is a release for what its side did before (payload, header) and an acquire for
//! what the other side did (clearing the header):
//!
//! | store | makes visible | to the load |
//! |---|---|---|
//! | complete (AcqRel) | payload, header | acquire for reading; the page word, when scraping |
//! | free (AcqRel) | the cleared header, and that the copy is done | acquire for writing |
//! | `packets` (Release) | all fragments but the last one announced | scraping |
//!
//! Every ordering is that of an [`Access`], so that the models can do without it and see what breaks.
//!
//! Where a process dies between two of these stores, the chunk stays in the state it had: the service frees
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

/// Attempts of the service to change a page word. The other chunks of a page, 13 at most, each
/// change twice at most until the service comes to them: an honest producer cannot make more of its
/// attempts fail than that. One that changes the word without a pause wins, and keeps its chunk.
pub(crate) const MAX_SERVICE_ATTEMPTS: u32 = 2 * MAX_CHUNKS_PER_PAGE as u32;

/// Attempts of a writer to change a page word: far more than its siblings and a service that is
/// sane make fail. Without a bound a service that changes the word without a pause would keep a
/// thread of the program for ever; at the bound the chunk is lost.
pub(crate) const MAX_WRITER_ATTEMPTS: u32 = 1024;

/// The states of a chunk that somebody owns, as types.
pub mod state {
    use crate::abi::ChunkState;

    /// A state as a type.
    pub trait Owned {
        /// The same as a value.
        const STATE: ChunkState;
    }

    /// Owned by a writer.
    #[derive(Debug)]
    pub enum BeingWritten {}
    /// Finished by its writer; nobody writes to it any more.
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

/// A chunk in state `S`, and the right to move it to the next one.
///
/// Dropping it leaves the chunk in its state. All numbers in it were computed from one load of the page word.
pub struct Chunk<S> {
    page: u32,
    index: u8,
    layout: PageLayout,
    offset: usize,
    size: usize,
    state: PhantomData<fn() -> S>,
}

impl<S> Chunk<S> {
    /// Index of the page.
    pub fn page(&self) -> u32 {
        self.page
    }

    /// Index of the chunk in its page.
    pub fn index(&self) -> u32 {
        u32::from(self.index)
    }

    /// Offset of the chunk (its header) in the region.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes of the chunk, header included.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Offset of the payload in the region.
    pub fn payload_offset(&self) -> usize {
        self.offset + CHUNK_HEADER_SIZE
    }

    /// Bytes of payload.
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

/// Why an access to a chunk did not happen.
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
    /// The page is not divided into that many chunks.
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
    /// The peer changed the layout or the state while the chunk was ours.
    Changed {
        /// The page word found.
        word: PageWord,
    },
    /// The peer changes the page without a pause: the bound of attempts was reached.
    Contended {
        /// How often it was tried.
        attempts: u32,
    },
    /// The pages of the memory went away; see [`Lost`](crate::Lost).
    Lost,
    /// The header names writer 0, which is nobody. The chunk was freed.
    NoWriter,
    /// The chunk bytes of an emulated commit are too short or too long.
    DataSize {
        /// Their length.
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

/// A region seen as pages and chunks.
#[derive(Clone, Debug)]
pub struct Smb<R> {
    region: R,
    page_size: PageSize,
    pages: u32,
}

impl<R: Region> Smb<R> {
    /// Divides a region into pages. A rest that is no whole page stays unused.
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

    /// The memory.
    pub fn region(&self) -> &R {
        &self.region
    }

    /// Size of a page.
    pub fn page_size(&self) -> PageSize {
        self.page_size
    }

    /// Number of pages.
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

    /// Whether the word of a page can be anything but that of a free page. Unlike loading the word
    /// it allocates no memory for a page that nobody ever used.
    ///
    /// # Panics
    /// If there is no such page.
    pub fn is_page_used(&self, page: u32) -> bool {
        self.region.is_written(self.page_offset(page))
    }

    /// Divides a free page; false if it is not free.
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
    /// [`Skip`], saying why it cannot be had; nothing is changed then.
    pub fn acquire_for_writing(&self, page: u32, index: u32, header: ChunkHeader) -> Result<Chunk<BeingWritten>, Skip> {
        let chunk = self.acquire(page, index, ChunkState::Free, Access::AcquireForWriting, MAX_WRITER_ATTEMPTS)?;
        self.region.atomic_u32(chunk.offset + CHUNK_ID_OFFSET).store(header.chunk_id, Ordering::Relaxed);
        self.region.atomic_u16(chunk.offset + WRITER_ID_OFFSET).store(header.writer_id, Ordering::Relaxed);
        // Release: whoever sees this count sees the two ids (§7, scraping).
        self.packets_field(&chunk).store(header.packets.0, Access::StoreHeader.ordering());
        Ok(chunk)
    }

    /// Takes a complete chunk to copy it.
    ///
    /// # Errors
    /// [`Skip`], saying why it cannot be had; nothing is changed then.
    pub fn acquire_for_reading(&self, page: u32, index: u32) -> Result<Chunk<BeingRead>, Skip> {
        if page < self.pages && !self.is_page_used(page) {
            return Err(Skip::NoSuchChunk { chunk: index, chunks: 0 });
        }
        self.acquire(page, index, ChunkState::Complete, Access::AcquireForReading, MAX_SERVICE_ATTEMPTS)
    }

    /// The count and flags of a chunk. Only its writer stores to them, with [`announce`].
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
    /// [`Skip::Changed`] if the page word no longer says that we write it, [`Skip::Contended`] if
    /// it changes all the time; the chunk is lost then.
    pub fn complete(&self, chunk: Chunk<BeingWritten>) -> Result<Chunk<Complete>, Skip> {
        self.transition(&chunk, ChunkState::Complete, Access::Complete, MAX_WRITER_ATTEMPTS)?;
        Ok(chunk.into_state())
    }

    /// Gives a chunk back that was read.
    ///
    /// # Errors
    /// [`Skip::Changed`] if the peer changed layout or state meanwhile, [`Skip::Contended`] if it
    /// does so all the time. Its page is left as it is.
    pub fn free(&self, chunk: Chunk<BeingRead>) -> Result<(), Skip> {
        self.clear_header(&chunk);
        self.transition(&chunk, ChunkState::Free, Access::Free, MAX_SERVICE_ATTEMPTS)
    }

    /// Gives a complete chunk back without a reader. Only for emulation, where the producer frees (§17).
    ///
    /// # Errors
    /// [`Skip::Changed`], as [`Smb::free`].
    pub fn free_unread(&self, chunk: Chunk<Complete>) -> Result<(), Skip> {
        self.clear_header(&chunk);
        self.transition(&chunk, ChunkState::Free, Access::Free, MAX_WRITER_ATTEMPTS)
    }

    /// A chunk as seen by a reader that does not own it, for scraping: `word` is the reader's own copy of the page word.
    pub(crate) fn observe(&self, page: u32, index: usize, word: PageWord) -> Option<Observed> {
        let layout = word.layout()?;
        let state = word.state(index)?;
        let size = layout.chunk_size(self.page_size);
        let offset = self.page_offset(page) + PAGE_HEADER_SIZE + index * size;
        Some(Observed { state, offset, size })
    }

    pub(crate) fn header_at(&self, offset: usize) -> ChunkHeader {
        // `packets` first: its acquire makes the ids behind it those of this chunk.
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

/// Changes a page word to what `next` makes of it, as often as that takes, but for a bound.
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

/// Publishes count and flags of a chunk being written, whose field this is: all fragments but the last one counted are in place.
#[inline]
pub fn announce(field: &AtomicU16, packets: Packets) {
    field.store(packets.0, Access::Announce.ordering());
}

/// Where a chunk is that somebody else owns.
pub(crate) struct Observed {
    pub(crate) state: ChunkState,
    pub(crate) offset: usize,
    pub(crate) size: usize,
}

#[cfg(all(test, not(esatto_loom)))]
mod tests {
    use super::*;

    /// Changes the word once more at each look, as a hostile peer's thread may.
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
    fn a_peer_that_changes_the_word_all_the_time_is_given_up() {
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
