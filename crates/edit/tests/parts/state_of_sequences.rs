//! Parts of small traces, as the engine sees them. The trace processor agrees with each of the
//! whole traces.

use esatto_trace::Engine;

use super::{Proto, cut, trace};

const CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
const TRACK: u64 = 77;
const SUMS: u64 = 900;

impl Proto {
    /// Announces a name of events.
    fn name(self, number: u64, name: &str) -> Self {
        let name = Self::default().int(1, number).bytes(2, name.as_bytes());
        self.message(12, &Self::default().message(2, &name))
    }

    fn loss(self) -> Self {
        self.int(42, 1)
    }
}

/// A packet of the only sequence.
fn packet(time: u64, flags: u64) -> Proto {
    Proto::default().int(8, time).int(10, 1).int(13, flags)
}

/// An event of the track, with the name of a number.
fn event(kind: u64, name: u64) -> Proto {
    let event = Proto::default().int(9, kind).int(11, TRACK);
    if name == 0 { event } else { event.int(10, name) }
}

fn track() -> Proto {
    packet(1, 0).message(60, &Proto::default().int(1, TRACK).bytes(2, b"track"))
}

/// A counter of differences.
fn sums() -> Proto {
    packet(1, 0).message(60, &Proto::default().int(1, SUMS).bytes(2, b"sums").message(8, &Proto::default().int(5, 1)))
}

/// Returns the slices from a time on as `name ts dur`, and the values of counters as `ts value`.
fn content(trace: &[u8], from: i64) -> (Vec<String>, Vec<String>) {
    let tables = Engine::read(trace).tables;
    let slices = (0..).take(tables.slice.name.len()).map(|row: usize| {
        let name = tables.slice.name[row].map_or("?", |name| tables.strings.get(name));
        (tables.slice.ts.get(row) + tables.slice.dur.get(row), format!("{name} {}", tables.slice.ts.get(row)))
    });
    let values = (0..tables.counter.value.len()).map(|row| {
        (tables.counter.ts.get(row), format!("{} {}", tables.counter.ts.get(row), tables.counter.value[row]))
    });
    let later = |(time, text): (i64, String)| (time >= from).then_some(text);
    (slices.filter_map(later).collect(), values.filter_map(later).collect())
}

/// Compares a part with the whole trace.
fn compare(packets: &[Proto], from: i64, slices: &[&str], values: &[&str]) {
    for trace in [trace(packets), cut(packets, from, i64::MAX)] {
        let (found, sums) = content(&trace, from);
        assert!(found == slices && sums == values, "{found:?} {sums:?}, not {slices:?} {values:?}");
    }
}

#[test]
fn a_begin_that_clears_the_state_clears_it_once() {
    let packets = [
        track(),
        packet(100, CLEARED).loss().name(1, "outer").message(11, &event(BEGIN, 1)),
        packet(200, NEEDS_STATE).name(2, "inner").message(11, &event(INSTANT, 2)),
        packet(600, NEEDS_STATE).message(11, &event(INSTANT, 2)),
        packet(700, NEEDS_STATE).message(11, &event(END, 0)),
        packet(800, NEEDS_STATE).message(11, &event(INSTANT, 2)),
    ];
    compare(&packets, 500, &["outer 100", "inner 600", "inner 800"], &[]);
}

#[test]
fn a_begin_keeps_the_defaults_of_its_time() {
    let defaults = |track: u64| Proto::default().message(11, &Proto::default().int(11, track));
    let other = packet(1, 0).message(60, &Proto::default().int(1, 78).bytes(2, b"other"));
    let plain = |kind: u64| Proto::default().int(9, kind);
    let packets = [
        track(),
        other,
        packet(100, CLEARED).name(1, "a").message(59, &defaults(TRACK)).message(11, &plain(BEGIN).int(10, 1)),
        packet(200, NEEDS_STATE).message(59, &defaults(78)).message(11, &plain(INSTANT).int(10, 1)),
        packet(600, NEEDS_STATE).message(11, &plain(INSTANT).int(10, 1)),
        packet(700, NEEDS_STATE).message(11, &event(END, 0)),
    ];
    compare(&packets, 500, &["a 100", "a 600"], &[]);
    let tables = Engine::read(&*cut(&packets, 500, i64::MAX)).tables;
    assert_eq!(tables.slice.dur.get(0), 600, "it is on its track");
}

#[test]
fn a_difference_on_a_begin_counts_once() {
    let with = |event: Proto, value: u64| event.int(31, SUMS).int(12, value);
    let packets = [
        track(),
        sums(),
        packet(100, CLEARED).loss().name(1, "a").message(11, &with(event(BEGIN, 1), 5)),
        packet(200, NEEDS_STATE).message(11, &with(event(INSTANT, 1), 7)),
        packet(600, NEEDS_STATE).message(11, &with(event(INSTANT, 1), 100)),
        packet(800, NEEDS_STATE).message(11, &with(event(END, 0), 1000)),
    ];
    compare(&packets, 500, &["a 100", "a 600"], &["600 112", "800 1112"]);
}

#[test]
fn the_sum_of_differences_is_no_loss() {
    let difference = |value: u64| Proto::default().int(9, COUNTER).int(11, SUMS).int(30, value);
    let packets = [
        track(),
        sums(),
        packet(100, CLEARED).loss().name(1, "a").message(11, &difference(5)),
        packet(600, NEEDS_STATE).message(11, &event(INSTANT, 1)),
        packet(700, NEEDS_STATE).message(11, &difference(1)),
    ];
    compare(&packets, 500, &["a 600"], &["700 6"]);
}

#[test]
fn a_loss_in_the_interval_stays_one() {
    let packets = [
        track(),
        packet(10, CLEARED).loss().name(1, "a"),
        packet(600, NEEDS_STATE).message(11, &event(INSTANT, 1)),
        packet(610, NEEDS_STATE).loss().message(11, &event(INSTANT, 1)),
        packet(620, CLEARED).name(1, "a").message(11, &event(INSTANT, 1)),
    ];
    compare(&packets, 500, &["a 600", "a 620"], &[]);
    let losses = |from: i64| {
        let trace = cut(&packets, from, i64::MAX);
        let marked = |packet: &Vec<u8>| esatto_protozero::Fields::new(packet).any(|field| field.id == 42);
        esatto_trace::packets(&trace).filter(|packet| marked(&packet.as_ref().expect("it is whole").bytes)).count()
    };
    assert_eq!([losses(500), losses(615)], [2, 1]);
}

#[test]
fn open_slices_are_kept_while_many_sequences_clear_their_state() {
    // Each sequence clears its state again and again, and has an open slice before the part.
    let mut packets = Vec::new();
    for turn in 0..20_u64 {
        for sequence in 1..2000_u64 {
            let event = Proto::default().int(9, if turn == 19 { END } else { INSTANT }).int(11, sequence);
            let event = if turn == 0 { Proto::default().int(9, BEGIN).int(11, sequence) } else { event };
            let packet = Proto::default().int(8, 100 + turn).int(10, sequence).int(13, CLEARED);
            packets.push(packet.message(11, &event));
        }
    }
    let (slices, _) = content(&cut(&packets, 118, i64::MAX), 118);
    assert_eq!(slices.len(), 2 * 1999, "the open slices, and an instant on each");
}
