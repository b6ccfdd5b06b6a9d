//! Group `fidl`: FIDL's wire format beside other formats, its calls beside those of `esatto-ipc`,
//! and the cost of hooks that are off.

use std::process::Command;

use crate::options::Options;
use crate::row::{Of, Row};
use crate::samples::{BATCHES, PAUSE_US, Samples, Time};
use crate::{cargo, stats, traced};

const GROUP: &str = "fidl";
const PACKAGE: &str = "bench-fidl";

/// Values that are encoded and decoded, with the message of the peers that has the same content.
const VALUES: [(&str, &str); 3] = [("struct", "struct"), ("table", "struct"), ("vector", "vector")];

const PEERS: [&str; 3] = ["protozero", "flatbuffers", "bincode"];

/// The most that hooks may add to a message at one side while the category is off, in ns.
const OFF: f64 = 2.0;

/// System calls vary by more than hooks cost, so only the second case has a reach.
const OVER_SOCKET: &str = "one-way call";
const IN_MEMORY: &str = "one-way call without a socket";

/// A one-way call passes hooks at both sides.
const PASSES: f64 = 2.0;

pub(crate) fn run(options: &Options) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    if options.wants("values") {
        rows.extend(values(options)?);
    }
    if options.wants("calls") {
        rows.extend(calls(options)?);
    }
    Ok(rows)
}

fn measure(samples: &mut Samples, program: &std::path::Path) -> Result<(), String> {
    let results = traced::run(Command::new(program).args(["time", BATCHES, PAUSE_US]), || Ok(()))?;
    samples.add(PACKAGE, &results).map(|_| ())
}

fn values(options: &Options) -> Result<Vec<Row>, String> {
    let program = cargo::build_variant(PACKAGE, &["peers"])?;
    let mut samples = Samples::new();
    for round in 1..=options.rounds {
        eprintln!("bench: fidl, values, round {round} of {}", options.rounds);
        measure(&mut samples, &program)?;
    }
    let mut rows = Vec::new();
    for what in ["encode", "decode"] {
        for (value, of_peers) in VALUES {
            for (statistic, of) in stats::BOTH {
                let time = |case: String| samples.value(&case, 1, Time::Wall, of);
                let case = format!("{what}, {value}");
                let ours = time(format!("{case}: fidl")).ok_or_else(|| format!("{case} was not measured"))?;
                let row = Row::new(GROUP, format!("{case}, {statistic}"), "ns", ours);
                let beside = |row: Row, peer: &&str| row.beside(peer, time(format!("{what}, {of_peers}: {peer}")));
                rows.push(PEERS.iter().fold(row, beside));
            }
        }
    }
    Ok(rows)
}

fn calls(options: &Options) -> Result<Vec<Row>, String> {
    let without = cargo::build_variant(PACKAGE, &[])?;
    let with = cargo::build_variant(PACKAGE, &["trace"])?;
    let (mut compiled_out, mut off) = (Samples::new(), Samples::new());
    for round in 1..=options.rounds {
        eprintln!("bench: fidl, calls, round {round} of {}", options.rounds);
        measure(&mut compiled_out, &without)?;
        measure(&mut off, &with)?;
    }
    let mut rows = Vec::new();
    for (statistic, of) in stats::BOTH {
        let value = |samples: &Samples, case: &str| {
            samples.value(case, 1, Time::Wall, of).ok_or_else(|| format!("{case} was not measured"))
        };
        let ipc = value(&compiled_out, "round trip: esatto-ipc")?;
        let ours = value(&compiled_out, "round trip: fidl")?;
        let row = Row::new(GROUP, format!("round trip, 16 B, {statistic}"), "ns/call", ours);
        rows.push(row.beside("esatto-ipc", Some(ipc)));
        for case in [OVER_SOCKET, IN_MEMORY] {
            let (floor, ours) = (value(&compiled_out, case)?, value(&off, case)?);
            rows.push(Row::new(GROUP, format!("{case}, off, {statistic}"), "ns/call", ours).above(floor));
            if case == IN_MEMORY {
                let case = format!("off - compiled out, {statistic}");
                let row = Row::new(GROUP, case, "ns/message and side", (ours - floor) / PASSES);
                rows.push(if statistic == "min" { row.reach(Of::Value, OFF) } else { row });
            }
        }
    }
    Ok(rows)
}
