//! Each row of `docs/spec/shared-memory.md` §18 and §19, in their order, while a session is
//! recorded that must not notice.
//!
//! The rows of §19 about chunks by value and memory that is offered are those of the wire protocol:
//!
//! | row | test |
//! | --- | --- |
//! | sealed memfd of size 0, `F_SEAL_WRITE` | `row_21_05_…` |
//! | page word changed while the service holds the chunk | `row_19_03_…` |
//! | `data` empty, of 65536 bytes, of 1–7 bytes | `row_21_07_…`, `row_21_08_…` |
//! | `data` on a connection with real shared memory | `row_21_09_…` |
//! | 16-bit truncation of target_buffer and writer_id | `row_21_10_…`, `row_19_07_…` |

use crate::attacker::{
    ABI_VIOLATIONS, Attacker, CHUNKS_DISCARDED, CHUNKS_WRITTEN, PATCHES_DISCARDED, PATCHES_FAILED, PATCHES_SUCCEEDED,
    SEALS, memory, offer,
};
use esatto_shm::{MappedRegion, Region};
use esatto_tests::bystander::watch;
use esatto_tests::raw::{
    self, FIRST_CONTINUES, LAST_CONTINUES, NEEDS_PATCHING, ONE_BEING_WRITTEN, ONE_COMPLETE, PAGE_SIZE, RawChunk, moved,
    packet, patched,
};
use esatto_tests::wire::Proto;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

fn good(chunk_id: u32) -> RawChunk {
    RawChunk::new(1, chunk_id, &[packet(u64::from(chunk_id), "good")])
}

/// Puts a chunk under this page word and commits chunk `index` of page `page`.
fn commit_under(attacker: &mut Attacker, word: u32, page: u64, index: u64) {
    attacker.producer.put(0, word, &good(7));
    attacker.commit(&Proto::new().message(1, &moved(page, index, attacker.buffer)));
}

#[test]
fn row_18_01_a_page_index_beyond_this_memory_is_skipped() {
    watch(|harness, _, _| {
        let mut attacker = Attacker::start(harness);
        let pages = attacker.producer.pages() as u64;
        for page in [pages, pages + 1, 2 * pages, 8192, 1 << 20, (1 << 32) - 1] {
            commit_under(&mut attacker, ONE_COMPLETE, page, 0);
            assert_eq!(attacker.producer.word(0), ONE_COMPLETE, "page {page}");
        }
        assert_eq!(attacker.texts_and_one_more(2), ["one more"]);
    });
}

#[test]
fn row_18_02_a_chunk_index_beyond_the_layout_is_skipped() {
    watch(|harness, _, _| {
        let mut attacker = Attacker::start(harness);
        // Not partitioned, 1, 2, 4, 7, 14 chunks; layouts that do not exist.
        for (layout, chunks) in [(0, 0), (1, 1), (2, 2), (3, 4), (4, 7), (5, 14), (6, 0), (7, 0)] {
            let word = layout << 28 | 0x0fff_ffff;
            for index in [chunks, chunks + 1, 13, 14, 15, 16, 255, 256].into_iter().filter(|index| *index >= chunks) {
                commit_under(&mut attacker, word, 0, index);
                assert_eq!(attacker.producer.word(0), word, "layout {layout}, chunk {index}");
            }
        }
        assert_eq!(attacker.texts_and_one_more(2), ["one more"]);
    });
}

#[test]
fn row_18_03_a_chunk_that_is_not_complete_is_skipped() {
    watch(|harness, _, _| {
        let mut attacker = Attacker::start(harness);
        for word in [0x1000_0000, ONE_BEING_WRITTEN, 0x1000_0002, 0x2000_000c] {
            commit_under(&mut attacker, word, 0, 0);
            assert_eq!(attacker.producer.word(0), word);
        }
        // One that is, twice.
        commit_under(&mut attacker, ONE_COMPLETE, 0, 0);
        attacker.commit(&Proto::new().message(1, &moved(0, 0, attacker.buffer)));
        assert_eq!(attacker.buffer_stat(CHUNKS_WRITTEN), 1);
        assert_eq!(attacker.texts_and_one_more(2), ["good", "one more"]);
    });
}

