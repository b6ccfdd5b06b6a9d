//! Deferred values, with all events that can happen in between.

use esatto_protozero::{Fields, wire};
use esatto_shm::{
    Deferred, DeferredValue, ExhaustedPolicy, Options, TraceWriter,
    abi::{ChunkFlags, DROP_MARKER_BYTES},
};

use crate::{
    reading::Reader,
    rig::{Rig, first_packet, raw_packet, sizes, test_packet},
};

fn value(len: usize) -> DeferredValue {
    DeferredValue::length(len).unwrap()
}

/// Writes a packet with one field of `len` bytes, whose length comes later.
fn packet(writer: &mut TraceWriter, len: usize) -> Deferred {
    let mut packet = writer.new_packet();
    packet.message().raw(b"\x0a");
    let late = packet.reserve_deferred().unwrap();
    packet.message().raw(&vec![b'x'; len]);
    late
}

/// Returns the field lengths of all readable packets of such writers.
fn lengths(reader: &Reader) -> Vec<usize> {
    let field = |packet: &Vec<u8>| {
        let mut fields = Fields::new(packet);
        let len = fields.by_ref().find(|f| f.id == 1).map(|f| f.as_bytes().len());
        assert!(fields.next().is_none() && !fields.is_malformed(), "{packet:?}");
        len
    };
    reader.packets().iter().filter_map(field).collect()
}

fn finish(rig: &Rig, mut writer: TraceWriter) -> Reader {
    writer.flush();
    let mut reader = Reader::default();
    reader.receive(rig);
    reader
}

#[test]
fn a_value_is_not_told_while_its_first_byte_is_zero() {
    assert_eq!(DeferredValue::new([0, 1, 2, 3]), None);
    assert_eq!(DeferredValue::new([1, 0, 0, 0]).unwrap().bytes(), [1, 0, 0, 0]);
    assert_eq!(value(0), DeferredValue::EMPTY);
    assert_eq!(value(300).bytes(), wire::redundant_varint4(300));
    assert!(DeferredValue::length((1 << 28) - 1).is_some());
    assert_eq!(DeferredValue::length(1 << 28), None);
}

#[test]
fn a_value_is_written_in_place_while_its_writer_has_the_chunk() {
    for after in [false, true] {
        let rig = Rig::new(16384);
        let mut writer = rig.writer();
        first_packet(&mut writer);
        let mut packet = writer.new_packet();
        packet.message().raw(b"\x0a");
        let late = packet.reserve_deferred().unwrap();
        packet.message().raw(b"xyz");
        // 4 bytes of the first packet, 4 of the size, the tag.
        assert_eq!(rig.payload(0)[9..16], *b"\0\0\0\0xyz");
        if after {
            drop(packet);
            raw_packet(&mut writer, 20);
            writer.fill_deferred(late, value(3));
        } else {
            packet.fill_deferred(late, value(3));
            drop(packet);
        }
        assert_eq!(rig.payload(0)[4..16], *b"\x88\x80\x80\x00\x0a\x83\x80\x80\x00xyz", "not compacted");
        writer.flush();
        let mut reader = Reader::default();
        let flags = rig.header(0).packets.flags();
        reader.receive(&rig);
        assert_eq!((flags, reader.patches()), (ChunkFlags::NONE, 0));
        assert_eq!(lengths(&reader)[0], 3);
        test_packet(&mut writer, 1, "x");
        assert_eq!(sizes(&rig.payload(0), 1), [8], "the next one is compacted again");
    }
}

#[test]
fn a_value_for_a_flushed_chunk_is_sent_at_once() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    let late = packet(&mut writer, 3);
    writer.flush();
    assert_eq!(rig.header(0).packets.flags(), ChunkFlags::NEEDS_PATCHING);
    let mut reader = Reader::default();
    reader.receive(&rig);
    assert_eq!(lengths(&reader), []);
    writer.fill_deferred(late, value(3));
    reader.receive(&rig);
    assert_eq!(lengths(&reader), [3]);
}

#[test]
fn values_wait_for_earlier_values() {
    let rig = Rig::new(65536);
    let mut writer = rig.writer();
    let first = packet(&mut writer, 3000);
    let second = packet(&mut writer, 3000);
    // The length of a later message also waits.
    let mut third = writer.new_packet();
    third.message().begin(1).bytes(2, &[7; 5000]);
    drop(third);
    writer.flush();
    let mut reader = Reader::default();
    writer.fill_deferred(second, value(3000));
    reader.receive(&rig);
    assert_eq!((reader.patches(), lengths(&reader)), (0, vec![]));
    writer.fill_deferred(first, value(3000));
    reader.receive(&rig);
    assert_eq!((reader.patches(), lengths(&reader)), (3, vec![3000, 3000, 5003]));
}

