//! Entry points for fuzzers: bytes that a hostile producer controls, and a writer held against its reader.

use std::sync::Arc;

use crate::{
    ChunkInfo, Fragment, Fragments, PrivateRegion, Region, ServiceRegion,
    abi::{MAX_CHUNKS_PER_PAGE, PageSize},
    sync::Ordering,
};

/// Pages of the region that a fuzzer fills.
const PAGES: usize = 2;

/// A region of two pages whose beginnings are `data`: scraped, and every chunk taken, while page words change.
pub fn fuzz_service_region(data: &[u8]) {
    let mut bytes = vec![0; PAGES * PageSize::MIN];
    for (page, half) in data.chunks(data.len().div_ceil(PAGES).max(1)).take(PAGES).enumerate() {
        let len = half.len().min(PageSize::MIN);
        bytes[page * PageSize::MIN..][..len].copy_from_slice(&half[..len]);
    }
    let region = Arc::new(PrivateRegion::from_bytes(&bytes));
    let Ok(service) = ServiceRegion::new(region.clone(), PageSize::DEFAULT) else { return };
    let change = data.iter().fold(0u32, |sum, b| sum.rotate_left(5) ^ u32::from(*b));
    service.scrape(
        &mut Vec::new(),
        |info| info.writer_id != change as u16,
        |info, payload| {
            walk(payload, info.finished_count());
            // The producer is at work while the service looks.
            region.atomic_u32(0).fetch_xor(change, Ordering::Relaxed);
        },
    );
    let mut out = Vec::new();
    for page in 0..=PAGES as u32 {
        for chunk in 0..=MAX_CHUNKS_PER_PAGE as u32 {
            if let Ok(info) = service.take_chunk(page, chunk, &mut out) {
                walk(&out, info.count);
            }
        }
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
