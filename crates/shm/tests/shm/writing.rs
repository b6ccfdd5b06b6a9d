use esatto_shm::{
    ExhaustedPolicy, Fragment, Options,
    abi::{ChunkFlags, PageLayout},
};

use crate::rig::{Rig, Taken, first_packet, nested_packet, raw_packet, sizes, test_packet};

/// Payload size of a chunk of a 4 KiB page.
const PAYLOAD: usize = 4080;

/// Fills the chunk with whole packets until `left` bytes are free.
fn fill_to(writer: &mut esatto_shm::TraceWriter, mut used: usize, left: usize) {
    let target = PAYLOAD - left;
    while target - used > 600 {
        raw_packet(writer, 496);
        used += 500;
    }
    // Two packets with one-byte and four-byte sizes fill the rest.
    let rest = target - used;
    if rest > 300 {
        raw_packet(writer, 196);
        raw_packet(writer, rest - 200 - 4);
    } else if rest > 134 {
        raw_packet(writer, rest - 4);
    } else {
        raw_packet(writer, rest - 1);
    }
}

#[test]
fn sizes_take_one_byte_below_127() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    raw_packet(&mut writer, 126);
    raw_packet(&mut writer, 127);
    let payload = rig.payload(0);
    assert_eq!(payload[..4], [3, 0xb8, 0x05, 0x01]);
    assert_eq!(payload[4], 126);
    assert_eq!(payload[4 + 127..][..4], [0xff, 0x80, 0x80, 0x00]);
    assert_eq!(sizes(&payload, 3), [3, 126, 127]);
}

#[test]
fn a_complete_chunk_ends_with_an_empty_fragment() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    for text in ["one", "two", "three"] {
        test_packet(&mut writer, 1, text);
    }
    writer.flush();
    let taken = rig.drain().remove(0);
    assert_eq!(taken.info.count, 4);
    assert_eq!(taken.sizes(), [13, 10, 12, 0]);
    assert_eq!(taken.info.flags, ChunkFlags::NONE);
}

#[test]
fn the_count_is_increased_in_advance() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    let packet = writer.new_packet();
    assert_eq!(rig.header(0).packets.0, 1);
    drop(packet);
    assert_eq!(rig.header(0).packets.0, 2, "the next packet is counted already");
    let packet = writer.new_packet();
    assert_eq!(rig.header(0).packets.0, 2);
    drop(packet);
    assert_eq!(rig.header(0).packets.0, 3);
}

#[test]
fn a_chunk_that_is_exactly_full_is_completed_at_once() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    fill_to(&mut writer, 4, 0);
    assert_eq!(rig.word(0).0, 0x1000_0003);
    let taken = rig.drain().remove(0);
    let sizes = taken.sizes();
    assert!(!sizes.contains(&0), "{sizes:?}");
    assert_eq!(taken.info.count as usize, sizes.len());
}

#[test]
fn a_packet_needs_12_free_bytes_to_begin() {
    for (left, same_chunk) in [(12, true), (11, false)] {
        let rig = Rig::new(16384);
        let mut writer = rig.writer();
        first_packet(&mut writer);
        fill_to(&mut writer, 4, left);
        assert_eq!(rig.word(0).0, 0x1000_0001);
        let packet = writer.new_packet();
        assert_eq!(rig.word(0).0 == 0x1000_0001, same_chunk, "{left}");
        drop(packet);
    }
}

#[test]
fn a_chunk_takes_1022_packets() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    for _ in 0..1022 {
        writer.new_packet();
    }
    assert_eq!(rig.header(0).packets.0, 0x3ff);
    assert_eq!(rig.word(0).0, 0x1000_0001);
    writer.new_packet();
    let taken = rig.drain().remove(0);
    assert_eq!(taken.info.count, 1023);
    assert_eq!(taken.sizes().len(), 1023);
    assert_eq!(rig.header(1).packets.count(), 2);
}

