//! Part `calls`: calls over a UNIX socket, beside a bare ping-pong and four libraries.

use std::process::Command;

use super::GROUP;
use crate::options::Options;
use crate::row::{Of, Row};
use crate::samples::{Samples, Time};
use crate::{cargo, stats};

/// Our styles, with the ping-pong that waits in the same way.
const OURS: [(&str, &str); 3] = [("Handler", "bare"), ("async fn", "bare"), ("async fn, tokio", "bare, tokio")];

const PEERS: [&str; 5] = ["ttrpc", "ttrpc, async", "tarpc", "capnp-rpc", "tonic"];

/// Cases, and the number of connections.
const CASES: [(&str, usize); 10] = [
    ("round trip, 16 B", 1),
    ("round trip, 1 KiB", 1),
    ("round trip, 64 KiB", 1),
    ("round trip, 16 B", 64),
    ("round trip, 1 KiB", 64),
    ("round trip, 64 KiB", 64),
    ("one-way, 16 B", 1),
    ("one-way, 1 KiB", 1),
    ("one-way, 64 KiB", 1),
    ("one-way, 16 B", 64),
];

/// The most that a call may take, above the bare ping-pong.
const MOST: f64 = 1.5;

/// Timed batches of a case in a round.
const BATCHES: &str = "20";

pub(super) fn run(options: &Options) -> Result<Vec<Row>, String> {
    let program = cargo::build_variant("bench-rpc-peers", &[])?;
    let mut samples = Samples::new();
    let rounds = options.rounds_or(super::ROUNDS);
    for round in 1..=rounds {
        eprintln!("bench: rpc, calls, round {round} of {rounds}");
        let output = Command::new(&program)
            .arg(BATCHES)
            .stderr(std::process::Stdio::inherit())
            .output()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        if !output.status.success() {
            return Err(format!("{}: {}", program.display(), output.status));
        }
        samples.add("bench-rpc-peers", &String::from_utf8_lossy(&output.stdout))?;
    }
    let mut rows = Vec::new();
    for (case, connections) in CASES {
        let plural = if connections == 1 { "" } else { "s" };
        for (statistic, of) in stats::BOTH {
            let value = |library: &str| {
                let ns = samples.value(&format!("{library}: {case}"), connections, Time::Wall, of);
                ns.map(|ns| ns / 1000.0)
            };
            for (style, floor) in OURS {
                let floor = value(floor).ok_or("the bare ping-pong was not measured")?;
                let Some(ours) = value(style) else { continue };
                let name = format!("{style}: {case}, {connections} connection{plural}, {statistic}");
                let row = Row::new(GROUP, name, "µs/call", ours);
                let row = PEERS.iter().fold(row, |row, peer| row.beside(peer, value(peer))).above(floor);
                // With many threads, the minimum is a moment in which few of them ran.
                rows.push(if statistic == "median" { row.reach(Of::Floor, MOST) } else { row });
            }
        }
    }
    Ok(rows)
}
