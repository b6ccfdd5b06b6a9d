//! The short way leaves the same bytes as the ordinary one.

use esatto_shm::TraceWriter;

use crate::rig::{Rig, Taken, first_packet, raw_packet};

/// A packet of `len` bytes by the short way, if it can be had.
fn small_packet(writer: &mut TraceWriter, len: usize) -> bool {
    let Some(mut packet) = writer.small_packet(len.min(100)) else { return false };
    packet.word(0x0a, 1);
    let field = packet.open();
    packet.bytes(&vec![0xab; len - 2]);
    packet.close(field);
    packet.finish()
}

fn chunks(write: impl Fn(&mut TraceWriter, usize)) -> Vec<Taken> {
    let rig = Rig::new(1 << 20);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    let mut random = 1_u64;
    for _ in 0..5000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        write(&mut writer, 2 + (random >> 33) as usize % 127);
    }
    writer.flush();
    rig.drain()
}

#[test]
fn both_ways_leave_the_same_bytes() {
    let short = std::cell::Cell::new(0);
    let ordinary = chunks(raw_packet);
    let mixed = chunks(|writer, len| match small_packet(writer, len) {
        true => short.set(short.get() + 1),
        false => raw_packet(writer, len),
    });
    assert!(short.get() > 4500, "{} of 5000 by the short way", short.get());
    assert_eq!(ordinary.len(), mixed.len());
    for (a, b) in ordinary.iter().zip(&mixed) {
        assert_eq!((a.info.count, a.info.flags, a.sizes()), (b.info.count, b.info.flags, b.sizes()));
        assert_eq!(a.fragments(), b.fragments());
    }
}

#[test]
fn the_longest_has_126_bytes() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    assert!(small_packet(&mut writer, 126));
    assert!(!small_packet(&mut writer, 127));
    assert!(small_packet(&mut writer, 2));
    writer.flush();
    assert_eq!(rig.drain().remove(0).sizes(), [3, 126, 2, 0]);
}

#[test]
fn what_the_writer_owes_goes_first() {
    let rig = Rig::new(4096);
    let mut writer = rig.writer();
    assert!(writer.small_packet(2).is_none(), "the sequence has not begun");
    first_packet(&mut writer);
    assert!(writer.small_packet(2).is_some());
    // Without a chunk, and then with the mark of the loss due.
    while !writer.is_dropping() {
        raw_packet(&mut writer, 500);
    }
    assert!(writer.small_packet(2).is_none(), "there is no chunk");
    rig.drain();
    raw_packet(&mut writer, 2);
    assert!(!writer.is_dropping());
    assert!(writer.small_packet(2).is_some(), "the ordinary packet carried the mark");
}

#[test]
fn one_that_is_not_finished_was_never_there() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    for _ in 0..3 {
        let mut packet = writer.small_packet(2).unwrap();
        packet.word(0x0108, 2);
    }
    assert!(small_packet(&mut writer, 5));
    writer.flush();
    assert_eq!(rig.drain().remove(0).sizes(), [3, 5, 0]);
}

#[test]
fn a_scraper_sees_it_as_soon_as_it_is_finished() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    let before = rig.header(0).packets.count();
    let mut packet = writer.small_packet(2).unwrap();
    packet.word(0x0108, 2);
    assert_eq!(rig.header(0).packets.count(), before);
    assert!(packet.finish());
    assert_eq!(rig.header(0).packets.count(), before + 1);
}

#[test]
fn a_chunk_that_is_almost_full_can_be_left() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    assert!(!writer.begin_next_chunk(usize::MAX), "there is none to leave");
    first_packet(&mut writer);
    assert!(!writer.begin_next_chunk(100), "it has room");
    raw_packet(&mut writer, 4000);
    assert!(!small_packet(&mut writer, 80));
    assert!(writer.begin_next_chunk(100));
    assert!(small_packet(&mut writer, 80));
    writer.flush();
    let taken = rig.drain();
    let sizes: Vec<_> = taken.iter().map(Taken::sizes).collect();
    assert_eq!(sizes, [vec![3, 4000, 0], vec![80, 0]]);
    assert!(taken.iter().all(|chunk| chunk.info.flags == esatto_shm::abi::ChunkFlags::NONE), "nothing continues");
}

#[test]
fn leaving_the_last_chunk_is_a_loss_like_any_other() {
    let rig = Rig::new(4096);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    raw_packet(&mut writer, 4000);
    assert!(!writer.begin_next_chunk(100));
    assert!(writer.is_dropping());
    assert_eq!(writer.drop_count(), 1);
}
