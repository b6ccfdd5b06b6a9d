//! Simulated shared memory. It records every chunk that the service takes or scrapes, and changes
//! while the service reads that of a hostile producer.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use esatto_service::shared_buffer::Payload;
use esatto_service::{ChunkHeader, ScrapedChunk, SharedBuffer, Step};
use esatto_shm::abi::{ChunkState, PageSize, PageWord};
use esatto_shm::sync::{AtomicU32, Ordering};
use esatto_shm::{Lost, PrivateRegion, Region, ServiceRegion};

use crate::alloc::uncounted;
use crate::reference::Incoming;
use crate::rng::Rng;
use crate::watched_memory::WatchedMemory;

/// Something that happened inside of one call of `Service::handle`.
#[derive(Debug)]
pub enum Seen {
    /// A step of the service itself.
    Step(Step),
    /// `take_chunk` of this client returned this.
    Took(u64, Option<Incoming>),
    /// A scrape of this client begins.
    ScrapeBegins(u64),
    /// The scrape of this client showed this chunk.
    Scraped(u64, Incoming),
}

std::thread_local! {
    static SEEN: RefCell<Vec<Seen>> = const { RefCell::new(Vec::new()) };
}

/// Adds something that happened on this thread.
pub(crate) fn see(seen: Seen) {
    SEEN.with(|all| uncounted(|| all.borrow_mut().push(seen)));
}

/// Moves everything that was seen since the last call to the end of `into`, in its order.
pub fn take_seen(into: &mut Vec<Seen>) {
    SEEN.with(|all| into.append(&mut all.borrow_mut()));
}

/// The changes that a hostile producer makes while the service reads.
#[derive(Debug)]
pub struct Mischief {
    rng: Rng,
    /// The page that is being read.
    page: Arc<AtomicU32>,
    /// One access in this many changes the memory.
    one_in: u64,
}

/// The service's view of a simulated region.
#[derive(Debug)]
pub struct SimBuffer {
    client: u64,
    region: ServiceRegion<WatchedMemory>,
    memory: Arc<PrivateRegion>,
    page_size: usize,
    is_honest: bool,
    current: Arc<AtomicU32>,
}

impl SimBuffer {
    /// Creates the view of a client's memory. With `mischief`, the memory changes at accesses.
    pub fn new(client: u64, memory: Arc<PrivateRegion>, page_size: usize, mischief: Option<(Rng, u64)>) -> Self {
        let is_honest = mischief.is_none();
        let current = Arc::new(AtomicU32::new(0));
        let page = current.clone();
        let mischief = mischief.map(|(rng, one_in)| Mutex::new(Mischief { rng, page, one_in }));
        let watched = WatchedMemory::new(memory.clone(), move |memory| {
            if let Some(mischief) = &mischief {
                mischief.lock().expect("nobody panics with it").act(memory, page_size);
            }
        });
        let size = PageSize::new(page_size).expect("a page size that was granted");
        let region = ServiceRegion::over(watched, size).expect("at least a page");
        Self { client, region, memory, page_size, is_honest, current }
    }

    fn word(&self, page: u32) -> PageWord {
        PageWord(self.memory.atomic_u32(page as usize * self.page_size).load(Ordering::Acquire))
    }

    /// Returns the chunk as it is in the memory, if the page is divided so that it exists.
    fn look(&self, page: u32, chunk: u32) -> Option<(ChunkState, Incoming)> {
        if page as usize >= self.memory.len() / self.page_size {
            return None;
        }
        let word = self.word(page);
        let (layout, index) = (word.layout()?, chunk as usize);
        let state = word.state(index)?;
        let size = layout.chunk_size(PageSize::new(self.page_size).ok()?);
        let at = page as usize * self.page_size + 8 + index * size;
        let mut bytes = vec![0; size];
        self.memory.read_into(at, &mut bytes);
        let (head, payload) = bytes.split_first_chunk::<8>()?;
        let packets = u16::from_le_bytes([head[6], head[7]]);
        let incoming = Incoming {
            chunk_id: u32::from_le_bytes([head[0], head[1], head[2], head[3]]),
            writer: u16::from_le_bytes([head[4], head[5]]),
            count: packets & 0x3ff,
            flags: (packets >> 10 & 7) as u8,
            complete: state == ChunkState::Complete,
            payload: payload.to_vec(),
        };
        Some((state, incoming))
    }

