//! In the interval, a part has what the trace processor finds in the whole trace.

use crate::{Random, TRACES, esatto, run, said, trace};
use esatto_tests::wire::Proto;
use esatto_tests::{Harness, Peer, skip, tp};
use std::path::{Path, PathBuf};

/// Content between two times.
fn content(from: i64, to: i64) -> String {
    format!(
        "select s.ts, s.dur, s.depth, s.category, s.name, th.tid, p.pid, p.name as process, th.name as thread,
            (select group_concat(line, ' ') from (select key || '=' || coalesce(int_value, string_value, real_value)
                as line from args a where a.arg_set_id = s.arg_set_id and key like 'debug.%' order by line)) as args
            from slice s left join thread_track tt on tt.id = s.track_id left join thread th using (utid)
            left join process p using (upid)
            where s.ts + max(s.dur, 0) >= {from} and s.ts <= {to} and (s.dur != 0 or s.ts >= {from})
            order by s.ts, s.name, s.dur, s.depth;
        select c.ts, c.value, t.name from counter c join track t on t.id = c.track_id
            where c.ts between {from} and {to} order by c.ts, t.name, c.value;
        select s.ts, s.dur, ucpu, tid, end_state, s.priority from sched s join thread using (utid)
            where s.ts >= {from} and s.ts + s.dur <= {to} and s.dur >= 0 order by s.ts, ucpu;
        select ts, name, cpu from ftrace_event where ts between {from} and {to} order by ts, cpu, name;
        select o.ts as out_ts, i.ts as in_ts from flow f join slice o on o.id = f.slice_out
            join slice i on i.id = f.slice_in where o.ts between {from} and {to} and i.ts between {from} and {to}
            order by 1, 2;"
    )
}

/// Cuts some intervals out of a trace and compares them. Returns how many rows were compared.
fn compare(harness: &Harness, whole: &Path, seed: u64) -> usize {
    compare_from(harness, whole, seed, 0)
}

/// As [`compare`], from one query on.
fn compare_from(harness: &Harness, whole: &Path, seed: u64, first_query: usize) -> usize {
    let mut random = Random(seed);
    let bounds = &tp::rows(whole, "select start_ts as a, end_ts as b from trace_bounds")[0];
    let (start, end) = (bounds.int("a"), bounds.int("b"));
    let mut rows = 0;
    for _ in 0..2 {
        let length = u64::try_from(end - start).expect("a trace has a length").max(2);
        let mut ends = [random.below(length), random.below(length)].map(|at| start + at as i64);
        ends.sort_unstable();
        let [from, to] = ends;
        let part = harness.path("part.pftrace");
        run(&[&"cut", &whole, &"--from", &from.to_string(), &"--to", &to.to_string(), &"-o", &part, &"--force"]);
        let [theirs, ours] = [whole, &part].map(|file| tp::maps(file, &content(from, to)));
        for (query, (theirs, ours)) in theirs.iter().zip(&ours).enumerate().skip(first_query) {
            for (theirs, ours) in theirs.iter().zip(ours) {
                assert_eq!(theirs, ours, "{} from {from} to {to}, query {query}", whole.display());
            }
            assert_eq!(theirs.len(), ours.len(), "{} from {from} to {to}, query {query}", whole.display());
            rows += theirs.len();
        }
        // The thread that runs at the begin of the interval, and none before it.
        let early = format!("select cpu, count(*) as n from sched where ts < {from} group by cpu");
        let early = tp::rows(&part, &early);
        assert!(early.iter().all(|row| row.int("n") == 1), "{} from {from}: {early:?}", whole.display());
        let sizes = [whole, &part].map(|file| std::fs::metadata(file).expect("it is there").len());
        assert!(to - from > (end - start) / 2 || sizes[1] < sizes[0], "{sizes:?}");
        let names = |file| -> Vec<String> {
            let rows = tp::rows(file, "select name from stats where value != 0 and severity = 'error'");
            rows.iter().map(|row| row.text("name").to_owned()).collect()
        };
        let errors = names(whole);
        assert!(names(&part).iter().all(|name| errors.contains(name)), "{:?}", names(&part));
    }
    rows
}

/// Returns traces with kernel events, older forms and profiles.
fn hand_made(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/trace_file").join(name)
}

#[test]
fn of_recorded_traces() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        for (seed, name) in (1..).zip(TRACES) {
            // Only this one is not compressed, which makes a part of it larger.
            let plain = harness.path("plain.pftrace");
            run(&[&"convert", &trace(name), &"--to", &"perfetto", &"-o", &plain, &"--force"]);
            assert!(compare(&harness, &plain, seed) > 20, "{name}");
        }
        Ok(())
    });
}

#[test]
fn of_kernel_events() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        // The slices of system calls and markers are not kept whole.
        let whole = hand_made("hand-made-ftrace");
        let rows: usize = (1..4).map(|seed| compare_from(&harness, &whole, seed, 1)).sum();
        assert!(rows > 10, "{rows}");
        Ok(())
    });
}