#[test]
fn a_reservation_moves_to_the_next_chunk_whole() {
    for rest in 0..12 {
        let rig = Rig::new(16384);
        let mut writer = rig.writer();
        first_packet(&mut writer);
        let mut packet = writer.new_packet();
        // 4 of the first packet, 4 of the size.
        let filler = 4080 - 8 - 3 - 1 - rest;
        packet.message().bytes(2, &vec![7; filler]);
        packet.message().raw(b"\x0a");
        let late = packet.reserve_deferred().unwrap();
        packet.message().raw(b"xyz");
        packet.fill_deferred(late, value(3));
        drop(packet);
        let reader = finish(&rig, writer);
        assert_eq!(reader.patches(), usize::from((4..7).contains(&rest)), "{rest}");
        let mut fields = Fields::new(&reader.packets()[1]).map(|f| f.as_bytes().len()).collect::<Vec<_>>();
        fields.sort_unstable();
        assert_eq!(fields, [3, filler]);
    }
}

#[test]
fn a_scrape_sees_no_packet_from_the_first_missing_value_on() {
    let rig = Rig::new(16384);
    let scraped = || {
        let mut found = Vec::new();
        rig.service.scrape(
            &mut Vec::new(),
            |_| true,
            |info, payload| found.extend(sizes(payload, info.finished_count())),
        );
        found
    };
    let mut writer = rig.writer();
    first_packet(&mut writer);
    let first = packet(&mut writer, 3);
    let second = packet(&mut writer, 5);
    raw_packet(&mut writer, 20);
    assert_eq!(scraped(), [3]);
    writer.fill_deferred(first, value(3));
    assert_eq!(scraped(), [3], "as long as one is missing");
    writer.fill_deferred(second, value(5));
    assert_eq!(scraped(), [3, 8, 10, 20]);
    let third = packet(&mut writer, 7);
    raw_packet(&mut writer, 20);
    writer.flush();
    assert_eq!(rig.header(0).packets.count(), 7, "a finished chunk says what is in it");
    writer.fill_deferred(third, value(7));
    assert_eq!(lengths(&finish(&rig, writer)), [3, 5, 18, 7, 18]);
}

#[test]
fn a_packet_that_is_taken_back_loses_only_its_own_reservations() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    let kept = packet(&mut writer, 3);
    let mut void = writer.new_packet();
    let lost = void.reserve_deferred().unwrap();
    core::mem::forget(void.message());
    assert_eq!(void.reserve_deferred(), None);
    drop(void);
    assert_eq!(writer.abandoned_count(), 1);
    // Another packet has replaced the void one.
    raw_packet(&mut writer, 100);
    writer.fill_deferred(lost, DeferredValue::new([0xff; 4]).unwrap());
    writer.fill_deferred(kept, value(3));
    assert_eq!(lengths(&finish(&rig, writer)), [3, 98]);
}

#[test]
fn an_abandoned_packet_of_several_chunks_leaves_nothing_to_wait_for() {
    let rig = Rig::new(65536);
    let mut writer = rig.writer();
    let kept = packet(&mut writer, 3);
    let mut void = writer.new_packet();
    let lost = [void.reserve_deferred().unwrap(), void.reserve_deferred().unwrap()];
    let mut message = void.message();
    let mut nested = message.begin(1);
    nested.bytes(1, &[7; 5000]);
    core::mem::forget(nested);
    drop(message);
    drop(void);
    assert_eq!(writer.abandoned_count(), 1);
    let mut reader = Reader::default();
    reader.receive(&rig);
    assert_eq!(reader.patches(), 0, "the first one is still wanted");
    writer.fill_deferred(kept, value(3));
    reader.receive(&rig);
    assert_eq!(reader.patches(), 4);
    for late in lost {
        writer.fill_deferred(late, DeferredValue::new([0xff; 4]).unwrap());
    }
    raw_packet(&mut writer, 100);
    writer.flush();
    reader.receive(&rig);
    assert_eq!((reader.patches(), lengths(&reader)), (4, vec![3, 98]));
}

#[test]
fn running_out_of_memory_spares_the_reservations_of_earlier_packets() {
    let rig = Rig::new(8192);
    let mut writer = rig.writer();
    let kept = packet(&mut writer, 3);
    let mut lost = writer.new_packet();
    let early = lost.reserve_deferred().unwrap();
    lost.message().bytes(1, &[7; 4080]);
    let late = lost.reserve_deferred().unwrap();
    lost.message().bytes(1, &[7; 4080]);
    assert_eq!(rig.payload(1)[..4], DROP_MARKER_BYTES);
    lost.fill_deferred(late, DeferredValue::EMPTY);
    drop(lost);
    let mut reader = Reader::default();
    reader.receive(&rig);
    assert_eq!(reader.patches(), 0);
    writer.fill_deferred(kept, value(3));
    writer.fill_deferred(early, DeferredValue::EMPTY);
    reader.receive(&rig);
    // The chunk of the marker has none: it was dropped with its content.
    assert_eq!((reader.patches(), lengths(&reader)), (2, vec![3]));
}

