//! Part `tracing`: spans of `tracing`, through our layer and our subscriber, beside other layers
//! and subscribers that do nothing.

use bench_harness::Operation;

use super::contender::{Contender, Spec, build_peers, find, time_peers};
use super::{GROUP, ratio};
use crate::options::Options;
use crate::row::{Of, Row};
use crate::samples::Time;
use crate::stats::{self, Statistic};

const LAYER: &str = "layer";
const SUBSCRIBER: &str = "subscriber";
const LAYER_IDLE: &str = "layer, no session";
const SUBSCRIBER_IDLE: &str = "subscriber, no session";

const OURS: [Spec; 4] = [
    ours(LAYER, &["--with", "layer"]),
    ours(SUBSCRIBER, &["--with", "subscriber"]),
    ours(LAYER_IDLE, &["--with", "layer", "--session", "none"]),
    ours(SUBSCRIBER_IDLE, &["--with", "subscriber", "--session", "none"]),
];

const fn ours(name: &'static str, args: &'static [&'static str]) -> Spec {
    Spec::new(name, "bench-sdk-tracing-esatto").args(args)
}

const PERFETTO: &str = "tracing-perfetto-sdk";
const PERFETTO_IDLE: &str = "the same, no session";
const REGISTRY: &str = "Registry, no-op layer";
const NO_OP: &str = "no-op subscriber";

const PEERS: [Spec; 5] = [
    Spec::new(PERFETTO, "bench-sdk-tracing-perfetto-sdk"),
    Spec::new(PERFETTO_IDLE, "bench-sdk-tracing-perfetto-sdk").args(&["--session", "none"]),
    Spec::new("tracing-perfetto", "bench-sdk-tracing-perfetto"),
    Spec::new(REGISTRY, "bench-sdk-tracing").args(&["--subscriber", "registry"]),
    Spec::new(NO_OP, "bench-sdk-tracing").args(&["--subscriber", "no-op"]),
];

/// With their names here.
const OPERATIONS: [(Operation, &str); 4] = [
    (Operation::Pair, "span"),
    (Operation::Arguments, "span with u64 and 15-byte string"),
    (Operation::Enter, "span entered and left"),
    (Operation::Instant, "event"),
];

pub(super) fn rows(options: &Options) -> Result<Vec<Row>, String> {
    let mut ours = OURS.iter().map(Spec::build).collect::<Result<Vec<Contender>, _>>()?;
    let mut peers = build_peers(&PEERS);
    for round in 1..=options.rounds {
        eprintln!("bench: sdk, tracing, round {round} of {}", options.rounds);
        for contender in &mut ours {
            contender.time(None)?;
        }
        time_peers(&mut peers, None);
    }
    let mut rows = Vec::new();
    for (threads, time, with) in [(1, Time::Wall, ""), (2, Time::Cpu, ", two threads, CPU time")] {
        for (operation, what) in OPERATIONS {
            for contender in &ours {
                for (statistic, of) in stats::BOTH {
                    let Some(value) = contender.value(operation, threads, time, of) else { continue };
                    let case = format!("{what}, {}{with}, {statistic}", contender.name);
                    let beside = |row: Row, peer: &Spec| {
                        row.beside(peer.name, find(&peers, peer.name, operation, threads, time, of))
                    };
                    rows.push(PEERS.iter().fold(Row::new(GROUP, case, "ns/op", value), beside));
                }
            }
        }
    }
    rows.extend(reaches(&ours, &peers));
    Ok(rows)
}

/// The reaches of spans.
fn reaches(ours: &[Contender], peers: &[Contender]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (statistic, of) in stats::BOTH {
        let is_median = statistic == "median";
        let value = |contenders: &[Contender], name: &str, operation, of: Statistic| {
            find(contenders, name, operation, 1, Time::Wall, of)
        };
        for (operation, what) in OPERATIONS {
            for name in [LAYER, SUBSCRIBER] {
                let case = format!("{what}, {name} ÷ {PERFETTO}, {statistic}");
                let theirs = value(peers, PERFETTO, operation, of);
                rows.extend(ratio(case, value(ours, name, operation, of), theirs, is_median.then_some(0.25)));
            }
        }
        for (operation, what) in OPERATIONS {
            // The registry's own cost does not count for the layer.
            for (name, floor) in [(SUBSCRIBER_IDLE, NO_OP), (LAYER_IDLE, REGISTRY), (LAYER_IDLE, NO_OP)] {
                let values = value(ours, name, operation, of).zip(value(peers, floor, operation, of));
                let Some((ours, theirs)) = values else { continue };
                let row = Row::new(GROUP, format!("{what}, {name} - {floor}, {statistic}"), "ns/op", ours - theirs);
                let is_asked_for = is_median && (name, floor) != (LAYER_IDLE, NO_OP);
                rows.push(if is_asked_for { row.reach(Of::Value, 10.0) } else { row });
            }
        }
    }
    rows
}