    /// Returns the chunks that a scrape must show: each chunk that is complete, and each incomplete
    /// one with at least one finished packet.
    fn scrapable(&self) -> Vec<Incoming> {
        let mut found = Vec::new();
        for page in 0..(self.memory.len() / self.page_size) as u32 {
            for chunk in 0..self.word(page).chunks() as u32 {
                let Some((state, incoming)) = self.look(page, chunk) else { continue };
                let finished = incoming.count - u16::from(!incoming.complete && incoming.count > 0);
                if state != ChunkState::Free && incoming.writer != 0 && (finished > 0 || incoming.complete) {
                    found.push(incoming);
                }
            }
        }
        found
    }
}

impl SharedBuffer for SimBuffer {
    fn size_bytes(&self) -> usize {
        self.memory.len()
    }

    fn page_size_bytes(&self) -> usize {
        self.page_size
    }

    fn take_chunk(&mut self, page: u32, chunk: u32, payload: &mut Vec<u8>) -> Option<ChunkHeader> {
        let mut taken = None;
        self.take_chunk_with(page, chunk, &mut |header, shown| {
            payload.clear();
            shown.append_to(payload).expect("the memory is this process's own");
            taken = Some(header);
        });
        taken
    }

    fn take_chunk_with(&mut self, page: u32, chunk: u32, take: &mut dyn FnMut(ChunkHeader, &dyn Payload)) -> bool {
        self.current.store(page, Ordering::Relaxed);
        let before = self.look(page, chunk);
        let mut taken = None;
        let is_taken = SharedBuffer::take_chunk_with(&mut self.region, page, chunk, &mut |header, payload| {
            let copied = RefCell::new(None);
            take(header, &Recorded { payload, copied: &copied });
            // The service did not read a payload that it did not copy.
            let bytes = copied.into_inner().unwrap_or_else(|| match &before {
                Some((_, chunk)) => chunk.payload.clone(),
                None => vec![0; payload.size_bytes()],
            });
            assert!(taken.is_none(), "shared memory: a chunk is shown twice");
            taken = Some(incoming(&header, true, &bytes));
        });
        assert_eq!(is_taken, taken.is_some());
        if self.is_honest {
            let must = before.filter(|(state, _)| *state == ChunkState::Complete).map(|(_, chunk)| chunk);
            assert_eq!(taken, must, "shared memory: page {page} chunk {chunk} is not taken as it lies there");
            let after = self.look(page, chunk).map(|(state, _)| state);
            assert!(
                taken.is_none() || matches!(after, None | Some(ChunkState::Free)),
                "shared memory: a chunk is not freed"
            );
        } else if let Some(taken) = taken.as_ref().filter(|taken| taken.writer != 0) {
            self.assert_possible(chunk, taken);
        }
        see(Seen::Took(self.client, taken));
        is_taken
    }

    fn scrape(&mut self, payload: &mut Vec<u8>, each: &mut dyn FnMut(ScrapedChunk<'_>)) {
        see(Seen::ScrapeBegins(self.client));
        let must = if self.is_honest { uncounted(|| self.scrapable()) } else { Vec::new() };
        let mut shown = 0;
        let (client, is_honest) = (self.client, self.is_honest);
        let mut sizes = Vec::new();
        SharedBuffer::scrape(&mut self.region, payload, &mut |chunk| {
            let scraped = incoming(&chunk.header, chunk.complete, chunk.payload);
            if is_honest {
                assert!(
                    must.get(shown).is_some_and(|must| is_copy(must, &scraped)),
                    "shared memory: a scrape shows {scraped:?} instead of {:?}",
                    must.get(shown)
                );
            } else {
                sizes.push(scraped.payload.len());
            }
            shown += 1;
            see(Seen::Scraped(client, scraped));
            each(chunk);
        });
        if is_honest {
            assert_eq!(shown, must.len(), "shared memory: a scrape passes chunks over");
        }
        for len in sizes {
            assert!(len < self.page_size, "shared memory: a chunk of {len} bytes in a page of {}", self.page_size);
        }
    }
}

/// A payload that records its copy, and panics at a second one: a second copy may differ from the
/// first.
struct Recorded<'a> {
    payload: &'a dyn Payload,
    copied: &'a RefCell<Option<Vec<u8>>>,
}

