//! Part `system`: trace points that a tracing service in another process records, Perfetto's
//! `traced` or another one.

use bench_harness::Operation;

use super::contender::{COUNTED, Contender, Recorded, Spec};
use super::{GROUP, ratio};
use crate::options::Options;
use crate::row::{Of, Row};
use crate::samples::Time;
use crate::stats;
use crate::trace::TrackEvents;
use crate::traced::Traced;

const PERFETTO: &str = "perfetto-sdk";

const OURS: [Spec; 2] = [
    Spec::new("Counter", "bench-sdk-esatto").args(&["--clock", "counter"]),
    Spec::new("BootTime", "bench-sdk-esatto").args(&["--clock", "boot-time"]),
];
const PEER: Spec = Spec::new(PERFETTO, "bench-sdk-perfetto");

/// With the ratios to the peer that are asked for, in the order of ours.
const OPERATIONS: [(Operation, Option<[f64; 2]>); 5] = [
    (Operation::Pair, Some([0.2, 0.3])),
    (Operation::Arguments, Some([0.2, 0.2])),
    (Operation::Counter, Some([0.3, 0.3])),
    (Operation::Instant, None),
    (Operation::Flow, Some([0.3, 0.3])),
];

/// A contender with what became of its events in all rounds.
struct Party {
    contender: Contender,
    recorded: Recorded,
}

pub(super) fn rows(options: &Options) -> Result<Vec<Row>, String> {
    let traced = match Traced::start(options.traced.as_deref()) {
        Ok(traced) => traced,
        Err(error) => {
            eprintln!("bench: sdk without part system: {error}");
            return Ok(Vec::new());
        }
    };
    let party = |spec: &Spec| Ok(Party { contender: spec.build()?, recorded: Recorded::default() });
    let mut ours = OURS.iter().map(party).collect::<Result<Vec<_>, String>>()?;
    let peer = party(&PEER).inspect_err(|error| eprintln!("bench: without {PERFETTO}: {error}"));
    let mut peer = peer.ok();
    for round in 1..=options.rounds {
        eprintln!("bench: sdk, system, round {round} of {}", options.rounds);
        for party in ours.iter_mut().chain(&mut peer) {
            party.time(&traced)?;
        }
    }
    let mut rows = costs(&ours, peer.as_ref());
    let lost = |party: &Party| party.recorded.lost_ppm();
    for party in &ours {
        let row = Row::new(GROUP, format!("traced: events lost, {}", party.contender.name), "ppm", lost(party));
        rows.push(row.beside(PERFETTO, peer.as_ref().map(lost)));
    }
    for (operation, _) in OPERATIONS {
        let found = ours[0].contender.count(Some(&traced), operation)?;
        let theirs = peer.as_mut().map(|peer| peer.contender.count(Some(&traced), operation)).transpose()?;
        let bytes = |events: &TrackEvents| events.bytes as f64 / COUNTED as f64;
        let row = Row::new(GROUP, format!("traced: {}, in the trace", operation.name()), "bytes/op", bytes(&found));
        let row = row.beside(PERFETTO, theirs.as_ref().map(bytes));
        rows.push(if operation == Operation::Pair { row.reach(Of::Value, 34.0) } else { row });
    }
    rows.extend(reaches(&ours, peer.as_ref()));
    Ok(rows)
}

impl Party {
    fn time(&mut self, traced: &Traced) -> Result<(), String> {
        let Recorded { emitted, found } = self.contender.time(Some(traced))?;
        self.recorded.emitted += emitted;
        self.recorded.found.count += found.count;
        Ok(())
    }
}

fn costs(ours: &[Party], peer: Option<&Party>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (threads, time, with) in [(1, Time::Wall, ""), (2, Time::Cpu, ", two threads, CPU time")] {
        for (operation, _) in OPERATIONS {
            for Party { contender, .. } in ours {
                for (statistic, of) in stats::BOTH {
                    let Some(value) = contender.value(operation, threads, time, of) else { continue };
                    let case = format!("traced: {}, {}{with}, {statistic}", operation.name(), contender.name);
                    let theirs = peer.and_then(|peer| peer.contender.value(operation, threads, time, of));
                    rows.push(Row::new(GROUP, case, "ns/op", value).beside(PERFETTO, theirs));
                }
            }
        }
    }
    rows
}

/// The reaches of whole programs.
fn reaches(ours: &[Party], peer: Option<&Party>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (operation, reaches) in OPERATIONS {
        for (index, Party { contender, .. }) in ours.iter().enumerate() {
            let theirs = peer.and_then(|peer| peer.contender.value(operation, 1, Time::Wall, stats::median));
            let value = contender.value(operation, 1, Time::Wall, stats::median);
            let case = format!("traced: {}, {} ÷ {PERFETTO}, median", operation.name(), contender.name);
            rows.extend(ratio(case, value, theirs, reaches.map(|reaches| reaches[index])));
        }
    }
    for (operation, _) in OPERATIONS {
        for Party { contender, .. } in ours {
            let of_threads = |threads| contender.value(operation, threads, Time::Cpu, stats::median);
            let case = format!("traced: {}, {}, CPU time, two threads ÷ one, median", operation.name(), contender.name);
            rows.extend(ratio(case, of_threads(2), of_threads(1), Some(1.2)));
        }
    }
    rows
}
