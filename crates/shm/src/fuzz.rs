//! Entry points for fuzzers: bytes that a hostile producer controls.

use core::{fmt, sync::atomic::AtomicUsize};
use std::sync::Mutex;

use crate::{
    ChunkInfo, Fragment, Fragments, PrivateRegion, Region, ServiceRegion, Skip, Smb,
    abi::{CHUNK_HEADER_SIZE, MAX_CHUNKS_PER_PAGE, PACKETS_OFFSET, PAGE_HEADER_SIZE, PageSize, WRITER_ID_OFFSET},
    service_region::{scrape, take_chunk},
    sync::{AtomicU16, AtomicU32, Ordering},
};

/// Pages of the region that a fuzzer fills.
const PAGES: usize = 2;

/// A region of two pages whose beginnings are the first half of `data`: every chunk is taken, and all scraped, while the rest of
/// `data` says how the memory changes from one load to the next.
///
/// # Panics
/// If a header field is looked at twice, or more is copied than a chunk; that is what a fuzzer looks for.
pub fn fuzz_service_region(data: &[u8]) {
    let (content, changes) = data.split_at(data.len() / 2);
    let mut bytes = vec![0; PAGES * PageSize::MIN];
    for (page, half) in content.chunks(content.len().div_ceil(PAGES).max(1)).take(PAGES).enumerate() {
        let len = half.len().min(PageSize::MIN);
        bytes[page * PageSize::MIN..][..len].copy_from_slice(&half[..len]);
    }
    let unchanging = PrivateRegion::from_bytes(&bytes);
    let changing = Changing::new(PrivateRegion::from_bytes(&bytes), changes);
    let smb = Smb::new(changing, PageSize::DEFAULT).expect("two pages");
    let mut out = Vec::new();
    let mut scratch = Vec::new();
    scrape(&smb, &mut scratch, &mut |info| info.writer_id != 9, &mut |info, payload| {
        assert!(info.writer_id != 0 && (info.complete || info.finished_count() > 0));
        walk(payload, info.finished_count());
    });
    for page in 0..=PAGES as u32 {
        for chunk in 0..=MAX_CHUNKS_PER_PAGE as u32 {
            smb.region().loads_of_packets.store(0, Ordering::Relaxed);
            smb.region().loads_of_ids.store(0, Ordering::Relaxed);
            let taken = take_chunk(&smb, page, chunk, &mut out);
            // One load, and one store that clears it.
            let (packets, ids) = smb.region().header_accesses();
            let held = matches!(taken, Ok(_) | Err(Skip::NoWriter));
            assert_eq!((packets, ids), if held { (2, 2) } else { (0, 0) }, "a header field is loaded once");
            if let Ok(info) = taken {
                assert!((info.page, info.chunk) == (page, chunk) && info.writer_id != 0);
                assert!(out.len() <= PageSize::MIN - PAGE_HEADER_SIZE - CHUNK_HEADER_SIZE);
                walk(&out, info.count);
            }
        }
    }
    take_all(unchanging);
}

/// Memory that nobody changes: no chunk is there twice, and what is scraped is what is taken.
fn take_all(region: PrivateRegion) {
    let service = ServiceRegion::new(std::sync::Arc::new(region), PageSize::DEFAULT).expect("two pages");
    let (mut scraped, mut scratch, mut out) = (Vec::new(), Vec::new(), Vec::new());
    service.scrape(&mut scratch, |info| info.complete, |info, payload| scraped.push((*info, payload.to_vec())));
    for page in 0..PAGES as u32 {
        for chunk in 0..MAX_CHUNKS_PER_PAGE as u32 {
            if let Ok(info) = service.take_chunk(page, chunk, &mut out) {
                let seen = scraped.iter().find(|(seen, _)| (seen.page, seen.chunk) == (page, chunk));
                assert!(seen.is_some_and(|(seen, payload)| *seen == info && *payload == out));
                assert!(service.take_chunk(page, chunk, &mut out).is_err(), "a chunk is taken twice");
            }
        }
    }
}

/// Memory that is another one at each look.
struct Changing {
    memory: PrivateRegion,
    /// Bytes to take from: place and value of the next change. Without any, it stays as it is.
    changes: Mutex<Vec<u8>>,
    loads_of_packets: AtomicUsize,
    loads_of_ids: AtomicUsize,
}