#[test]
fn a_packet_over_three_chunks_is_flagged_and_counted() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "first");
    nested_packet(&mut writer, 2, 90);
    test_packet(&mut writer, 3, "last");
    writer.flush();
    let taken = rig.drain();
    let headers: Vec<_> = taken.iter().map(|t| (t.info.flags.0, t.info.count)).collect();
    assert_eq!(headers, [(2 | 4, 2), (3, 1), (1, 3)]);
    assert_eq!(taken[0].sizes(), [15, 4060]);
    assert_eq!(taken[1].sizes(), [4076]);
    assert_eq!(taken[2].sizes(), [1057, 11, 0]);
    assert_eq!(taken.iter().map(|t| t.info.chunk_id).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn a_length_field_moves_to_the_next_chunk_whole() {
    // 4 bytes for the size, 3 for the timestamp, 2 for the tag: 3 or 4 bytes are left for the
    // length.
    for (left, unused) in [(12, 3), (13, 0)] {
        let rig = Rig::new(16384);
        let mut writer = rig.writer();
        first_packet(&mut writer);
        fill_to(&mut writer, 4, left);
        {
            let mut packet = writer.new_packet();
            let mut message = packet.message();
            message.raw(&[0x40, 0x96, 0x07]);
            message.begin(900).string(1, "");
        }
        writer.flush();
        let taken = rig.drain();
        if unused > 0 {
            let tail = *taken[0].sizes().last().unwrap();
            assert_eq!(tail, left - 4 - unused);
            assert_eq!(taken[0].info.flags, ChunkFlags::LAST_CONTINUES, "nothing to patch");
            assert_eq!(taken[1].fragments()[0], Fragment::Data(&[2, 0x0a, 0]));
            assert_eq!(taken[1].payload[..4], [0x83, 0x80, 0x80, 0x00], "never one byte");
        } else {
            assert_eq!(taken[0].info.flags.0, 2 | 4);
        }
    }
}

#[test]
fn the_first_packet_is_marked() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "one");
    test_packet(&mut writer, 2, "two");
    assert_eq!(rig.payload(0)[..6], [13, 0xb8, 0x05, 0x01, 0x40, 0x01]);
    assert_eq!(rig.payload(0)[14..17], [10, 0x40, 0x02]);
    let mut other = rig.writer();
    assert_eq!((writer.writer_id(), other.writer_id()), (1, 2));
    test_packet(&mut other, 1, "one");
    assert_eq!(rig.payload(1)[..4], [13, 0xb8, 0x05, 0x01]);
}

#[test]
fn empty_packets_are_legal() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    for _ in 0..3 {
        writer.new_packet();
    }
    writer.flush();
    assert_eq!(rig.drain()[0].sizes(), [3, 0, 0, 0]);
}

#[test]
fn a_packet_can_be_continued_by_another_message() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    {
        let mut packet = writer.new_packet();
        packet.message().varint(8, 5);
        packet.message().begin(900).string(1, "x");
    }
    assert_eq!(writer.abandoned_count(), 0);
    writer.flush();
    let taken = rig.drain().remove(0);
    let want: &[u8] = &[0xb8, 5, 1, 0x40, 5, 0xa2, 0x38, 3, 0x0a, 1, b'x'];
    assert_eq!(taken.fragments()[0], Fragment::Data(want));
}

#[test]
fn writers_do_not_share_chunks() {
    for layout in PageLayout::ALL {
        let rig = Rig::with_options(65536, {
            let mut options = Options::default();
            options.layout = layout;
            options
        });
        let mut writers: Vec<_> = (0..8).map(|_| rig.writer()).collect();
        for round in 0..4 {
            for (i, writer) in writers.iter_mut().enumerate() {
                test_packet(writer, round, &format!("{i}"));
            }
        }
        drop(writers);
        let mut taken = rig.drain();
        taken.sort_by_key(|t: &Taken| t.info.writer_id);
        assert_eq!(taken.len(), 8);
        for (i, t) in taken.iter().enumerate() {
            let fragments = t.fragments();
            assert_eq!(fragments.len(), 5);
            let Fragment::Data(data) = fragments[2] else { panic!() };
            assert_eq!(data.last(), Some(&(b'0' + i as u8)), "{layout:?}");
        }
        assert!((0..rig.service.pages() as usize).all(|p| rig.word(p).0 == 0), "all free again");
    }
}

#[test]
fn the_32768th_writer_is_a_null_writer() {
    let rig = Rig::new(16384);
    let writers: Vec<_> = (0..32767).map(|_| rig.writer()).collect();
    assert_eq!(writers.last().unwrap().writer_id(), 32767);
    let mut null = rig.writer();
    assert!(null.is_null());
    test_packet(&mut null, 1, "lost");
    null.flush();
    assert!((0..4).all(|p| rig.word(p).0 == 0));
}

#[test]
fn a_freed_writer_id_is_not_reused_soon() {
    let rig = Rig::new(16384);
    let mut writers: Vec<_> = (0..3).map(|_| rig.writer()).collect();
    writers.remove(1);
    rig.send_pending();
    assert_eq!(rig.writer().writer_id(), 4);
}

#[test]
fn after_shutdown_writers_drop_and_memory_stays() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    {
        let mut packet = writer.new_packet();
        packet.message().varint(8, 1);
        rig.arbiter.shutdown();
        packet.message().bytes(1, &[1; 10_000]);
    }
    assert!(writer.is_null());
    nested_packet(&mut writer, 2, 90);
    writer.flush();
    assert!(rig.arbiter.create_writer(1, ExhaustedPolicy::StallThenDrop).is_null());
    assert!(rig.commits().is_empty());
    let Rig { arbiter, region, service, recorder } = rig;
    drop((arbiter, region, service, recorder));
    test_packet(&mut writer, 3, "still mapped");
}

#[test]
fn a_null_writer_drops_everything() {
    let mut writer = esatto_shm::TraceWriter::null();
    for i in 0..1000 {
        nested_packet(&mut writer, i, (i % 50) as usize);
    }
    writer.flush_with(|| panic!("never runs"));
    assert!(writer.is_null());
    assert_eq!((writer.writer_id(), writer.drop_count(), writer.abandoned_count()), (0, 0, 0));
}
