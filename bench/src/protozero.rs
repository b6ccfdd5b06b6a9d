//! Group `protozero`: encoding and decoding beside other crates for protobuf.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::options::Options;
use crate::row::{Of, Row};
use crate::{cargo, stats};

const GROUP: &str = "protozero";

/// The order of the table, and how far above the floor a case may be.
const TIMED: [(&str, Option<(Of, f64)>); 9] = [
    ("flat, 64 MiB working set", Some((Of::Floor, 1.3))),
    ("flat, reused buffer", None),
    ("flat, encode only, reused buffer", None),
    ("nested, 64 MiB working set", Some((Of::Floor, 1.6))),
    ("nested, reused buffer", None),
    ("nested, encode only, reused buffer", None),
    ("packet, reused buffer", None),
    ("packet, encode only, reused buffer", None),
    ("packet, 4 KiB chunks with patches", Some((Of::Peer, 1.1))),
];

/// A line that the measured program prints.
#[derive(Debug, Deserialize)]
struct Line {
    case: String,
    side: String,
    ns: Vec<f64>,
}

/// The sides of a case and their samples; peers in the order in which they were printed.
#[derive(Debug, Default)]
struct Case {
    ours: Vec<f64>,
    floor: Option<Vec<f64>>,
    peers: Vec<(String, Vec<f64>)>,
}

pub(crate) fn run(options: &Options) -> Result<Vec<Row>, String> {
    eprintln!("bench: building bench-protozero-encode");
    let program = cargo::build("bench-protozero-encode")?;
    let cases = measure(Command::new(program).arg(options.rounds.to_string()))?;
    let mut rows = Vec::new();
    for (statistic, of) in [("median", stats::median as fn(&[f64]) -> f64), ("min", stats::min)] {
        for (name, reach) in TIMED {
            let case = cases.get(name).ok_or_else(|| format!("bench-protozero-encode did not measure '{name}'"))?;
            let mut row = Row::new(GROUP, format!("{name}, {statistic}"), "ns/op", of(&case.ours));
            for (peer, samples) in &case.peers {
                row = row.beside(peer, Some(of(samples)));
            }
            if let Some(floor) = &case.floor {
                row = row.above(of(floor));
            }
            if let Some((of, reach)) = reach {
                row = row.reach(of, reach);
            }
            rows.push(row);
        }
    }
    Ok(rows)
}

fn measure(command: &mut Command) -> Result<BTreeMap<String, Case>, String> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    if !output.status.success() {
        return Err(format!("{:?}: {}", command.get_program(), output.status));
    }
    let mut cases = BTreeMap::<String, Case>::new();
    for text in String::from_utf8_lossy(&output.stdout).lines() {
        let line: Line = serde_json::from_str(text).map_err(|error| format!("'{text}': {error}"))?;
        let case = cases.entry(line.case).or_default();
        match line.side.as_str() {
            "esatto" => case.ours = line.ns,
            "floor" => case.floor = Some(line.ns),
            _ => case.peers.push((line.side, line.ns)),
        }
    }
    Ok(cases)
}