impl Changing {
    fn new(memory: PrivateRegion, changes: &[u8]) -> Self {
        let changes = Mutex::new(changes.iter().rev().copied().collect());
        Self { memory, changes, loads_of_packets: AtomicUsize::new(0), loads_of_ids: AtomicUsize::new(0) }
    }

    fn change(&self) {
        let mut changes = self.changes.lock().expect("no panic while it is held");
        let (Some(place), Some(value)) = (changes.pop(), changes.pop()) else { return };
        let page = usize::from(place & 1) * PageSize::MIN;
        match place >> 1 & 7 {
            // Nothing happens.
            0..=2 => {}
            // One state, or the layout.
            3 => drop(self.memory.atomic_u32(page).fetch_xor(1 << (value & 31), Ordering::Relaxed)),
            4 => {
                let words =
                    [0x1000_0003, 0x2000_000f, 0x3000_00ff, 0x4000_3fff, 0x5fff_ffff, 0, 0x1000_0001, 0x6000_0003];
                self.memory.atomic_u32(page).store(words[usize::from(value & 7)], Ordering::Relaxed);
            }
            // Bytes of the first chunk, header included.
            _ => {
                let at = page + PAGE_HEADER_SIZE + usize::from(place >> 4) * 4;
                self.memory.atomic_u32(at).store(u32::from(value) * 0x0101_0101, Ordering::Relaxed);
            }
        }
    }

    fn header_accesses(&self) -> (usize, usize) {
        (self.loads_of_packets.load(Ordering::Relaxed), self.loads_of_ids.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Changing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changing").field("memory", &self.memory).finish_non_exhaustive()
    }
}

// SAFETY: the memory is that of the region inside, which lives as long and never moves.
unsafe impl Region for Changing {
    fn len(&self) -> usize {
        self.memory.len()
    }

    fn atomic_u32(&self, offset: usize) -> &AtomicU32 {
        self.change();
        self.memory.atomic_u32(offset)
    }

    fn atomic_u16(&self, offset: usize) -> &AtomicU16 {
        self.change();
        // Chunks are multiples of 4 long and begin behind the page header, so 2 bytes further is `packets`.
        let field = if offset % 4 == PACKETS_OFFSET % 4 { &self.loads_of_packets } else { &self.loads_of_ids };
        const { assert!(PACKETS_OFFSET % 4 != WRITER_ID_OFFSET % 4) };
        field.fetch_add(1, Ordering::Relaxed);
        self.memory.atomic_u16(offset)
    }

    fn read_into(&self, offset: usize, out: &mut [u8]) {
        // In two pieces, so that what was copied does not fit together.
        let (first, second) = out.split_at_mut(out.len() / 2);
        self.change();
        self.memory.read_into(offset, first);
        self.change();
        self.memory.read_into(offset + first.len(), second);
    }

    unsafe fn write_from(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: the caller's promise.
        unsafe { self.memory.write_from(offset, bytes) };
    }
}

/// The `data` of an emulated commit.
pub fn fuzz_chunk_data(data: &[u8]) {
    if let Ok((info, payload)) = ChunkInfo::from_data(0, 0, data, true) {
        assert!(info.writer_id != 0);
        walk(payload, info.count);
    }
}

fn walk(payload: &[u8], count: u16) {
    let mut total = 0;
    let mut fragments = Fragments::new(payload, count);
    let mut seen = 0;
    while let Some(fragment) = fragments.next() {
        seen += 1;
        if let Fragment::Data(data) = fragment {
            total += 1 + data.len();
        }
        assert!(fragments.offset() <= payload.len());
    }
    assert!(total <= payload.len() && seen <= count);
}

#[cfg(test)]
mod tests {
    #[test]
    fn entry_points_take_anything() {
        let mut data = Vec::new();
        let mut x = 1u32;
        for len in 0..300 {
            super::fuzz_service_region(&data);
            super::fuzz_chunk_data(&data);
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            data.push((x >> 24) as u8);
            if len % 7 == 0 {
                // A page that is taken: Div1, complete.
                data.splice(0..data.len().min(4), 0x1000_0003u32.to_ne_bytes());
            }
        }
    }
}
