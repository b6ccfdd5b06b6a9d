//! Models of the chunk state machine under loom, one property each.
//!
//! ```text
//! RUSTFLAGS="--cfg esatto_loom" cargo test -p esatto-shm --test loom --release
//! ```
//!
//! Preemption bound: 3 (`LOOM_MAX_PREEMPTIONS` overrides it). The models have two or three threads of a
//! handful of atomic operations each; more preemptions only repeat interleavings of independent steps.
//!
//! Which ordering each model holds up was seen by making it `Relaxed` and watching the model fail:
//!
//! | ordering | model |
//! |---|---|
//! | AcqRel of completing a chunk, acquire of taking it | `hand_over_publishes_the_payload` |
//! | AcqRel of freeing a chunk, acquire of partitioning its page anew | `a_freed_page_comes_with_its_header_cleared` |
//! | acquire of acquiring a chunk of a page still partitioned | `a_freed_chunk_comes_with_its_header_cleared` |
//! | Release of `packets`, acquire of scraping it | `scraping_sees_only_finished_fragments` |
//!
//! The other two properties hold by the atomicity of the compare-exchange alone.

#![cfg(esatto_loom)]

use std::sync::Arc as StdArc;

use esatto_shm::{
    LoomRegion, Region, ServiceRegion, Smb,
    abi::{ChunkFlags, ChunkHeader, Packets, PageLayout, PageSize, PageWord},
    sync::Ordering,
};
use loom::thread;

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    builder.check(f);
}

type SharedSmb = StdArc<Smb<StdArc<LoomRegion>>>;

fn smb(layout: PageLayout) -> SharedSmb {
    let region = StdArc::new(LoomRegion::new(1, PageSize::DEFAULT, layout));
    StdArc::new(Smb::new(region, PageSize::DEFAULT).unwrap())
}

fn service(smb: &SharedSmb) -> ServiceRegion {
    ServiceRegion::new(smb.region().clone(), PageSize::DEFAULT).unwrap()
}

fn header(writer_id: u16, count: u16) -> ChunkHeader {
    ChunkHeader { chunk_id: 9, writer_id, packets: Packets::new(count, ChunkFlags::NONE) }
}

#[test]
fn hand_over_publishes_the_payload() {
    model(|| {
        let smb = smb(PageLayout::Div1);
        let writer = {
            let smb = smb.clone();
            thread::spawn(move || {
                smb.try_partition(0, PageLayout::Div1);
                let chunk = smb.acquire_for_writing(0, 0, header(5, 1)).unwrap();
                // SAFETY: the chunk is ours.
                unsafe { smb.region().write_from(chunk.payload_offset(), &[1, 0xaa]) };
                smb.complete(chunk).unwrap();
            })
        };
        let mut out = Vec::new();
        if let Ok(info) = service(&smb).take_chunk(0, 0, &mut out) {
            assert_eq!((info.writer_id, info.chunk_id, info.count), (5, 9, 1));
            assert_eq!(out[..2], [1, 0xaa]);
            assert_eq!(smb.page_word(0), PageWord::FREE);
        }
        writer.join().unwrap();
    });
}

#[test]
fn two_writers_never_get_the_same_chunk() {
    model(|| {
        let smb = smb(PageLayout::Div2);
        let acquire = |writer_id| {
            let smb = smb.clone();
            thread::spawn(move || {
                smb.try_partition(0, PageLayout::Div2);
                (0..2).find_map(|i| smb.acquire_for_writing(0, i, header(writer_id, 0)).ok())
            })
        };
        let (a, b) = (acquire(1), acquire(2));
        let (a, b) = (a.join().unwrap().unwrap(), b.join().unwrap().unwrap());
        assert_ne!(a.index(), b.index());
        assert_eq!(smb.header(&a).writer_id, 1);
        assert_eq!(smb.header(&b).writer_id, 2);
    });
}

/// A chunk of a Div1 or Div2 page is freed by one thread and acquired by the other as soon as it can be: what the
/// freeing side stored into the header must be older than what the new writer stores.
fn reacquire(layout: PageLayout) {
    model(move || {
        let smb = smb(layout);
        smb.try_partition(0, layout);
        let chunk = smb.acquire_for_writing(0, 0, header(5, 7)).unwrap();
        smb.complete(chunk).unwrap();
        if layout == PageLayout::Div2 {
            // The page stays partitioned.
            smb.acquire_for_writing(0, 1, header(5, 7)).unwrap();
        }
        let taker = {
            let smb = smb.clone();
            thread::spawn(move || {
                service(&smb).take_chunk(0, 0, &mut Vec::new()).unwrap();
            })
        };
        smb.try_partition(0, layout);
        let acquired = smb.acquire_for_writing(0, 0, header(6, 0));
        taker.join().unwrap();
        if let Ok(chunk) = acquired {
            assert_eq!(smb.header(&chunk), header(6, 0));
        }
    });
}

#[test]
fn a_freed_page_comes_with_its_header_cleared() {
    reacquire(PageLayout::Div1);
}

#[test]
fn a_freed_chunk_comes_with_its_header_cleared() {
    reacquire(PageLayout::Div2);
}

#[test]
fn scraping_sees_only_finished_fragments() {
    model(|| {
        let smb = smb(PageLayout::Div1);
        let writer = {
            let smb = smb.clone();
            thread::spawn(move || {
                smb.try_partition(0, PageLayout::Div1);
                let chunk = smb.acquire_for_writing(0, 0, header(5, 0)).unwrap();
                let at = chunk.payload_offset();
                let publish = |count| {
                    let packets = Packets::new(count, ChunkFlags::NONE);
                    smb.packets_field(&chunk).store(packets.0, Ordering::Release);
                };
                publish(1);
                // SAFETY: the chunk is ours.
                unsafe { smb.region().write_from(at, &[1, 0xaa]) };
                publish(2);
                // SAFETY: the chunk is ours.
                unsafe { smb.region().write_from(at + 2, &[1, 0xbb]) };
                publish(3);
            })
        };
        service(&smb).scrape(
            &mut Vec::new(),
            |_| true,
            |info, payload| {
                assert_eq!((info.writer_id, info.chunk_id, info.complete), (5, 9, false));
                match info.finished_count() {
                    1 => assert_eq!(payload[..4], [1, 0xaa, 0, 0]),
                    2 => assert_eq!(payload[..4], [1, 0xaa, 1, 0xbb]),
                    n => panic!("{n} fragments"),
                }
            },
        );
        writer.join().unwrap();
    });
}

#[test]
fn freeing_the_last_chunk_unpartitions_in_the_same_step() {
    model(|| {
        let smb = smb(PageLayout::Div2);
        smb.try_partition(0, PageLayout::Div2);
        let chunks = [0, 1].map(|i| {
            let chunk = smb.acquire_for_writing(0, i, header(1, 0)).unwrap();
            smb.complete(chunk).unwrap();
            smb.acquire_for_reading(0, i).unwrap()
        });
        let freeing = chunks.map(|chunk| {
            let smb = smb.clone();
            thread::spawn(move || smb.free(chunk).unwrap())
        });
        // Whoever looks meanwhile sees a layout with a chunk in use, or a free page; never an empty layout.
        let word = smb.page_word(0);
        assert!(word == PageWord::FREE || (word.layout().is_some() && word.0 & 0x0fff_ffff != 0));
        for thread in freeing {
            thread.join().unwrap();
        }
        assert_eq!(smb.page_word(0), PageWord::FREE);
        assert!(smb.try_partition(0, PageLayout::Div2));
    });
}