#[test]
fn row_18_04_the_bounds_of_a_chunk_are_those_of_its_layout() {
    watch(|harness, _, _| {
        let mut attacker = Attacker::start(harness);
        // In chunks of 4, 7 and 14 to the page: the last one ends where the page does, or before.
        for (layout, chunks, size) in [(3_u32, 4, 1020), (4, 7, 584), (5, 14, 292)] {
            let index = chunks - 1;
            let chunk = RawChunk::new(1, layout, &[packet(u64::from(layout), "last of the page")]);
            attacker.producer.write(PAGE_SIZE * 2, &[0xff; PAGE_SIZE]);
            attacker.producer.write(PAGE_SIZE + 8 + index * size, &chunk.to_bytes());
            let word = layout << 28 | 3 << (2 * index);
            attacker.producer.write(PAGE_SIZE, &word.to_le_bytes());
            attacker.commit(&Proto::new().message(1, &moved(1, index as u64, attacker.buffer)));
            assert_eq!(attacker.producer.word(1), 0, "the page is free");
            assert_eq!(attacker.producer.word(2), u32::MAX, "and the next one as it was");
        }
        assert_eq!(attacker.texts(), ["last of the page"; 3]);
    });
}

#[test]
fn row_18_05_writer_0_is_invalid_and_its_chunk_is_freed() {
    watch(|harness, _, _| {
        let mut attacker = Attacker::start(harness);
        attacker.producer.commit_chunk(attacker.buffer, &RawChunk { writer_id: 0, ..good(1) });
        assert_eq!(attacker.producer.word(0), 0);
        assert_eq!(attacker.texts_and_one_more(2), ["one more"]);
    });
}

/// The ABI has 16 bits, even if writers use fewer.
#[test]
fn row_18_05_any_other_writer_id_of_16_bits_is_valid() {
    watch(|harness, _, _| {
        let mut attacker = Attacker::start(harness);
        for writer_id in [1, 1023, 1024, 32767, 32768, 65535] {
            attacker.producer.commit_chunk(attacker.buffer, &RawChunk { writer_id, ..good(1) });
        }
        assert_eq!(attacker.texts(), ["good"; 6]);
        assert_eq!(attacker.stat(CHUNKS_DISCARDED), 0);
    });
}

#[test]
fn row_18_06_a_registered_writer_writes_to_its_buffer_only() {
    watch(|harness, _, _| {
        let mut attacker = Attacker::start(harness);
        let first = attacker.buffer;
        // A second session gives it a second buffer.
        let mut other = raw::RawConsumer::connect(harness);
        other.enable(&raw::config(64, &["attacked"]));
        let second = attacker.producer.await_start().buffer;
        let register = |writer: u64, buffer| Proto::new().int(1, writer).int(2, buffer);
        assert!(attacker.producer.peer.call("RegisterTraceWriter", &register(1, first)).success);
        attacker.producer.commit_chunk(second, &good(1));
        assert_eq!(attacker.producer.word(0), 0, "freed");
        assert_eq!(attacker.stat(CHUNKS_DISCARDED), 1);
        attacker.producer.commit_chunk(first, &good(2));
        attacker.producer.commit_chunk(second, &RawChunk { writer_id: 2, ..good(3) });
        assert_eq!(attacker.texts(), ["good"]);
        assert_eq!(other.read_texts().len(), 1, "of the writer that is not registered");
        other.disable();
    });
}