impl Recorded<'_> {
    fn record(&self, bytes: &[u8]) {
        let before = self.copied.replace(Some(uncounted(|| bytes.to_vec())));
        assert!(before.is_none(), "shared memory: a payload is copied twice");
    }
}

impl Payload for Recorded<'_> {
    fn size_bytes(&self) -> usize {
        self.payload.size_bytes()
    }

    fn copy_to(&self, out: &mut [u8]) -> Result<(), Lost> {
        self.payload.copy_to(out)?;
        self.record(&out[..self.payload.size_bytes()]);
        Ok(())
    }

    fn append_to(&self, out: &mut Vec<u8>) -> Result<(), Lost> {
        let begin = out.len();
        self.payload.append_to(out)?;
        self.record(&out[begin..]);
        Ok(())
    }
}

impl SimBuffer {
    /// Checks that a hostile producer's chunk has one of the sizes that exist, and lies inside of
    /// its page.
    fn assert_possible(&self, index: u32, taken: &Incoming) {
        let page = PageSize::new(self.page_size).expect("checked before");
        let sizes = esatto_shm::abi::PageLayout::ALL.map(|layout| layout.chunk_size(page));
        let size = taken.payload.len() + 8;
        assert!(
            sizes.contains(&size) && 8 + (index as usize + 1) * size <= self.page_size,
            "shared memory: chunk {index} of {size} bytes in a page of {}",
            self.page_size
        );
    }
}

/// Returns true if a scraped chunk equals the one in the memory, up to its last finished packet.
fn is_copy(must: &Incoming, scraped: &Incoming) -> bool {
    if must.complete {
        return must == scraped;
    }
    let finished = finished_len(&must.payload, must.count - 1);
    let (copied, rest) = scraped.payload.split_at(finished.min(scraped.payload.len()));
    must.payload.get(..finished) == Some(copied)
        && rest.iter().all(|&byte| byte == 0)
        && Incoming { payload: Vec::new(), ..must.clone() } == Incoming { payload: Vec::new(), ..scraped.clone() }
        && must.payload.len() == scraped.payload.len()
}

fn finished_len(payload: &[u8], count: u16) -> usize {
    let mut rest = payload;
    for _ in 0..count {
        let Some(len) = crate::pb::take_varint(&mut rest) else { break };
        rest = rest.get(len as usize..).unwrap_or_default();
    }
    payload.len() - rest.len()
}

fn incoming(header: &ChunkHeader, complete: bool, payload: &[u8]) -> Incoming {
    Incoming {
        chunk_id: header.chunk_id,
        writer: header.writer_id,
        count: header.count,
        flags: header.flags,
        complete,
        payload: uncounted(|| payload.to_vec()),
    }
}

impl Mischief {
    fn act(&mut self, memory: &PrivateRegion, page_size: usize) {
        if !self.rng.one_in(self.one_in) {
            return;
        }
        let pages = memory.len() / page_size;
        let current = self.page.load(Ordering::Relaxed) as usize;
        let page = if self.rng.percent(50) { current % pages } else { self.rng.index(pages) } * page_size;
        match self.rng.below(4) {
            // Another layout, other states.
            0 => memory.atomic_u32(page).store(self.rng.bits() as u32, Ordering::Relaxed),
            1 => {
                memory.atomic_u32(page).fetch_xor(1 << self.rng.below(32), Ordering::Relaxed);
            }
            // Header of the first chunk.
            2 => memory.atomic_u16(page + 8 + 6).store(self.rng.bits() as u16, Ordering::Relaxed),
            _ => {
                let at = page + self.rng.index(page_size / 4) * 4;
                memory.atomic_u32(at).store(self.rng.bits() as u32, Ordering::Relaxed);
            }
        }
    }
}

/// Writes bytes as their owner.
pub fn write(memory: &PrivateRegion, mut offset: usize, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let word = memory.atomic_u32(offset & !3);
        let at = offset % 4;
        let len = bytes.len().min(4 - at);
        if len == 4 {
            word.store(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]), Ordering::Relaxed);
        } else {
            let mut old = word.load(Ordering::Relaxed).to_le_bytes();
            old[at..at + len].copy_from_slice(&bytes[..len]);
            word.store(u32::from_le_bytes(old), Ordering::Relaxed);
        }
        offset += len;
        bytes = &bytes[len..];
    }
}
