//! A length becomes known when its chunk is full but not sent yet. The producer has kept the chunk
//! in BeingWritten for that (§11), writes the length into it, and then completes it.

use esatto_shm::{
    Chunk, Region,
    abi::{ChunkFlags, ChunkHeader, Packets, PageLayout},
    announce,
    state::BeingWritten,
};
use loom::thread;

use crate::{SharedSmb, announce_count, check, service, smb, write_fragment};

/// Makes a chunk with a finished fragment, and a fragment whose third byte is a length to be
/// patched.
fn with_open_length(smb: &SharedSmb) -> Chunk<BeingWritten> {
    smb.try_partition(0, PageLayout::Div1);
    let chunk = smb.acquire_for_writing(0, 0, ChunkHeader { chunk_id: 9, writer_id: 5, packets: Packets(0) }).unwrap();
    announce_count(smb, &chunk, 1);
    write_fragment(smb, &chunk, 0, 0xaa);
    announce_count(smb, &chunk, 2);
    write_fragment(smb, &chunk, 2, 0);
    let flags = ChunkFlags::LAST_CONTINUES.with(ChunkFlags::NEEDS_PATCHING);
    announce(smb.packets_field(&chunk), Packets::new(2, flags));
    chunk
}

/// Patches the chunk as `CommitQueue` does, under the arbiter's lock.
fn patch(smb: &SharedSmb, chunk: Chunk<BeingWritten>) {
    // SAFETY: this thread owns the chunk.
    unsafe { smb.region().write_from(chunk.payload_offset() + 3, &[0x85]) };
    announce(smb.packets_field(&chunk), Packets::new(2, ChunkFlags::LAST_CONTINUES));
    smb.complete(chunk).unwrap();
}

pub(crate) fn are_in_the_chunk_that_is_taken() {
    check(3, || {
        let smb = smb(PageLayout::Div1);
        let writer = {
            let smb = smb.clone();
            thread::spawn(move || {
                let chunk = with_open_length(&smb);
                patch(&smb, chunk);
            })
        };
        let mut payload = Vec::new();
        if let Ok(info) = service(&smb).take_chunk(0, 0, &mut payload) {
            assert_eq!((info.count, info.flags), (2, ChunkFlags::LAST_CONTINUES));
            assert_eq!(payload[..4], [1, 0xaa, 1, 0x85]);
        }
        writer.join().unwrap();
    });
}

/// A scrape finds such chunks in BeingWritten, with or without their length, and takes the
/// fragments that were finished before.
pub(crate) fn are_not_scraped_half_done() {
    check(3, || {
        let smb = smb(PageLayout::Div1);
        let chunk = with_open_length(&smb);
        let patching = {
            let smb = smb.clone();
            thread::spawn(move || patch(&smb, chunk))
        };
        service(&smb).scrape(
            &mut Vec::new(),
            |_| true,
            |info, payload| {
                if info.complete {
                    assert_eq!(info.flags, ChunkFlags::LAST_CONTINUES);
                    assert_eq!(payload[..4], [1, 0xaa, 1, 0x85]);
                } else {
                    assert_eq!(info.finished_count(), 1);
                    assert_eq!(payload[..4], [1, 0xaa, 0, 0]);
                }
            },
        );
        patching.join().unwrap();
    });
}
