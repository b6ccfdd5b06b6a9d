use std::{collections::HashMap, thread};

use esatto_shm::{ChunkInfo, ExhaustedPolicy, abi::ChunkFlags};

use crate::rig::{Rig, raw_packet, sizes, test_packet};

fn scrape(rig: &Rig, writer_id: u16) -> Vec<(ChunkInfo, Vec<u8>)> {
    let mut found = Vec::new();
    rig.service.scrape(
        &mut Vec::new(),
        |info| info.writer_id == writer_id,
        |info, payload| found.push((*info, payload.to_vec())),
    );
    found
}

#[test]
fn a_chunk_being_written_gives_its_finished_packets() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    for text in ["one", "two", "three"] {
        test_packet(&mut writer, 1, text);
    }
    let before = rig.bytes(0, 4096);
    let found = scrape(&rig, 1);
    assert_eq!(found.len(), 1);
    let (info, payload) = &found[0];
    assert!(!info.complete);
    assert_eq!((info.count, info.finished_count()), (4, 3));
    assert_eq!(sizes(payload, 3), [13, 10, 12]);
    assert_eq!(payload.len(), 4080);
    assert_eq!(rig.bytes(0, 4096), before, "left untouched");
    assert_eq!(scrape(&rig, 1), found);
}

#[test]
fn a_packet_being_written_is_not_read() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "one");
    let mut packet = writer.new_packet();
    let mut message = packet.message();
    message.bytes(1, b"unfinished");
    let (info, payload) = scrape(&rig, 1).remove(0);
    assert_eq!((info.count, info.finished_count()), (2, 1));
    assert_eq!(sizes(&payload, 1), [13]);
    assert!(payload[14..].iter().all(|b| *b == 0));
}

#[test]
fn a_chunk_with_only_an_unfinished_packet_is_not_taken() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    let _packet = writer.new_packet();
    assert_eq!(rig.header(0).packets.count(), 1);
    assert!(scrape(&rig, 1).is_empty());
}

#[test]
fn a_complete_chunk_is_taken_whole_and_can_still_be_committed() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "one");
    writer.flush();
    let (info, payload) = scrape(&rig, 1).remove(0);
    assert!(info.complete);
    let taken = rig.drain().remove(0);
    assert_eq!((taken.info, taken.payload), (info, payload));
    assert!(scrape(&rig, 1).is_empty());
}

#[test]
fn a_continued_packet_is_taken_up_to_the_unfinished_part() {
    let rig = Rig::new(65536);
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "one");
    {
        let mut packet = writer.new_packet();
        packet.message().bytes(1, &[1; 5000]);
    }
    raw_packet(&mut writer, 50);
    let found = scrape(&rig, 1);
    assert_eq!(found.len(), 2);
    assert!(found[0].0.complete);
    assert_eq!(found[0].0.flags, ChunkFlags::LAST_CONTINUES);
    assert_eq!(found[1].0.flags, ChunkFlags::FIRST_CONTINUES);
    assert_eq!(sizes(&found[1].1, found[1].0.finished_count()), [941, 50]);
}

#[test]
fn unwanted_writers_are_not_taken() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "one");
    assert!(scrape(&rig, 2).is_empty());
}

#[test]
fn no_chunk_is_taken_without_those_before_it() {
    const WRITERS: usize = 2;
    // Nobody takes the chunks, so the first of each writer stays.
    let rig = Rig::new(4 << 20);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                let mut writer = rig.arbiter.create_writer(1, ExhaustedPolicy::Drop);
                scope.spawn(move || {
                    while writer.drop_count() == 0 {
                        test_packet(&mut writer, 1, &"x".repeat(300));
                    }
                })
            })
            .collect();
        let mut scrapes = 0;
        while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
            let mut ids: HashMap<u16, Vec<u32>> = HashMap::new();
            rig.service.scrape(
                &mut Vec::new(),
                |_| true,
                |info, _| ids.entry(info.writer_id).or_default().push(info.chunk_id),
            );
            for (writer, mut ids) in ids {
                ids.sort_unstable();
                assert!(ids.iter().copied().eq(0..ids.len() as u32), "writer {writer}, scrape {scrapes}: {ids:?}");
            }
            scrapes += 1;
        }
        assert!(scrapes > 0);
    });
}
