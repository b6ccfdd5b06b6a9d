//! Traces that no program writes end in tables, and cost little.

use esatto_schema::track_event::Type;
use esatto_trace::tables::{Table, Value};
use esatto_trace::{Engine, Error, ReadOptions};

use crate::common::{Maker, official};

fn read(maker: &Maker) -> Engine {
    Engine::read(&maker.0[..])
}

/// Returns a count of the reader.
fn stat(engine: &Engine, name: &str) -> i64 {
    let (table, strings) = (&engine.tables.stats, &engine.tables.strings);
    let rows = (0..table.name.len()).filter(|&row| strings.get(table.name[row]) == name);
    rows.map(|row| table.value[row]).sum()
}

#[test]
fn a_circle_of_tracks() {
    let mut maker = Maker::default();
    for track in 1..=3 {
        maker = maker.named(track, "one of three", track % 3 + 1);
    }
    maker = maker.named(4, "its own parent", 4);
    for track in 1..=4 {
        maker = maker.instant(track, track, "lost");
    }
    let engine = read(&maker.instant(9, 0, "kept"));
    assert_eq!(engine.tables.slice.rows(), 1);
    assert_eq!(stat(&engine, "track_event_parser_errors"), 8);
}

#[test]
fn a_chain_of_very_many_tracks() {
    const TRACKS: u64 = 20_000;
    let mut maker = Maker::default();
    for track in 1..=TRACKS {
        maker = maker.named(track, "link", track - 1);
    }
    // The last one first: its ancestors have no rows yet.
    for track in (1..=TRACKS).rev() {
        maker = maker.instant(TRACKS - track, track, "event");
    }
    let engine = read(&maker);
    // The first one has no ancestor.
    assert_eq!(engine.tables.slice.rows(), 101);
}

#[test]
fn flows_in_circles() {
    let mut maker = Maker::default();
    for ts in 0..1000 {
        maker = maker.event(ts, Type::TYPE_INSTANT, 0, |event| {
            event.flow_ids(ts % 3).flow_ids(ts % 3).terminating_flow_ids((ts + 1) % 3);
        });
    }
    let engine = read(&maker);
    assert_eq!(engine.tables.slice.rows(), 1000);
    assert!(engine.tables.flow.rows() <= 3000);
}

#[test]
fn a_clock_that_jumps_a_billion_seconds() {
    const JUMP: u64 = 1_000_000_000_000_000_000;
    let maker = Maker::default().begin(5, 0, "long").instant(JUMP, 0, "far").end(JUMP + 7, 0);
    let maker = maker.instant(i64::MAX as u64, 0, "last").instant(u64::MAX, 0, "too late");
    let engine = read(&maker);
    let table = &engine.tables.slice;
    assert_eq!(table.rows(), 3);
    assert_eq!((table.ts.get(0), table.dur.get(0)), (5, JUMP as i64 + 2));
    assert_eq!(table.ts.get(2), i64::MAX);
}

#[test]
fn ids_of_64_bits() {
    let maker = Maker::default().named(u64::MAX, "highest", 0).named(u64::MAX - 1, "child", u64::MAX);
    let maker = maker.event(1, Type::TYPE_INSTANT, u64::MAX - 1, |event| {
        event.flow_ids(u64::MAX).name_iid(u64::MAX).category_iids(u64::MAX);
    });
    let maker = maker.event(2, Type::TYPE_INSTANT, u64::MAX, |event| _ = event.terminating_flow_ids(u64::MAX));
    let maker = maker.process(7, i64::from(i32::MIN)).thread(8, -1, i64::MAX, 7);
    let engine = read(&maker);
    assert_eq!((engine.tables.slice.rows(), engine.tables.flow.rows()), (2, 1));
    assert_eq!(engine.tables.flow.trace_id[0], -1);
    assert!(engine.tables.thread.tid.contains(&i64::MAX));
}

#[test]
fn a_name_of_100_megabytes_is_stored_once() {
    let name = "x".repeat(100 << 20);
    let maker = Maker::default().begin(1, 0, &name).end(2, 0).begin(3, 0, &name).end(4, 0);
    let engine = read(&maker);
    assert_eq!(engine.tables.slice.rows(), 2);
    assert_eq!(engine.tables.slice.name[0], engine.tables.slice.name[1]);
}

