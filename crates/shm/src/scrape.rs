//! Scraping: copies of chunks that were not committed, with the finished fragments of those that
//! are still being written (`docs/spec/shared-memory.md` §16).
//!
//! As in [`crate::service_region`], nothing here trusts the region.

use core::ops::Range;

use esatto_map::LargeMap;

use crate::{
    abi::{CHUNK_HEADER_SIZE, ChunkState, FRAGMENT_SIZE_LEN},
    chunk_states::Smb,
    fragments::{SizeField, parse_size},
    memory::Region,
    service_region::{ChunkInfo, ServiceRegion},
};

impl<R: Region> ServiceRegion<R> {
    /// Copies chunks that were not committed yet, without changing them (§16).
    ///
    /// For each chunk with content, `wanted` decides from the header if it is wanted (the writer is
    /// registered, and its buffer belongs to the session); it may be asked twice. If it is, its
    /// payload is copied to `scratch` and passed to `found`. No chunk is passed without the earlier
    /// chunks of its writer that were not committed. Pages that were never used are not read,
    /// because a read would allocate them. If a chunk is still being written, only its finished
    /// fragments are copied. The rest of the payload reads as zero.
    pub fn scrape(
        &self,
        scratch: &mut Vec<u8>,
        mut wanted: impl FnMut(&ChunkInfo) -> bool,
        mut found: impl FnMut(&ChunkInfo, &[u8]),
    ) {
        scrape(&self.smb, scratch, &mut wanted, &mut found);
    }
}

/// [`ServiceRegion::scrape`], also for emulated producers, which scrape their own chunks.
///
/// Writers go on meanwhile. While this looks at one page after the other, a writer may fill pages
/// that it has passed, and then one that it has not. So a first look at the headers finds the
/// newest chunk of each writer. All earlier ones are there at the second look, which takes no newer
/// ones.
pub(crate) fn scrape<R: Region>(
    smb: &Smb<R>,
    scratch: &mut Vec<u8>,
    wanted: &mut dyn FnMut(&ChunkInfo) -> bool,
    found: &mut dyn FnMut(&ChunkInfo, &[u8]),
) {
    let mut newest: LargeMap<u16, u32> = LargeMap::new();
    each_with_content(smb, &mut |info, _| {
        if wanted(info) {
            let last = newest.get_or_insert_with(info.writer_id, || info.chunk_id);
            if is_newer(info.chunk_id, *last) {
                *last = info.chunk_id;
            }
        }
    });
    if newest.is_empty() {
        return;
    }
    each_with_content(smb, &mut |info, payload| {
        let is_known = newest.get(&info.writer_id).is_some_and(|last| !is_newer(info.chunk_id, *last));
        if is_known && wanted(info) {
            copy_finished(smb, info, payload, scratch);
            if !smb.region().is_lost() {
                found(info, scratch);
            }
        }
    });
}

/// Returns whether a chunk follows another one of its writer. The numbers wrap.
fn is_newer(id: u32, than: u32) -> bool {
    id != than && id.wrapping_sub(than) <= u32::MAX / 2
}

/// Passes each chunk with content to `visit`, with the range of its payload in the region.
fn each_with_content<R: Region>(smb: &Smb<R>, visit: &mut dyn FnMut(&ChunkInfo, Range<usize>)) {
    for page in 0..smb.pages() {
        if !smb.is_page_used(page) {
            continue;
        }
        let word = smb.page_word(page);
        for index in 0..word.chunks() {
            let Some(chunk) = smb.observe(page, index, word) else { continue };
            if chunk.state == ChunkState::Free {
                continue;
            }
            let complete = chunk.state == ChunkState::Complete;
            let header = smb.header_at(chunk.offset);
            #[expect(clippy::cast_possible_truncation, reason = "a page has at most 14 chunks")]
            let info = ChunkInfo::new(page, index as u32, header, complete);
            // If the count is 2 or more, the header is initialised and one fragment is finished. A
            // complete chunk counts even if it is empty: without it, the next chunk would seem to
            // come after a gap.
            if info.writer_id != 0 && (complete || info.finished_count() > 0) {
                visit(&info, chunk.offset + CHUNK_HEADER_SIZE..chunk.offset + chunk.size);
            }
        }
    }
}

/// Copies the finished fragments of a payload. The rest of `out` is zero.
fn copy_finished<R: Region>(smb: &Smb<R>, info: &ChunkInfo, payload: Range<usize>, out: &mut Vec<u8>) {
    out.clear();
    out.resize(payload.len(), 0);
    let finished = if info.complete {
        out.len()
    } else {
        finished_len(smb.region(), payload.start, out.len(), info.finished_count())
    };
    smb.region().read_into(payload.start, &mut out[..finished]);
}

/// Returns the length of the first `count` fragments in a payload that is still growing. Only bytes
/// of finished fragments are read.
///
/// A hostile producer can make this any number up to `payload_len`, which does no harm.
fn finished_len<R: Region>(region: &R, begin: usize, payload_len: usize, count: u16) -> usize {
    let mut at = 0;
    for _ in 0..count {
        let mut size_field = [0; FRAGMENT_SIZE_LEN];
        let mut len = 0;
        let (size, used) = loop {
            if len == size_field.len() || at + len == payload_len {
                return at;
            }
            region.read_into(begin + at + len, &mut size_field[len..=len]);
            len += 1;
            match parse_size(&size_field[..len]) {
                SizeField::Whole { size, used } => break (size as usize, used),
                SizeField::Torn => {}
                SizeField::TooLong => return at,
            }
        };
        if size > payload_len - at - used {
            return at;
        }
        at += used + size;
    }
    at
}
