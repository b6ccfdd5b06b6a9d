//! Part `tower`: a call through our layers of `tower`, beside the bare service and the layer of
//! `tower-http`.

use std::process::Command;

use super::GROUP;
use crate::options::Options;
use crate::row::{Of, Row};
use crate::samples::{BATCHES, PAUSE_US, Samples, Time};
use crate::{cargo, stats, traced};

const BARE: &str = "bare service";
/// A layer that changes the type of the response's body, and does nothing else.
const WRAPPED: &str = "wrapped body";
const TOWER_HTTP: &str = "tower-http";
const OURS: [&str; 3] = ["client", "server", "server, gRPC"];

/// The most that a layer may add to [`WRAPPED`] while no session records, in ns.
const OFF: f64 = 5.0;

pub(super) fn run(options: &Options) -> Result<Vec<Row>, String> {
    let program = cargo::build_variant("bench-rpc", &[])?;
    let (mut off, mut on) = (Samples::new(), Samples::new());
    let rounds = options.rounds_or(super::ROUNDS);
    for round in 1..=rounds {
        eprintln!("bench: rpc, tower, round {round} of {rounds}");
        for (samples, session) in [(&mut off, "none"), (&mut on, "one")] {
            let mut command = Command::new(&program);
            let results = traced::run(command.args(["--session", session, "time", BATCHES, PAUSE_US]), || Ok(()))?;
            samples.add("bench-rpc", &results)?;
        }
    }
    let mut rows = Vec::new();
    for (statistic, of) in stats::BOTH {
        let value = |samples: &Samples, case: &str| samples.value(case, 1, Time::Wall, of);
        let bare = value(&off, BARE).ok_or("the bare service was not measured")?;
        let wrapped = value(&off, WRAPPED).ok_or("the wrapped body was not measured")?;
        rows.push(Row::new(GROUP, format!("{WRAPPED}, {statistic}"), "ns/call", wrapped).above(bare));
        let beside = |row: Row| row.beside("tower-http, no subscriber", value(&off, TOWER_HTTP)).above(bare);
        for case in OURS {
            let Some(ours) = value(&off, case) else { continue };
            rows.push(beside(Row::new(GROUP, format!("{case}, no session, {statistic}"), "ns/call", ours)));
            let added =
                Row::new(GROUP, format!("{case}, no session - {WRAPPED}, {statistic}"), "ns/call", ours - wrapped);
            rows.push(if statistic == "min" { added.reach(Of::Value, OFF) } else { added });
        }
        for case in OURS {
            let Some(ours) = value(&on, case) else { continue };
            rows.push(beside(Row::new(GROUP, format!("{case}, recorded, {statistic}"), "ns/call", ours)));
        }
    }
    Ok(rows)
}
