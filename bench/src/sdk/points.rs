//! Part `points`: trace points with the service in the process, beside all peers; the floors;
//! bytes.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_harness::{Case, FLOORS, MOCKS, Operation, Plan, Samples, sample};

use super::contender::{COUNTED, Contender, Spec, build_peers, find, time_peers};
use super::{GROUP, ratio};
use crate::options::Options;
use crate::row::{Of, Row};
use crate::samples::Time;
use crate::stats::{self, Statistic};
use crate::trace::TrackEvents;

const COUNTER: &str = "Counter";
const BOOT_TIME: &str = "BootTime";
const COUNTER_4M: &str = "Counter, 4 MiB";
const BOOT_TIME_4M: &str = "BootTime, 4 MiB";

/// Ours by clock, and by size of the shared memory where it is not the default.
const OURS: [Spec; 4] = [
    ours(COUNTER, &["--place", "in-process", "--clock", "counter"]),
    ours(BOOT_TIME, &["--place", "in-process", "--clock", "boot-time"]),
    ours(COUNTER_4M, &["--place", "in-process", "--clock", "counter", "--shm-kb", "4096"]),
    ours(BOOT_TIME_4M, &["--place", "in-process", "--clock", "boot-time", "--shm-kb", "4096"]),
];

const fn ours(name: &'static str, args: &'static [&'static str]) -> Spec {
    Spec::new(name, "bench-sdk-esatto").args(args)
}

const PERFETTO: &str = "perfetto-sdk";
const PERFETTO_4M: &str = "perfetto-sdk, 4 MiB";
const RECORDER: &str = "perfetto-recorder";
const FASTANT: &str = "recorder, fastant";
const TRACY: &str = "tracy-client";

/// Two of them are one in the table: what tracy costs when off it says in another program.
const PEERS: [Spec; 8] = [
    Spec::new(PERFETTO, "bench-sdk-perfetto").args(&["--place", "in-process"]),
    Spec::new(PERFETTO_4M, "bench-sdk-perfetto").args(&["--place", "in-process", "--shm-kb", "4096"]),
    Spec::new(RECORDER, "bench-sdk-recorder"),
    Spec::new(FASTANT, "bench-sdk-recorder").features(&["fastant"]),
    Spec::new("fastrace", "bench-sdk-fastrace"),
    Spec::new(TRACY, "bench-sdk-tracy"),
    Spec::new(TRACY, "bench-sdk-tracy").features(&["ondemand"]),
    Spec::new("tracing-perfetto", "bench-sdk-tracing-perfetto"),
];

const OPERATIONS: [Operation; 7] = [
    Operation::Disabled,
    Operation::DisabledArguments,
    Operation::Pair,
    Operation::Arguments,
    Operation::Counter,
    Operation::Instant,
    Operation::Flow,
];
const RECORDED: [Operation; 5] =
    [Operation::Pair, Operation::Arguments, Operation::Counter, Operation::Instant, Operation::Flow];

/// Batches of a floor per round, with the same pauses as those of libraries: a processor that has
/// slept begins with other contents of its caches.
const FLOOR_PLAN: Plan = Plan { batches: 60, pause: Duration::from_micros(1000) };

/// All that was measured.
struct Results {
    ours: Vec<Contender>,
    peers: Vec<Contender>,
    floors: Floors,
}

/// Floors by name and number of threads.
#[derive(Default)]
struct Floors(BTreeMap<(&'static str, usize), Samples>);

pub(super) fn rows(options: &Options) -> Result<Vec<Row>, String> {
    let ours = OURS.iter().map(Spec::build).collect::<Result<_, _>>()?;
    let mut this = Results { ours, peers: build_peers(&PEERS), floors: Floors::default() };
    for round in 1..=options.rounds {
        eprintln!("bench: sdk, points, round {round} of {}", options.rounds);
        this.floors.measure();
        for contender in &mut this.ours {
            contender.time(None)?;
        }
        time_peers(&mut this.peers, None);
    }
    let mut rows = this.costs();
    rows.extend(this.bytes()?);
    rows.extend(this.floors.rows());
    rows.extend(this.reaches());
    Ok(rows)
}

impl Results {
    fn ours(&self, name: &str, operation: Operation, threads: usize, time: Time, of: Statistic) -> Option<f64> {
        find(&self.ours, name, operation, threads, time, of)
    }

    fn peer(&self, name: &str, operation: Operation, of: Statistic) -> Option<f64> {
        find(&self.peers, name, operation, 1, Time::Wall, of)
    }

    /// Every operation with every library.
    fn costs(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (threads, time, with) in [(1, Time::Wall, ""), (2, Time::Cpu, ", two threads, CPU time")] {
            for operation in OPERATIONS {
                for Spec { name, .. } in OURS {
                    for (statistic, of) in stats::BOTH {
                        let Some(value) = self.ours(name, operation, threads, time, of) else { continue };
                        // While nothing is recorded, no code looks at clocks and memory.
                        if operation.events() == 0 && name != COUNTER {
                            continue;
                        }
                        let name = if operation.events() == 0 { String::new() } else { format!(", {name}") };
                        let case = format!("{}{name}{with}, {statistic}", operation.name());
                        let mut row = Row::new(GROUP, case, "ns/op", value);
                        for peer in peer_names() {
                            row = row.beside(peer, find(&self.peers, peer, operation, threads, time, of));
                        }
                        rows.push(row);
                    }
                }
            }
        }
        rows
    }

    /// Bytes of each operation in a trace.
    fn bytes(&mut self) -> Result<Vec<Row>, String> {
        let mut rows = Vec::new();
        for operation in RECORDED {
            let ours = self.ours[0].count(None, operation)?;
            let peer = self.peers.iter_mut().find(|contender| contender.name == PERFETTO);
            let theirs = peer.map(|contender| contender.count(None, operation)).transpose()?;
            let row = |what: &str, bytes: fn(&TrackEvents) -> u64| {
                let each = |events: &TrackEvents| bytes(events) as f64 / COUNTED as f64;
                let row = Row::new(GROUP, format!("{}, {what}", operation.name()), "bytes/op", each(&ours));
                row.beside(PERFETTO, theirs.as_ref().map(each))
            };
            let in_trace = row("in the trace", |events| events.bytes);
            let is_asked_for = operation == Operation::Pair;
            rows.push(if is_asked_for { in_trace.reach(Of::Value, 34.0) } else { in_trace });
            rows.push(row("as written", |events| events.bytes_of_producer));
        }
        Ok(rows)
    }

    /// The reaches of trace points.
    fn reaches(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (statistic, of) in stats::BOTH {
            // Reaches are for medians.
            let reach = |reach: f64| (statistic == "median").then_some(reach);
            let ours = |name: &str, operation| self.ours(name, operation, 1, Time::Wall, of);
            for operation in [Operation::Disabled, Operation::DisabledArguments] {
                // The second is all that it may do.
                for floor in ["empty loop", "relaxed load and branch"] {
                    let case = format!("{} ÷ {floor}, {statistic}", operation.name());
                    let floor = self.floors.value(floor, 1, Time::Wall, of);
                    rows.extend(ratio(case, ours(COUNTER, operation), floor, reach(1.1)));
                }
            }
            for (operation, name, peer, limit) in BESIDE_PEERS {
                let case = format!("{}, {name} ÷ {peer}, {statistic}", operation.name());
                rows.extend(ratio(case, ours(name, operation), self.peer(peer, operation, of), reach(limit)));
            }
            for (operation, name, mock, limit) in ABOVE_MOCK {
                let case = format!("{}, {name} ÷ mock, {statistic}", operation.name());
                rows.extend(ratio(
                    case,
                    ours(name, operation),
                    self.floors.value(mock, 1, Time::Wall, of),
                    reach(limit),
                ));
            }
            // The cost of a second thread on this machine without any library.
            for mock in MOCKS {
                let of_threads = |threads| self.floors.value(mock.name, threads, Time::Cpu, of);
                let case = format!("{}, CPU time, two threads ÷ one, {statistic}", mock.name);
                rows.extend(ratio(case, of_threads(2), of_threads(1), None));
            }
            for name in [COUNTER, BOOT_TIME] {
                for operation in RECORDED {
                    let of_threads = |threads| self.ours(name, operation, threads, Time::Cpu, of);
                    let case = format!("{}, {name}, CPU time, two threads ÷ one, {statistic}", operation.name());
                    rows.extend(ratio(case, of_threads(2), of_threads(1), reach(1.2)));
                }
            }
        }
        rows
    }
}

/// Operation, ours, peer, and the ratio that is asked for.
const BESIDE_PEERS: [(Operation, &str, &str, f64); 14] = [
    (Operation::Pair, COUNTER, PERFETTO, 0.2),
    (Operation::Pair, BOOT_TIME, PERFETTO, 0.3),
    (Operation::Pair, COUNTER_4M, PERFETTO_4M, 0.2),
    (Operation::Pair, BOOT_TIME_4M, PERFETTO_4M, 0.3),
    (Operation::Pair, COUNTER, FASTANT, 1.0),
    (Operation::Pair, BOOT_TIME, RECORDER, 1.0),
    (Operation::Arguments, COUNTER, PERFETTO, 0.2),
    (Operation::Arguments, BOOT_TIME, PERFETTO, 0.2),
    (Operation::Arguments, COUNTER_4M, PERFETTO_4M, 0.2),
    (Operation::Arguments, BOOT_TIME_4M, PERFETTO_4M, 0.2),
    (Operation::Counter, COUNTER, PERFETTO, 0.3),
    (Operation::Counter, BOOT_TIME, PERFETTO, 0.3),
    (Operation::Flow, COUNTER, PERFETTO, 0.3),
    (Operation::Flow, BOOT_TIME, PERFETTO, 0.3),
];

/// Operation, ours, mock writer with the same clock, and the ratio that is asked for.
const ABOVE_MOCK: [(Operation, &str, &str, f64); 4] = [
    (Operation::Pair, COUNTER, "mock writer, TSC scaled, pair", 1.4),
    (Operation::Pair, BOOT_TIME, "mock writer, BOOTTIME, pair", 1.4),
    (Operation::Arguments, COUNTER, "mock writer, TSC scaled, pair with u64 and 15-byte string", 1.6),
    (Operation::Arguments, BOOT_TIME, "mock writer, BOOTTIME, pair with u64 and 15-byte string", 1.6),
];

/// Each once.
fn peer_names() -> Vec<&'static str> {
    let mut names: Vec<_> = PEERS.iter().map(|spec| spec.name).collect();
    names.dedup();
    names
}

impl Floors {
    fn cases() -> impl Iterator<Item = (&'static Case, usize)> {
        let floors = FLOORS.iter().map(|case| (case, 1));
        floors.chain(MOCKS.iter().flat_map(|case| [(case, 1), (case, 2)]))
    }

    /// One round.
    fn measure(&mut self) {
        for (case, threads) in Self::cases() {
            let samples = sample(case, FLOOR_PLAN, threads);
            let all = self.0.entry((case.name, threads)).or_default();
            all.wall.extend(samples.wall);
            all.cpu.extend(samples.cpu);
        }
    }

    fn value(&self, name: &'static str, threads: usize, time: Time, of: Statistic) -> Option<f64> {
        let samples = self.0.get(&(name, threads))?;
        Some(of(match time {
            Time::Wall => &samples.wall,
            Time::Cpu => &samples.cpu,
        }))
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (case, threads) in Self::cases() {
            let (time, with) = if threads == 1 { (Time::Wall, "") } else { (Time::Cpu, ", two threads, CPU time") };
            for (statistic, of) in stats::BOTH {
                let value = self.value(case.name, threads, time, of).unwrap_or_default();
                rows.push(Row::new(GROUP, format!("floor: {}{with}, {statistic}", case.name), "ns/op", value));
            }
        }
        rows
    }
}