#[test]
fn a_value_can_be_told_when_no_next_chunk_is_free() {
    let rig = Rig::new(4096);
    let mut writer = rig.writer();
    let kept = packet(&mut writer, 4060);
    test_packet(&mut writer, 1, "lost");
    assert!(writer.is_dropping());
    writer.fill_deferred(kept, value(4060));
    let mut reader = Reader::default();
    reader.receive(&rig);
    assert_eq!((reader.patches(), lengths(&reader)), (1, vec![4060]));
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing_to_wait_for() {
    for flush in [false, true] {
        let rig = Rig::new(16384);
        let mut writer = rig.writer();
        let late = packet(&mut writer, 3);
        if flush {
            writer.flush();
        }
        drop(writer);
        let mut reader = Reader::default();
        reader.receive(&rig);
        assert_eq!(reader.patches(), usize::from(flush));
        assert!(reader.packets()[0].ends_with(b"\x0a\x80\x80\x80\x00xxx"), "as if it were empty");
        // Another writer has its own numbers.
        let mut other = rig.writer();
        let open = packet(&mut other, 3);
        other.fill_deferred(late, DeferredValue::new([0xff; 4]).unwrap());
        other.fill_deferred(open, value(3));
        other.flush();
        let taken = rig.drain().remove(0);
        assert_eq!(taken.info.flags, ChunkFlags::NONE);
        assert!(!taken.payload.contains(&0xff));
    }
}

#[test]
fn a_value_after_the_end_of_the_connection_is_ignored() {
    for flush in [false, true] {
        let rig = Rig::new(16384);
        let mut writer = rig.writer();
        let late = packet(&mut writer, 3);
        let other = packet(&mut writer, 3);
        if flush {
            writer.flush();
        }
        rig.arbiter.shutdown();
        writer.fill_deferred(late, value(3));
        test_packet(&mut writer, 1, "x");
        let before = rig.bytes(0, 16384);
        writer.fill_deferred(other, value(3));
        assert_eq!(rig.bytes(0, 16384), before);
        assert_eq!(writer.new_packet().reserve_deferred(), None);
        drop(writer);
        assert_eq!(rig.commits().len(), 0);
    }
}

#[test]
fn too_many_open_reservations_are_given_up_with_the_packet_that_asks_for_more() {
    let rig = Rig::new(65536);
    let mut writer = rig.writer();
    let mut lates = Vec::new();
    for _ in 0..1024 {
        lates.push(packet(&mut writer, 0));
    }
    let mut void = writer.new_packet();
    assert_eq!(void.reserve_deferred(), None);
    drop(void);
    assert_eq!(writer.abandoned_count(), 1);
    // The writer works again, and nothing waits.
    let late = packet(&mut writer, 3);
    writer.fill_deferred(late, value(3));
    for late in lates {
        writer.fill_deferred(late, DeferredValue::new([0xff; 4]).unwrap());
    }
    let mut want = vec![0; 1024];
    want.push(3);
    assert_eq!(lengths(&finish(&rig, writer)), want);
}

#[test]
fn patches_that_wait_for_a_value_are_bounded() {
    let rig = Rig::new(8192).with_service();
    rig.recorder.on_connection_thread.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut writer = rig.arbiter.create_writer(1, ExhaustedPolicy::StallThenDrop);
    let late = packet(&mut writer, 3);
    writer.flush();
    let mut patches = 0;
    let mut packets = 0;
    while writer.abandoned_count() == 0 {
        // One length that crosses into the next chunk.
        writer.new_packet().message().begin(1).bytes(1, &[7; 4080]);
        packets += 1;
        patches += rig.commits().iter().flat_map(|c| &c.patches).map(|p| p.patches.len()).sum::<usize>();
        assert!(packets < 20_000);
    }
    writer.flush();
    patches += rig.commits().iter().flat_map(|c| &c.patches).map(|p| p.patches.len()).sum::<usize>();
    assert!(packets > 16_000 && patches >= packets, "{packets} packets, {patches} patches");
    assert_eq!(writer.drop_count(), 0);
    writer.fill_deferred(late, value(3));
    assert_eq!(rig.commits().len(), 0);
}

#[test]
fn a_chunk_with_missing_values_is_not_kept_back_for_direct_patching() {
    // It would be in state BeingWritten, where a scrape takes all packets except the last one for
    // whole.
    let mut options = Options::default();
    options.direct_patching = true;
    options.batch_delay = core::time::Duration::from_secs(10);
    let rig = Rig::with_options(16384, options);
    let mut writer = rig.writer();
    let late = packet(&mut writer, 3);
    raw_packet(&mut writer, 20);
    writer.flush();
    assert_eq!(rig.word(0).0, 0x1000_0003);
    writer.fill_deferred(late, value(3));
    let mut reader = Reader::default();
    reader.receive(&rig);
    assert_eq!((reader.patches(), lengths(&reader)), (1, vec![3, 18]));
}
