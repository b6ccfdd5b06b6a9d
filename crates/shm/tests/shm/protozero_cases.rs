//! `docs/spec/protozero.md` §16, cases 79 to 83: packets in shared memory.

use esatto_protozero::{Fields, Message};
use esatto_shm::{ChunkInfo, DeferredValue, Fragment, TraceWriter, abi::DROP_MARKER_BYTES};

use crate::{
    reading::Reader,
    rig::{Rig, first_packet, nested_packet, raw_packet, sizes, test_packet},
};

/// `previous_packet_dropped` with PRESENT and SMB_FULL.
const LOSS_SMB_FULL: [u8; 4] = [0xd0, 0x02, 0x81, 0x02];
/// `previous_packet_dropped` with PRESENT and writer abort.
const LOSS_WRITER_ABORT: [u8; 4] = [0xd0, 0x02, 0x81, 0x01];

fn only_field(bytes: &[u8], id: u32) -> Vec<u8> {
    let mut fields = Fields::new(bytes);
    let field = fields.next().unwrap();
    assert_eq!(field.id, id);
    assert!(fields.next().is_none() && !fields.is_malformed());
    field.as_bytes().to_vec()
}

fn scrape(rig: &Rig) -> Vec<(ChunkInfo, Vec<u8>)> {
    let mut found = Vec::new();
    rig.service.scrape(&mut Vec::new(), |_| true, |info, payload| found.push((*info, payload.to_vec())));
    found
}

/// Returns the sizes of the finished packets that a scrape finds in the writer's chunk.
fn scraped(rig: &Rig) -> Vec<usize> {
    scrape(rig).iter().flat_map(|(info, payload)| sizes(payload, info.finished_count())).collect()
}

#[test]
fn case_79_lengths_open_across_chunks_are_patched_and_the_packet_parses() {
    let rig = Rig::new(65536);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    fn nest(mut message: Message<'_>, depth: u8) {
        message.bytes(1, &[depth; 1000]);
        if depth < 6 {
            nest(message.begin(5), depth + 1);
        }
        message.bytes(2, &[depth; 1000]);
    }
    nest(writer.new_packet().message(), 0);
    writer.flush();
    let mut reader = Reader::default();
    reader.receive(&rig);
    // Only the innermost message is in one chunk.
    assert_eq!((reader.packets().len(), reader.patches()), (2, 5));
    let mut message = reader.packets().remove(1);
    for depth in 0..=6 {
        let mut fields = Fields::new(&message);
        let field = |field: Option<esatto_protozero::Field<'_>>| field.map(|f| (f.id, f.as_bytes().to_vec()));
        assert_eq!(field(fields.next()), Some((1, vec![depth; 1000])));
        let nested = if depth < 6 { fields.next() } else { None };
        assert_eq!(field(fields.next()), Some((2, vec![depth; 1000])));
        assert!(fields.next().is_none() && !fields.is_malformed());
        message = nested.map_or(Vec::new(), |f| f.as_bytes().to_vec());
    }
    assert_eq!(message, []);
}

#[test]
fn case_80_a_packet_that_runs_out_of_memory_is_marked_and_so_is_the_next_one() {
    let rig = Rig::new(8192);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    {
        let mut packet = writer.new_packet();
        let mut message = packet.message();
        let mut outer = message.begin(900);
        outer.bytes(1, &[7; 4090]);
        // In the second and last chunk.
        let mut inner = outer.begin(5);
        inner.bytes(1, &[8; 5000]);
        assert_eq!(rig.payload(1)[..4], DROP_MARKER_BYTES);
        let before = rig.bytes(0, 8192);
        drop(inner);
        outer.varint(2, 3);
        drop(outer);
        assert_eq!(rig.bytes(0, 8192), before, "lengths go nowhere");
    }
    assert!(writer.is_dropping());
    assert_eq!(writer.drop_count(), 1);
    let mut reader = Reader::default();
    reader.receive(&rig);
    test_packet(&mut writer, 3, "x");
    test_packet(&mut writer, 4, "y");
    writer.flush();
    reader.receive(&rig);
    let packets = reader.packets();
    assert_eq!(packets.len(), 3);
    assert_eq!(packets[1][..6], [LOSS_SMB_FULL[0], LOSS_SMB_FULL[1], LOSS_SMB_FULL[2], LOSS_SMB_FULL[3], 0x40, 3]);
    assert_eq!(packets[2][..2], [0x40, 4]);
}

#[test]
fn case_81_a_packet_without_a_guard_is_readable_after_the_explicit_end_only() {
    let rig = Rig::new(65536);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    writer.begin_packet();
    writer.message().unwrap().raw(b"\x0a\x0cby hand, ");
    assert_eq!(scraped(&rig), [3]);
    writer.message().unwrap().raw(b"twice");
    assert_eq!(scraped(&rig), [3]);
    writer.end_packet();
    assert_eq!(scraped(&rig), [3, 16]);
    writer.end_packet();
    assert!(writer.message().is_none(), "there is no packet");
    assert_eq!(scraped(&rig), [3, 16], "and nothing to end");
    writer.flush();
    assert_eq!(writer.abandoned_count(), 0);
    let mut reader = Reader::default();
    reader.receive(&rig);
    assert_eq!(reader.packets()[1], b"\x0a\x0cby hand, twice");
}