#[test]
fn keys_that_are_far_larger_than_the_trace_are_left_out() {
    const INTERNED_DATA: u32 = 12;
    let maker = Maker::default().packet(|packet| {
        packet.varint(13, 1);
        let mut interned = packet.begin(INTERNED_DATA);
        let mut name = interned.begin(3);
        name.varint(1, 1);
        name.bytes(2, &vec![b'x'; 100_000]);
    });
    let maker = maker.event(1, Type::TYPE_INSTANT, 0, |event| {
        let mut list = event.debug_annotations();
        list.name_iid(1);
        for value in 0..20_000 {
            list.array_values().int_value(value);
        }
    });
    // All keys would take 2 GB.
    let engine = read(&maker);
    let args = engine.tables.args.rows();
    assert!((1..2000).contains(&args), "{args}");
    assert!(stat(&engine, "arguments_left_out") >= 1);
}

#[test]
fn very_many_open_slices() {
    let mut maker = Maker::default();
    for ts in 0..5000 {
        maker = maker.begin(ts, 0, "a");
    }
    for ts in 5000..10_000 {
        maker = maker.event(ts, Type::TYPE_SLICE_END, 0, |event| _ = event.name("b"));
    }
    let engine = read(&maker);
    assert_eq!(engine.tables.slice.rows(), 5000);
    assert!((0..5000).all(|row| engine.tables.slice.dur.get(row) == -1), "no end has their name");
}

#[test]
fn slices_of_a_deep_recursion() {
    const DEPTH: u64 = 3000;
    let mut maker = Maker::default();
    for ts in 0..DEPTH {
        maker = maker.begin(ts, 0, "a");
    }
    for ts in DEPTH..2 * DEPTH {
        maker = maker.event(ts, Type::TYPE_SLICE_END, 0, |_| ());
    }
    let slice = read(&maker).tables.slice;
    for row in 0..DEPTH as usize {
        let expected = (row, 2 * DEPTH as i64 - 1 - 2 * row as i64);
        assert_eq!((usize::from(slice.depth[row]), slice.dur.get(row)), expected);
        assert_eq!(slice.parent_id[row].map(|parent| parent.index()), row.checked_sub(1));
    }
}

#[test]
fn very_many_machines() {
    const MACHINES: u64 = 5000;
    let mut maker = Maker::default();
    for machine in 0..MACHINES {
        maker = maker.packet(|packet| {
            packet.varint(98, machine);
            packet.varint(8, 1000 - machine % 1000);
            packet.begin(11).varint(9, 3);
        });
    }
    let engine = read(&maker);
    assert_eq!((engine.tables.slice.rows(), engine.tables.machine.rows()), (5000, 5000));
    let times: Vec<i64> = (0..5000).map(|row| engine.tables.slice.ts.get(row)).collect();
    assert!(times.is_sorted());
}

#[test]
fn a_torn_file_is_read_to_the_tear() {
    let whole = official("track-events");
    for length in [whole.len() / 2, whole.len() - 1] {
        let engine = Engine::read(&whole[..length]);
        assert!(matches!(engine.errors[..], [Error::Torn { .. } | Error::TornHeader { .. }]), "{:?}", engine.errors);
        assert!(engine.tables.slice.rows() > 500);
    }
}

#[test]
fn temporary_files_change_nothing() {
    for name in ["track-events", "long-two-buffers", "process-and-sys-stats"] {
        let bytes = official(name);
        let mut options = ReadOptions::default();
        options.sort_memory = 1000;
        let (in_memory, in_files) = (Engine::read(&bytes[..]), Engine::read_with(&bytes[..], &options));
        assert!(in_files.sort_error.is_none());
        for (one, other) in in_memory.tables.all().into_iter().zip(in_files.tables.all()) {
            let cells = |table: &dyn Table, engine: &Engine| -> Vec<String> {
                let cell = |row, column| match table.value(row, column, &engine.tables.strings) {
                    Value::Real(number) => format!("{number:?}"),
                    value => format!("{value:?}"),
                };
                let columns = table.columns().len();
                (0..table.rows())
                    .flat_map(|row| (0..columns).map(move |column| (row, column)))
                    .map(|(row, column)| cell(row, column))
                    .collect()
            };
            assert_eq!(cells(one, &in_memory), cells(other, &in_files), "{name} {}", one.name());
        }
    }
}
