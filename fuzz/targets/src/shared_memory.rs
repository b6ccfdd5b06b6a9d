//! Memory that a hostile producer shares with the service.

use std::sync::Arc;

use esatto_shm::abi::{CHUNK_HEADER_SIZE, MAX_CHUNKS_PER_PAGE, PAGE_HEADER_SIZE, PageSize};
use esatto_shm::{ChunkInfo, Fragment, Fragments, PrivateRegion, ServiceRegion, Skip};

use crate::changing_memory::ChangingMemory;

/// Pages of memory that changes.
const CHANGING_PAGES: usize = 2;
/// Pages of memory that does not change, at most.
const MAX_PAGES: usize = 16;

/// Shared memory whose chunks are all scraped and taken: first as it is, then while it changes.
///
/// The second time, the first half of the bytes is the memory. The rest says how the memory changes
/// from one load to the next.
pub fn shm_region(bytes: &[u8]) {
    for page_size in [PageSize::MIN, 2 * PageSize::MIN] {
        let mut memory = bytes.to_vec();
        memory.resize(bytes.len().next_multiple_of(page_size).clamp(page_size, MAX_PAGES * PageSize::MIN), 0);
        let page_size = PageSize::new(page_size).expect("a page size that exists");
        take_unchanging(&memory, page_size);
    }
    let (content, changes) = bytes.split_at(bytes.len() / 2);
    let mut memory = vec![0; CHANGING_PAGES * PageSize::MIN];
    for (page, half) in content.chunks(content.len().div_ceil(CHANGING_PAGES).max(1)).enumerate() {
        let len = half.len().min(PageSize::MIN);
        memory[page * PageSize::MIN..][..len].copy_from_slice(&half[..len]);
    }
    take_changing(&memory, changes);
    take_unchanging(&memory, PageSize::DEFAULT);
}

/// Memory that does not change: each chunk is taken once, and the scrape shows the same chunks
/// before.
fn take_unchanging(memory: &[u8], page_size: PageSize) {
    let region = ServiceRegion::new(Arc::new(PrivateRegion::from_bytes(memory)), page_size).expect("at least a page");
    let (mut scraped, mut scratch, mut out) = (Vec::new(), Vec::new(), Vec::new());
    region.scrape(
        &mut scratch,
        |info| info.page % 2 == 0 || info.complete,
        |info, payload| {
            read(payload, info.count);
            if info.complete {
                scraped.push((*info, payload.to_vec()));
            }
        },
    );
    for page in 0..region.pages() + 2 {
        for chunk in 0..=MAX_CHUNKS_PER_PAGE as u32 {
            if let Ok(info) = region.take_chunk(page, chunk, &mut out) {
                read(&out, info.count);
                let seen = scraped.iter().find(|(seen, _)| (seen.page, seen.chunk) == (page, chunk));
                assert!(seen.is_some_and(|(seen, payload)| *seen == info && *payload == out), "scraped as taken");
                assert!(region.take_chunk(page, chunk, &mut out).is_err(), "a chunk is taken twice");
            }
        }
    }
}

/// Memory that changes between any two loads: no header field is loaded twice, and no payload is
/// larger than a chunk.
fn take_changing(memory: &[u8], changes: &[u8]) {
    let changing = ChangingMemory::new(PrivateRegion::from_bytes(memory), changes);
    let region = ServiceRegion::over(changing, PageSize::DEFAULT).expect("two pages");
    let (mut scratch, mut out) = (Vec::new(), Vec::new());
    region.scrape(
        &mut scratch,
        |info| info.writer_id != 9,
        |info, payload| {
            assert!(info.writer_id != 0 && (info.complete || info.finished_count() > 0));
            read(payload, info.finished_count());
        },
    );
    for page in 0..=CHANGING_PAGES as u32 {
        for chunk in 0..=MAX_CHUNKS_PER_PAGE as u32 {
            region.region().begin_counting();
            let taken = region.take_chunk(page, chunk, &mut out);
            // One load, and one store that clears the field.
            let held = matches!(taken, Ok(_) | Err(Skip::NoWriter));
            let accesses = if held { 2 } else { 0 };
            assert_eq!(region.region().header_accesses(), (accesses, accesses), "a header field is loaded once");
            if let Ok(info) = taken {
                assert!((info.page, info.chunk) == (page, chunk) && info.writer_id != 0);
                assert!(out.len() <= PageSize::MIN - PAGE_HEADER_SIZE - CHUNK_HEADER_SIZE);
                read(&out, info.count);
            }
        }
    }
}

/// The `data` of a chunk that came by value.
pub fn shm_chunk_data(data: &[u8]) {
    if let Ok((info, payload)) = ChunkInfo::from_data(0, 0, data, true) {
        assert!(info.writer_id != 0);
        read(payload, info.count);
    }
}

/// Reads the fragments of a payload, none of which may lie outside of it.
fn read(payload: &[u8], count: u16) {
    let mut fragments = Fragments::new(payload, count);
    let (mut total, mut seen) = (0, 0);
    while let Some(fragment) = fragments.next() {
        seen += 1;
        if let Fragment::Data(data) = fragment {
            total += 1 + data.len();
        }
        assert!(fragments.offset() <= payload.len());
    }
    assert!(total <= payload.len() && seen <= count);
}