#[test]
fn row_18_07_fragments_with_bad_sizes_are_violations_of_their_own_sequence() {
    watch(|harness, _, _| {
        let mut attacker = Attacker::start(harness);
        let whole = packet(0, "before");
        let bad: [&[u8]; 4] = [
            &[0xff, 0xff, 0xff, 0xff, 0xff],
            &[0xfe, 0xff, 0xff, 0x7f],
            &[0xf0, 0x7f],
            &[0x80, 0x80, 0x80, 0x80, 0x80],
        ];
        for (chunk_id, size) in (0..).zip(bad) {
            let mut chunk = RawChunk::new(1, chunk_id, &[&whole]);
            chunk.payload.extend_from_slice(size);
            chunk.count = 3;
            attacker.producer.commit_chunk(attacker.buffer, &chunk);
        }
        // Counts and flags that promise more than there is.
        for (chunk_id, flags) in (10..).zip([0, FIRST_CONTINUES, LAST_CONTINUES, FIRST_CONTINUES | LAST_CONTINUES, 63])
        {
            let chunk =
                RawChunk { count: 1023, flags: flags & !NEEDS_PATCHING, ..RawChunk::new(2, chunk_id, &[&whole]) };
            attacker.producer.commit_chunk(attacker.buffer, &chunk);
        }
        let texts = attacker.texts_and_one_more(3);
        assert!(texts.iter().filter(|text| *text == "before").count() >= 4, "{texts:?}");
        assert_eq!(texts.last().map(String::as_str), Some("one more"));
        assert!(attacker.buffer_stat(ABI_VIOLATIONS) >= 1);
    });
}

#[test]
fn row_18_10_patches_that_do_not_fit_are_counted_and_change_nothing() {
    watch(|harness, _, _| {
        let mut attacker = Attacker::start(harness);
        let buffer = attacker.buffer;
        let content = packet(0, "as it was");
        let waiting = RawChunk::new(1, 7, &[&content]).flags(NEEDS_PATCHING);
        attacker.producer.commit_chunk(buffer, &waiting);
        let value = [0xff; 4];
        // Beyond the end of the chunk: its payload is 4080 bytes.
        for offset in [4077, 4080, 4081, 65535, 65536, u64::from(u32::MAX) - 3, u64::from(u32::MAX)] {
            attacker.commit(&Proto::new().message(2, &patched(buffer, 1, 7, &[(offset, &value)], true)));
        }
        assert_eq!((attacker.buffer_stat(PATCHES_SUCCEEDED), attacker.buffer_stat(PATCHES_FAILED)), (0, 7));
        // Not four bytes.
        for size in [0, 1, 3, 5, 8, 4096] {
            attacker.commit(&Proto::new().message(2, &patched(buffer, 1, 7, &[(0, &vec![0xff; size])], true)));
        }
        assert_eq!(attacker.stat(PATCHES_DISCARDED), 6);
        // Patches of chunks that do not exist, and of other buffers.
        for (target, writer, chunk_id) in [(buffer, 1, 8), (buffer, 2, 7), (1, 1, 7), (999, 1, 7)] {
            attacker.commit(&Proto::new().message(2, &patched(target, writer, chunk_id, &[(0, &value)], false)));
        }
        assert_eq!(attacker.buffer_stat(PATCHES_SUCCEEDED), 0);
        assert!(attacker.texts().is_empty(), "it still waits");
        // At last one that fits.
        let offset = waiting.payload.windows(5).position(|bytes| bytes == b"as it").expect("the text");
        attacker.commit(&Proto::new().message(2, &patched(buffer, 1, 7, &[(offset as u64, b"is a")], false)));
        assert_eq!(attacker.buffer_stat(PATCHES_SUCCEEDED), 1);
        assert_eq!(attacker.texts(), ["is at was"]);
    });
}

