//! Messages inside of track events, descriptors in a trace and kernel events of hostile authors end
//! in tables, and cost little.

use esatto_trace::Engine;
use esatto_trace::tables::Table;

use crate::common::Maker;

fn read(maker: &Maker) -> Engine {
    Engine::read(&maker.0[..])
}

/// Returns an encoded field with bytes.
fn field(id: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(id << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// Returns an encoded field with a number.
fn number(id: u64, v: u64) -> Vec<u8> {
    [varint(id << 3), varint(v)].concat()
}

fn varint(mut v: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while v >= 0x80 {
        bytes.push((v & 0x7f) as u8 | 0x80);
        v >>= 7;
    }
    bytes.push(v as u8);
    bytes
}

/// Adds a packet with these bytes in a field.
fn packet(maker: Maker, id: u32, bytes: &[u8]) -> Maker {
    maker.packet(|packet| {
        packet.varint(10, 1);
        packet.bytes(id, bytes);
    })
}

/// An instant with further fields.
fn event(maker: Maker, ts: u64, fields: &[u8]) -> Maker {
    const TRACK_EVENT: u32 = 11;
    let event = [number(9, 3), number(11, 1), field(23, b"event"), fields.to_vec()].concat();
    maker.packet(|packet| {
        packet.varint(8, ts);
        packet.varint(10, 1);
        packet.bytes(TRACK_EVENT, &event);
    })
}

const LEVELS: usize = 3000;
const DEBUG_ANNOTATIONS: u64 = 4;

#[test]
fn messages_in_annotations_in_messages_without_end() {
    // TrackEvent.debug_annotations has a value that is a TrackEvent, and so on.
    let mut inner = field(DEBUG_ANNOTATIONS, &[field(10, b"last"), number(4, 7)].concat());
    for _ in 0..LEVELS {
        let annotation = [field(10, b"n"), field(16, b".perfetto.protos.TrackEvent"), field(15, &inner)].concat();
        inner = field(DEBUG_ANNOTATIONS, &annotation);
    }
    let engine = read(&event(Maker::default(), 5, &inner));
    assert_eq!(engine.tables.slice.rows(), 1);
    assert!(engine.tables.args.rows() < 100, "{}", engine.tables.args.rows());
}

#[test]
fn messages_in_messages_without_end() {
    // A message of a type that contains itself, as the trace describes it.
    let own = [field(1, b"again"), number(3, 1), number(4, 1), number(5, 11), field(6, b".Own")].concat();
    let file = field(4, &[field(1, b"Own"), field(2, &own)].concat());
    let extension =
        [field(1, b"own"), field(2, b".perfetto.protos.TrackEvent"), number(3, 9000), number(5, 11), field(6, b".Own")];
    let file = [file, field(7, &extension.concat())].concat();
    const EXTENSION_DESCRIPTOR: u32 = 72;
    let maker = packet(Maker::default(), EXTENSION_DESCRIPTOR, &field(1, &field(1, &file)));
    let mut inner = Vec::new();
    for _ in 0..LEVELS {
        inner = field(1, &inner);
    }
    let engine = read(&event(maker, 5, &field(9000, &inner)));
    assert_eq!(engine.tables.slice.rows(), 1);
    assert!(engine.tables.args.rows() <= 40, "{}", engine.tables.args.rows());
}

#[test]
fn types_in_types_without_end() {
    let mut message = field(1, b"Innermost");
    for _ in 0..LEVELS {
        message = [field(1, b"Outer"), field(3, &message)].concat();
    }
    const EXTENSION_DESCRIPTOR: u32 = 72;
    let file = field(4, &message);
    let maker = packet(Maker::default(), EXTENSION_DESCRIPTOR, &field(1, &field(1, &file)));
    let engine = read(&maker.instant(1, 0, "kept"));
    assert_eq!(engine.tables.slice.rows(), 1);
}

#[test]
fn arrows_that_wait_for_slices_that_never_begin() {
    const FLOW_END: u64 = 102;
    let mut maker = Maker::default().thread(1, 5, 6, 0);
    for ts in 0..2000 {
        let legacy = [number(2, FLOW_END), number(6, ts)].concat();
        let event = [number(11, 1), field(23, b"arrow"), field(6, &legacy)].concat();
        maker = maker.packet(|packet| {
            packet.varint(8, ts);
            packet.varint(10, 1);
            packet.bytes(11, &event);
        });
    }
    let engine = read(&maker);
    assert_eq!((engine.tables.slice.rows(), engine.tables.flow.rows()), (0, 0));
}

#[test]
fn very_many_lanes_of_one_track() {
    const MEMBERS: u64 = 3000;
    let mut maker = Maker::default();
    for member in 1..=MEMBERS {
        maker = maker.named(member, "lanes", 0);
    }
    for round in 0..2 {
        for member in 1..=MEMBERS {
            maker = maker.begin(round * MEMBERS + member, member, "open");
        }
    }
    for member in 1..=MEMBERS {
        maker = maker.end(2 * MEMBERS + member, member);
    }
    let engine = read(&maker);
    assert_eq!(engine.tables.slice.rows() as u64, 2 * MEMBERS);
    assert_eq!(engine.tables.track.rows() as u64, MEMBERS);
}

#[test]
fn kernel_events_with_numbers_at_the_edge_of_their_types() {
    const FTRACE_EVENTS: u32 = 1;
    // The events that become counters and slices, each with all fields at their highest value.
    let mut bundle = number(1, u64::MAX);
    for id in 1..=600_u64 {
        if matches!(id, 1 | 2 | 5) {
            continue;
        }
        for (pid, value) in [(1, 0), (u64::MAX, u64::MAX), (7, 1 << 63)] {
            let fields: Vec<u8> = (1..=20).flat_map(|field| number(field, value)).collect();
            bundle.extend(field(2, &[number(1, id), number(2, pid), field(id, &fields)].concat()));
        }
    }
    let engine = read(&packet(Maker::default(), FTRACE_EVENTS, &bundle));
    let rows = engine.tables.ftrace_event.rows();
    assert!((1000..=1800).contains(&rows), "{rows}");
    let track_rows = engine.tables.track.rows();
    assert!(engine.tables.counter.track_id.iter().all(|track| track.index() < track_rows));
    assert!(engine.tables.slice.track_id.iter().all(|track| track.index() < track_rows));
}
