//! Part `hooks`: what traced calls cost, by state.

use std::process::Command;

use super::GROUP;
use crate::options::Options;
use crate::row::{Of, Row};
use crate::samples::{BATCHES, PAUSE_US, Samples, Time};
use crate::{cargo, stats, traced};

const IN_MEMORY: &str = "call without a socket";
const BLOCKING: &str = "blocking call";
const PAIR: &str = "slice pair";
const PAIR_OF_CALL: &str = "slice pair with the arguments of a call";

/// Messages and sides that a call without a socket passes hooks at: the request at both sides, and
/// the reply at the server.
const PASSES: f64 = 3.0;

/// The most that a state may add to a message at one side, in ns.
const NO_ADAPTER: f64 = 1.0;
const OFF: f64 = 2.0;

/// The most that a recorded call may take above two slice pairs, in ns.
const ABOVE_PAIRS: f64 = 10.0;

pub(super) fn run(options: &Options) -> Result<Vec<Row>, String> {
    let without = cargo::build_variant("bench-rpc-hooks", &[])?;
    let with = cargo::build_variant("bench-rpc-hooks", &["trace"])?;
    let states: [(_, &[&str]); 4] = [
        (&without, &[]),
        (&with, &["--adapter", "no"]),
        (&with, &["--session", "none"]),
        (&with, &["--session", "one"]),
    ];
    let mut samples = states.map(|_| Samples::new());
    let rounds = options.rounds_or(super::ROUNDS);
    for round in 1..=rounds {
        eprintln!("bench: rpc, hooks, round {round} of {rounds}");
        for ((program, args), samples) in states.iter().zip(&mut samples) {
            let mut command = Command::new(program);
            let results = traced::run(command.args(*args).args(["time", BATCHES, PAUSE_US]), || Ok(()))?;
            samples.add("bench-rpc-hooks", &results)?;
        }
    }
    let [compiled_out, no_adapter, off, on] = &samples;
    let mut rows = Vec::new();
    for (statistic, of) in stats::BOTH {
        let value = |samples: &Samples, case: &str, time| {
            samples.value(case, 1, time, of).ok_or_else(|| format!("{case} was not measured"))
        };
        let floor = value(compiled_out, IN_MEMORY, Time::Wall)?;
        let states = [("no adapter", no_adapter, Some(NO_ADAPTER)), ("off", off, Some(OFF)), ("recorded", on, None)];
        for (state, samples, most) in states {
            let ours = value(samples, IN_MEMORY, Time::Wall)?;
            rows.push(Row::new(GROUP, format!("{IN_MEMORY}, {state}, {statistic}"), "ns/call", ours).above(floor));
            let Some(most) = most else { continue };
            let case = format!("{state} - compiled out, {statistic}");
            let row = Row::new(GROUP, case, "ns/message and side", (ours - floor) / PASSES);
            rows.push(if statistic == "min" { row.reach(Of::Value, most) } else { row });
        }
        // The CPU time of both sides: both threads are on one CPU.
        let (idle, recorded) = (value(off, BLOCKING, Time::Cpu)?, value(on, BLOCKING, Time::Cpu)?);
        let (pair, pair_of_call) = (value(on, PAIR, Time::Wall)?, value(on, PAIR_OF_CALL, Time::Wall)?);
        rows.push(Row::new(GROUP, format!("{BLOCKING}, off, CPU time, {statistic}"), "ns/call", idle));
        let case = format!("{BLOCKING}, recorded - off, CPU time, {statistic}");
        let row = Row::new(GROUP, case, "ns/call", recorded - idle).above(2.0 * pair_of_call);
        rows.push(if statistic == "median" { row.reach(Of::Value, 2.0 * pair + ABOVE_PAIRS) } else { row });
        rows.push(Row::new(GROUP, format!("{PAIR}, {statistic}"), "ns", pair));
        rows.push(Row::new(GROUP, format!("{PAIR_OF_CALL}, {statistic}"), "ns", pair_of_call));
    }
    Ok(rows)
}