#[test]
fn of_many_kernel_events_in_the_compact_form() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        // Two processors that change between four threads, in bundles of 20 switches.
        let mut trace = Vec::new();
        for cpu in 0..2_u64 {
            for bundle in 0..10_u64 {
                let start = 1_000_000 + bundle * 20_000 + cpu * 300;
                let mut compact = Proto::new();
                let deltas = (0..20).map(|row| if row == 0 { start } else { 1000 });
                let columns: [(u32, Vec<u64>); 5] = [
                    (1, deltas.collect()),
                    (2, (0..20).map(|row| row % 3).collect()),
                    (3, (0..20).map(|row| 10 + cpu * 2 + row % 2).collect()),
                    (4, vec![120; 20]),
                    (6, (0..20).map(|row| row % 2).collect()),
                ];
                for (id, values) in columns {
                    compact = compact.bytes(id, packed(&values));
                }
                let compact = compact.bytes(5, "first").bytes(5, "second");
                let bundle = Proto::new().int(1, cpu).message(4, &compact);
                // One that has no event, but is kept, because it tells that events were lost.
                let mark = Proto::new().int(1, cpu).int(3, 1);
                for bundle in [bundle, mark] {
                    trace.extend(Proto::new().message(1, &Proto::new().int(10, 1).message(1, &bundle)).0);
                }
            }
        }
        let whole = harness.write("t.pftrace", trace);
        let rows: usize = (1..4).map(|seed| compare(&harness, &whole, seed)).sum();
        assert!(rows > 100, "{rows}");
        Ok(())
    });
}

fn packed(values: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        let mut rest = *value;
        while rest >= 0x80 {
            bytes.push(rest.to_le_bytes()[0] | 0x80);
            rest >>= 7;
        }
        bytes.push(rest.to_le_bytes()[0]);
    }
    bytes
}

#[test]
fn of_times_that_are_differences() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        // A clock of the sequence whose values are differences, and a counter with such values.
        let reading = |id: u64, ns: u64| Proto::new().int(1, id).int(2, ns);
        let own = reading(64, 5_000).int(3, 1);
        let snapshot = Proto::new().message(1, &reading(6, 5_000)).message(1, &own);
        let defaults = Proto::new().int(58, 64);
        let track = |uuid: u64, thread: bool| {
            let descriptor = Proto::new().int(1, uuid);
            if thread {
                descriptor.message(4, &Proto::new().int(1, 7).int(2, 8))
            } else {
                descriptor.bytes(2, "sum").message(8, &Proto::new().int(5, 1))
            }
        };
        let mut packets = vec![
            Proto::new().int(10, 3).int(13, 1).message(6, &snapshot).message(59, &defaults),
            Proto::new().int(10, 3).int(13, 2).message(60, &track(1, true)),
            Proto::new().int(10, 3).int(13, 2).message(60, &track(2, false)),
        ];
        for step in 0..200_u64 {
            let event = match step % 4 {
                0 => Proto::new().int(9, 1).int(11, 1).bytes(23, format!("outer {step}")),
                1 => Proto::new().int(9, 1).int(11, 1).bytes(23, "inner"),
                _ => Proto::new().int(9, 2).int(11, 1),
            };
            let count = Proto::new().int(9, 4).int(11, 2).int(30, 1 + step % 3);
            for event in [event, count] {
                packets.push(Proto::new().int(8, 70 + step).int(10, 3).int(13, 2).message(11, &event));
            }
        }
        let trace: Vec<u8> = packets.iter().flat_map(|packet| Proto::new().message(1, packet).0).collect();
        let whole = harness.write("t.pftrace", trace);
        tp::assert_clean(&whole);
        let rows: usize = (1..4).map(|seed| compare(&harness, &whole, seed)).sum();
        assert!(rows > 100, "{rows}");
        Ok(())
    });
}

#[test]
fn times_may_be_named_from_the_start_or_by_the_clock_on_the_wall() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let whole = trace("track-events");
        let cut = |from: &str, to: &str| {
            let part = harness.path("part.pftrace");
            run(&[&"cut", &whole, &"--from", &from, &"--to", &to, &"-o", &part, &"--force"]);
            tp::rows(&part, "select count(*) as n from slice")[0].int("n")
        };
        let start = tp::rows(&whole, "select start_ts as a from trace_bounds")[0].int("a");
        let wall = "select clock_value - ts as ahead from clock_snapshot where clock_name = 'REALTIME' limit 1";
        let ahead = tp::rows(&whole, wall)[0].int("ahead");
        let by_number = cut(&(start + 10_000_000).to_string(), &(start + 60_000_000).to_string());
        assert!(by_number > 10, "{by_number}");
        assert_eq!(cut("+10ms", "0.06s"), by_number);
        let wall = |after: i64| {
            let ns = start + ahead + after;
            let query = format!("select strftime('%Y-%m-%dT%H:%M:%S', {}, 'unixepoch') as text", ns / 1_000_000_000);
            format!("{}.{:09}Z", tp::rows(&whole, &query)[0].text("text"), ns % 1_000_000_000)
        };
        assert_eq!(cut(&wall(10_000_000), &wall(60_000_000)), by_number);
        Ok(())
    });
}

#[test]
fn wrong_intervals_are_explained() {
    let harness = Harness::new();
    let part = harness.path("part.pftrace");
    let cut = |from: &str, to: &str| {
        let output = esatto(&[&"cut", &trace("deflate"), &"--from", &from, &"--to", &to, &"-o", &part]);
        assert!(!output.status.success() && !part.exists());
        said(&output)
    };
    assert!(cut("+2s", "+1s").contains("--to is before --from"));
    assert!(cut("yesterday", "+1s").contains("expected +1.5s"));
}

#[test]
fn an_interval_without_events_is_told() {
    let harness = Harness::new();
    let part = harness.path("part");
    let said = run(&[&"cut", &trace("track-events"), &"--from", &"0", &"--to", &"1000", &"-o", &part]);
    assert!(said.contains("The interval has no event: those of the trace are from 22309"), "{said}");
    let said = run(&[&"cut", &trace("track-events"), &"--from", &"+0s", &"-o", &part, &"--force"]);
    assert!(!said.contains("no event"), "{said}");
}
