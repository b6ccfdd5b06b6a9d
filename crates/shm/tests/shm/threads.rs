//! Several writers, a connection's thread, and a service that takes and scrapes, at the same time.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use esatto_protozero::Fields;
use esatto_shm::{ExhaustedPolicy, Fragment, Fragments, Options, Outgoing, abi::PageLayout};

use crate::rig::{Rig, Taken};

const PACKETS: u64 = 3000;

/// Reassembles the packets of one writer, with patches applied.
fn packets(chunks: &[Taken]) -> Vec<Vec<u8>> {
    let mut packets: Vec<Vec<u8>> = Vec::new();
    for (i, chunk) in chunks.iter().enumerate() {
        assert_eq!(chunk.info.chunk_id, i as u32, "in order, without gaps");
        for (n, fragment) in Fragments::new(&chunk.payload, chunk.info.count).enumerate() {
            let Fragment::Data(data) = fragment else { panic!("{fragment:?}") };
            if n == 0 && chunk.info.flags.0 & 1 != 0 {
                packets.last_mut().unwrap().extend_from_slice(data);
            } else if !data.is_empty() {
                packets.push(data.to_vec());
            }
        }
    }
    packets
}

fn run(layout: PageLayout) {
    let mut options = Options::default();
    options.layout = layout;
    let rig = Arc::new(Rig::with_options(16 * 4096, options).with_service());
    // A writer that must wait helps to send, so that no writer waits in vain.
    let recorder = rig.recorder.clone();
    *rig.recorder.while_stalled.lock().unwrap() = Some(Box::new(move || recorder.send_pending()));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                rig.send_pending();
                thread::yield_now();
            }
            rig.send_pending();
        });
        let scraper = scope.spawn(|| {
            // A second reader beside the one that frees. Its packets may be freed already, but are
            // never torn.
            let mut scratch = Vec::new();
            while !done.load(Ordering::Acquire) {
                rig.service.scrape(
                    &mut scratch,
                    |i| !i.complete,
                    |info, payload| {
                        assert!(info.finished_count() > 0 && payload.len() <= 4080);
                    },
                );
                thread::yield_now();
            }
        });
        let writers: Vec<_> = (0..3)
            .map(|_| {
                let mut writer = rig.arbiter.create_writer(1, ExhaustedPolicy::StallThenDrop);
                scope.spawn(move || {
                    for i in 0..PACKETS {
                        let mut packet = writer.new_packet();
                        let mut message = packet.message();
                        message.varint(8, i);
                        let mut event = message.begin(900);
                        event.bytes(1, &vec![i as u8; (i * 7 % 300) as usize]);
                        event.begin(5).varint(1, i);
                    }
                    writer.flush();
                    assert_eq!(writer.drop_count(), 0);
                })
            })
            .collect();
        let results: Vec<_> = writers.into_iter().map(|w| w.join()).collect();
        done.store(true, Ordering::Release);
        results.into_iter().for_each(|r| r.unwrap());
        sender.join().unwrap();
        scraper.join().unwrap();
    });
    *rig.recorder.while_stalled.lock().unwrap() = None;
    let mut by_writer: HashMap<u16, Vec<Taken>> = HashMap::new();
    for taken in rig.recorder.taken.lock().unwrap().drain(..) {
        by_writer.entry(taken.info.writer_id).or_default().push(taken);
    }
    for event in rig.recorder.outgoing.lock().unwrap().iter() {
        let Outgoing::Commit(request) = event else { continue };
        for entry in &request.patches {
            let chunks = by_writer.get_mut(&entry.writer_id).unwrap();
            let payload = &mut chunks[entry.chunk_id as usize].payload;
            for patch in &entry.patches {
                let at = usize::from(patch.offset);
                payload[at..at + 4].copy_from_slice(&patch.data);
            }
        }
    }
    assert_eq!(by_writer.len(), 3);
    for chunks in by_writer.values() {
        let packets = packets(chunks);
        assert_eq!(packets.len() as u64, PACKETS);
        for (i, packet) in packets.iter().enumerate() {
            let fields: Vec<_> = Fields::new(packet).filter(|f| f.id != 87).collect();
            assert_eq!(fields.iter().map(|f| f.id).collect::<Vec<_>>(), [8, 900]);
            assert_eq!(fields[0].as_u64(), i as u64);
            let event: Vec<_> = Fields::new(fields[1].as_bytes()).collect();
            assert_eq!(event[0].as_bytes(), vec![i as u8; i * 7 % 300]);
            assert_eq!(Fields::new(event[1].as_bytes()).next().unwrap().as_u64(), i as u64);
        }
    }
    assert!((0..rig.service.pages() as usize).all(|p| rig.word(p).0 == 0), "all free again");
}

#[test]
fn nothing_is_lost_or_torn_between_threads() {
    run(PageLayout::Div1);
}

#[test]
fn nothing_is_lost_or_torn_where_writers_share_pages() {
    run(PageLayout::Div14);
}