#[test]
fn row_18_11_a_flush_is_acknowledged_for_its_own_producer_only() {
    watch(|harness, _, _| {
        let mut attacker = Attacker::start(harness);
        // The bystander's flush at the end of this test waits for the bystander, not for this.
        for flush in [1, 2, 1000, u64::MAX] {
            attacker.commit(&Proto::new().int(3, flush));
        }
        let flush = attacker.consumer.flush(0);
        let id = attacker.producer.await_flush();
        // A later one also acknowledges it.
        attacker.producer.acknowledge(id + 1);
        assert!(attacker.consumer.peer.reply_to(flush).success);
    });
}

/// Values that a page word is changed to while the service may hold its chunk: layouts, states,
/// zero.
const WORDS: [u32; 7] = [0, ONE_COMPLETE, ONE_BEING_WRITTEN, 0x2000_000f, 0x5fff_ffff, 0x6000_0003, 0xffff_ffff];
/// The word of a page with one chunk that the service holds.
const BEING_READ: u32 = 0x1000_0002;

#[test]
fn row_19_03_page_words_may_change_while_the_service_holds_the_chunk() {
    watch(|harness, _, _| {
        // Pages of 32 KiB, so that a copy takes a while.
        let fd = memory(8 * 32768, SEALS);
        let (producer, adopted) = offer(harness, 32768, fd.as_fd());
        assert!(adopted);
        let mut attacker = Attacker::start_as(harness, producer);
        let region = MappedRegion::from_service(fd).expect("memory");
        let (done, seen) = (AtomicBool::new(false), AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut words = WORDS.iter().cycle();
                while !done.load(Ordering::Relaxed) {
                    for page in 0..8 {
                        let word = region.atomic_u32(page * 32768);
                        let found = word.load(Ordering::Relaxed);
                        if found == BEING_READ {
                            // Only the service stores this.
                            seen.fetch_add(1, Ordering::Relaxed);
                        }
                        // The service clears the header of a chunk that it frees.
                        region.atomic_u16(page * 32768 + 12).store(1, Ordering::Relaxed);
                        word.store(*words.next().expect("for ever"), Ordering::Relaxed);
                    }
                }
            });
            let all = (0..8).flat_map(|page| (0..14).map(move |chunk| (page, chunk)));
            let request = all
                .fold(Proto::new(), |request, (page, chunk)| request.message(1, &moved(page, chunk, attacker.buffer)));
            // Until it was met in the act; a machine with one processor may never.
            for round in 0..10_000 {
                attacker.commit(&request);
                if round >= 1000 && seen.load(Ordering::Relaxed) > 0 {
                    break;
                }
            }
            // And while it is scraped and goes away.
            let flush = attacker.consumer.flush(0);
            let id = attacker.producer.await_flush();
            attacker.producer.acknowledge(id);
            assert!(attacker.consumer.peer.reply_to(flush).success);
            done.store(true, Ordering::Relaxed);
        });
        assert!(attacker.buffer_stat(CHUNKS_WRITTEN) > 0, "some were taken");
    });
}

#[test]
fn row_19_07_a_writer_id_of_17_bits_is_not_taken_for_its_lower_16() {
    watch(|harness, _, _| {
        let mut attacker = Attacker::start(harness);
        let buffer = attacker.buffer;
        let waiting = RawChunk::new(1, 7, &[packet(0, "as it was")]).flags(NEEDS_PATCHING);
        attacker.producer.commit_chunk(buffer, &waiting);
        attacker.commit(&Proto::new().message(2, &patched(buffer, 65537, 7, &[(0, &[0xff; 4])], false)));
        attacker.commit(&Proto::new().message(2, &patched(65536 + buffer, 1, 7, &[(0, &[0xff; 4])], false)));
        assert_eq!(attacker.stat(PATCHES_DISCARDED), 2);
        assert!(attacker.texts().is_empty(), "it still waits");
        // Registered for another buffer under the same lower bits, it would be discarded.
        let _ = attacker.producer.peer.call("RegisterTraceWriter", &Proto::new().int(1, 65538).int(2, 65535));
        assert_eq!(attacker.texts_and_one_more(2), ["one more"]);
    });
}