#[test]
fn case_81_a_packet_that_is_not_ended_is_dropped_and_counted_without_an_abort() {
    let next_packet = |writer: &mut TraceWriter| writer.begin_packet();
    let next_guard = |writer: &mut TraceWriter| drop(writer.new_packet());
    let flush = |writer: &mut TraceWriter| writer.flush();
    let ways: [&dyn Fn(&mut TraceWriter); 3] = [&next_packet, &next_guard, &flush];
    // In one chunk, and over several.
    for len in [10, 9000] {
        for instead in ways {
            let rig = Rig::new(65536);
            let mut writer = rig.writer();
            first_packet(&mut writer);
            writer.begin_packet();
            writer.message().unwrap().begin(900).bytes(1, &vec![7; len]);
            instead(&mut writer);
            assert_eq!(writer.abandoned_count(), 1);
            writer.end_packet();
            test_packet(&mut writer, 3, "x");
            writer.flush();
            let mut reader = Reader::default();
            reader.receive(&rig);
            let packets = reader.packets();
            assert_eq!(packets[1][..4], LOSS_WRITER_ABORT);
            assert!(packets.iter().all(|p| p.len() < 20), "nothing of it is left");
        }
    }
}

#[test]
fn case_81_dropping_the_writer_takes_an_unfinished_packet_back() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    writer.begin_packet();
    writer.message().unwrap().varint(8, 1);
    drop(writer);
    assert_eq!(rig.drain()[0].sizes(), [3, 0]);
}

#[test]
fn case_82_a_reservation_in_a_returned_chunk_is_filled_by_a_patch() {
    let rig = Rig::new(65536);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    writer.begin_packet();
    writer.message().unwrap().raw(b"\x0a");
    let late = writer.reserve_deferred().unwrap();
    writer.message().unwrap().raw(&[b'x'; 5000]);
    let mut reader = Reader::default();
    reader.receive(&rig);
    assert_eq!(reader.packets().len(), 0, "the chunk waits");
    assert_eq!(rig.header(0).packets.0, 0, "and was returned");
    writer.fill_deferred(late, DeferredValue::length(5000).unwrap());
    reader.receive(&rig);
    assert_eq!(reader.patches(), 0, "not before a boundary");
    writer.end_packet();
    reader.receive(&rig);
    assert_eq!(reader.patches(), 1);
    writer.flush();
    reader.receive(&rig);
    assert_eq!(only_field(&reader.packets()[1], 1), [b'x'; 5000]);
}

#[test]
fn case_82_bytes_that_were_written_already_become_a_reservation() {
    let rig = Rig::new(65536);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    writer.begin_packet();
    writer.message().unwrap().raw(b"\x0a????\x12\x04????");
    for outside in [0, 3, 12, usize::MAX] {
        assert_eq!(writer.defer_bytes(outside), None, "{outside}");
    }
    // The innermost one first, as in upstream's C layer.
    let inner = writer.defer_bytes(4).unwrap();
    let outer = writer.defer_bytes(10).unwrap();
    writer.message().unwrap().raw(&[b'x'; 5000]);
    assert_eq!(writer.defer_bytes(5000), None, "in another chunk");
    writer.fill_deferred(inner, DeferredValue::new(*b"!!!!").unwrap());
    writer.fill_deferred(outer, DeferredValue::length(5006).unwrap());
    writer.end_packet();
    writer.flush();
    let mut reader = Reader::default();
    reader.receive(&rig);
    assert_eq!(reader.patches(), 2);
    let field = only_field(&reader.packets()[1], 1);
    assert_eq!(field[..8], *b"\x12\x04!!!!xx");
}

#[test]
fn case_82_without_memory_there_is_nothing_to_reserve() {
    let rig = Rig::new(8192);
    let mut writer = rig.writer();
    assert_eq!(writer.reserve_deferred(), None, "no packet");
    assert_eq!(writer.defer_bytes(4), None);
    first_packet(&mut writer);
    let mut packet = writer.new_packet();
    let late = packet.reserve_deferred().unwrap();
    packet.message().bytes(1, &[7; 9000]);
    assert_eq!((packet.reserve_deferred(), packet.defer_bytes(4)), (None, None), "the packet is lost");
    let before = rig.bytes(0, 8192);
    packet.fill_deferred(late, DeferredValue::EMPTY);
    drop(packet);
    assert_eq!(rig.bytes(0, 8192), before);
    let mut packet = writer.new_packet();
    assert_eq!(packet.reserve_deferred(), None, "and the next one from its begin");
    drop(packet);
    let mut reader = Reader::default();
    reader.receive(&rig);
    assert_eq!(reader.packets().len(), 1);
    let mut packet = writer.new_packet();
    assert!(packet.reserve_deferred().is_some(), "there is memory again");
    drop(packet);
    assert_eq!(TraceWriter::null().new_packet().reserve_deferred(), None);
}

#[test]
fn case_83_a_packet_ended_by_its_guard_or_explicitly_is_seen_by_a_scrape() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    raw_packet(&mut writer, 50);
    assert_eq!(scraped(&rig), [3, 50]);
    writer.begin_packet();
    writer.message().unwrap().bytes(1, &[7; 300]);
    assert_eq!(scraped(&rig), [3, 50]);
    writer.end_packet();
    assert_eq!(scraped(&rig), [3, 50, 303]);
    // Also the last part of a packet of several chunks.
    nested_packet(&mut writer, 1, 50);
    let found = scrape(&rig);
    let (info, payload) = found.last().unwrap();
    assert!(!info.complete);
    let finished: Vec<_> = esatto_shm::Fragments::new(payload, info.finished_count()).collect();
    assert!(matches!(finished[..], [Fragment::Data(data)] if data.len() > 1000));
}
