//! Parts of traces whose begins and ends lie in the file in another order than that of time.

use esatto_trace::Engine;

use super::{Proto, cut, trace};

const BEGIN: u64 = 1;
const END: u64 = 2;

fn event(sequence: u64, time: u64, event: &Proto) -> Proto {
    Proto::default().int(8, time).int(10, sequence).message(11, event)
}

fn begin(track: u64, name: &str) -> Proto {
    Proto::default().int(9, BEGIN).int(11, track).bytes(23, name.as_bytes())
}

fn end(track: u64) -> Proto {
    Proto::default().int(9, END).int(11, track)
}

fn track(uuid: u64) -> Proto {
    Proto::default().int(10, 1).message(60, &Proto::default().int(1, uuid).bytes(2, format!("{uuid}").as_bytes()))
}

/// Slices as name, begin and duration.
type Slices = Vec<(String, i64, i64)>;

fn slices(trace: &[u8]) -> Slices {
    let tables = Engine::read(trace).tables;
    let slice = |row: usize| {
        let name = tables.slice.name[row].map_or("?", |name| tables.strings.get(name));
        (name.to_owned(), tables.slice.ts.get(row), tables.slice.dur.get(row))
    };
    let mut slices: Slices = (0..tables.slice.name.len()).map(slice).collect();
    slices.sort();
    slices
}

fn part(packets: &[Proto], from: i64, to: i64) -> Slices {
    slices(&cut(packets, from, to))
}

/// Compares parts with the whole trace, and returns its slices.
fn compare(packets: &[Proto], times: std::ops::Range<i64>) -> Slices {
    let whole = slices(&trace(packets));
    let step = usize::try_from(times.end - times.start).expect("it is short").div_ceil(20);
    for from in times.clone().step_by(step) {
        for to in (from..times.end).step_by(step) {
            let overlaps = |(_, ts, dur): &&(String, i64, i64)| *ts <= to && (*dur < 0 || ts + dur >= from);
            let expected: Slices = whole.iter().filter(overlaps).cloned().collect();
            assert_eq!(part(packets, from, to), expected, "from {from} to {to}");
        }
    }
    whole
}

#[test]
fn ends_may_lie_before_their_begins() {
    // A thread begins slices on three tracks, and another one ends them.
    let mut packets = vec![track(1), track(2), track(3)];
    let jobs = || (0..12_u64).map(|job| (job, 100 + job * 10));
    packets.extend(jobs().map(|(job, time)| event(2, time + 15, &end(1 + job % 3))));
    packets.extend(jobs().map(|(job, time)| event(1, time, &begin(1 + job % 3, &format!("{job}")))));
    let whole = compare(&packets, 90..250);
    assert!(whole.len() == 12 && whole.iter().all(|slice| slice.2 == 15), "{whole:?}");
}

#[test]
fn nested_slices_of_many_threads_in_any_order_of_the_file() {
    let mut random = 1_u64;
    let mut below = move |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % limit
    };
    for _ in 0..30 {
        let mut sequences = vec![Vec::new(); 3];
        let mut open = [const { Vec::new() }; 2];
        for step in 0..40_u64 {
            let (lane, sequence) = (below(2) as usize, below(3));
            let stack: &mut Vec<String> = &mut open[lane];
            let track = lane as u64 + 1;
            let found = match below(6) {
                0..=2 => {
                    stack.push(format!("slice {step}"));
                    begin(track, &stack[stack.len() - 1])
                }
                3 => {
                    stack.pop();
                    end(track)
                }
                // An end with a name ends only a slice of this name.
                4 => end(track).bytes(23, stack.pop().unwrap_or_default().as_bytes()),
                _ => end(track).bytes(23, b"nothing"),
            };
            sequences[sequence as usize].push(event(sequence + 1, 100 + step, &found));
        }
        let mut packets = vec![track(1), track(2)];
        packets.extend(sequences.into_iter().rev().flatten());
        assert!(!compare(&packets, 95..145).is_empty());
    }
}

#[test]
fn times_are_those_of_the_clock_of_each_sequence() {
    // The clock of the second sequence counts differences, and is 1000 behind.
    let reading = |id: u64, ns: u64| Proto::default().int(1, id).int(2, ns);
    let clocks = Proto::default().message(1, &reading(6, 1000)).message(1, &reading(64, 0).int(3, 1));
    let mut packets = vec![
        Proto::default().int(10, 2).int(13, 1).message(6, &clocks).message(59, &Proto::default().int(58, 64)),
        track(1),
    ];
    packets.extend((0..10).map(|job| event(2, if job == 0 { 15 } else { 20 }, &end(1)).int(13, 2)));
    packets.extend((0..10).map(|job| event(1, 1000 + job * 20, &begin(1, &format!("{job}"))).int(58, 6)));
    let whole = compare(&packets, 990..1210);
    assert!(whole.len() == 10 && whole.iter().all(|slice| slice.2 == 15), "{whole:?}");
}

#[test]
fn ids_of_the_older_form_belong_to_their_process() {
    // Two processes have a slice with the same id, and the first one ends long before the other.
    let old = |process: u64, time: u64, phase: u8, id: u64| {
        let old = Proto::default().int(2, u64::from(phase)).int(10, id);
        let name = format!("of {process}");
        let found = Proto::default().bytes(22, b"cat").bytes(23, name.as_bytes()).message(6, &old);
        event(process, time, &found).int(79, process)
    };
    let thread = |process: u64| {
        let thread = Proto::default().int(1, process).int(2, process);
        Proto::default().int(10, process).int(13, 1).int(79, process).message(44, &thread)
    };
    let packets =
        [thread(1), thread(2), old(2, 190, b'e', 5), old(2, 110, b'b', 5), old(1, 100, b'b', 5), old(1, 120, b'e', 5)];
    let whole = compare(&packets, 90..200);
    assert_eq!(whole, [("of 1".to_owned(), 100, 20), ("of 2".to_owned(), 110, 80)]);
}
