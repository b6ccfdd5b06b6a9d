//! Time of encoding and decoding.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::options::Options;
use crate::protozero::GROUP;
use crate::row::{Of, Row};
use crate::{cargo, stats};

/// The order of the table, and the targets.
const ENCODING: [(&str, Option<(Of, f64)>); 9] = [
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

/// The floor that copies the same pieces without knowing their sizes beforehand, like every
/// encoder.
const FAIR_FLOOR: &str = "lengths unknown";

/// Cases that are also measured with the feature `compact`.
const COMPACT: [&str; 3] = ["flat, reused buffer", "nested, reused buffer", "packet, reused buffer"];

/// The same of decoding.
const DECODING: [(&str, Option<(Of, f64)>); 2] =
    [("all fields of traces", Some((Of::Peer, 1.5))), ("the same, text checked as UTF-8", None)];

/// Traces that are read, of `tests/traces`; not the one whose packets are compressed, of which
/// nothing could be decoded.
const TRACES: [&str; 4] = [
    "official-v56-track-events.pftrace",
    "official-v56-process-and-sys-stats.pftrace",
    "official-v56-ring-buffer-wrapped.pftrace",
    "official-v56-long-two-buffers.pftrace",
];

/// A line that a measured program prints.
#[derive(Debug, Deserialize)]
struct Line {
    case: String,
    contender: String,
    ns: Vec<f64>,
}

/// The contenders of a case and their samples; peers in the order in which they were printed.
#[derive(Clone, Debug, Default)]
struct Case {
    ours: Vec<f64>,
    floor: Option<Vec<f64>>,
    /// Others, by what distinguishes them.
    floors: Vec<(String, Vec<f64>)>,
    peers: Vec<(String, Vec<f64>)>,
}

pub(crate) fn rows(options: &Options) -> Result<Vec<Row>, String> {
    let rounds = options.rounds.to_string();
    let compact = measure("bench-protozero-encode", &["compact"], |command| command.arg(&rounds))?;
    let encoding = measure("bench-protozero-encode", &[], |command| command.arg(&rounds))?;
    let decoding = measure("bench-protozero-decode", &[], |command| command.arg(&rounds).args(traces()))?;
    let (mut rows, mut above) = (Vec::new(), Vec::new());
    for (name, reach) in ENCODING {
        let case = encoding.get(name).ok_or_else(|| unmeasured(name))?;
        for (statistic, of) in [("median", stats::median as fn(&[f64]) -> f64), ("min", stats::min)] {
            let row = |ours| Row::new(GROUP, format!("{name}, {statistic}"), "ns/op", ours);
            rows.push(case.row(row, of, reach));
            above.extend(case.floors.iter().map(|(floor, samples)| {
                let row = Row::new(GROUP, format!("above {floor}: {name}, {statistic}"), "ns/op", of(&case.ours));
                let row = row.above(of(samples));
                match reach {
                    Some((of, reach)) if floor == FAIR_FLOOR => row.reach(of, reach),
                    _ => row,
                }
            }));
        }
    }
    rows.extend(above);
    for name in COMPACT {
        let case = compact.get(name).ok_or_else(|| unmeasured(name))?;
        let row = |ours| Row::new(GROUP, format!("feature compact: {name}, median"), "ns/op", ours);
        rows.push(Case { floor: None, ..case.clone() }.row(row, stats::median, None));
    }
    for (name, reach) in DECODING {
        // The fewest nanoseconds per byte are the highest throughput.
        for (statistic, of) in [("median", stats::median as fn(&[f64]) -> f64), ("max", stats::min)] {
            let row = |ours| Row::new(GROUP, format!("decode: {name}, {statistic}"), "GB/s", ours).more_is_better();
            rows.push(decoding.get(name).ok_or_else(|| unmeasured(name))?.row(row, |ns| 1.0 / of(ns), reach));
        }
    }
    Ok(rows)
}

fn unmeasured(case: &str) -> String {
    format!("no figures of '{case}'")
}

impl Case {
    fn row(&self, row: impl Fn(f64) -> Row, of: impl Fn(&[f64]) -> f64, reach: Option<(Of, f64)>) -> Row {
        let mut row = row(of(&self.ours));
        for (peer, samples) in &self.peers {
            row = row.beside(peer, Some(of(samples)));
        }
        if let Some(floor) = &self.floor {
            row = row.above(of(floor));
        }
        match reach {
            Some((of, reach)) => row.reach(of, reach),
            None => row,
        }
    }
}

fn traces() -> Vec<PathBuf> {
    let folder = cargo::root().join("../tests/traces");
    TRACES.iter().map(|name| folder.join(name)).collect()
}

/// Runs a measured program; its cases by name.
fn measure(
    package: &str,
    features: &[&str],
    arguments: impl FnOnce(&mut Command) -> &mut Command,
) -> Result<BTreeMap<String, Case>, String> {
    eprintln!("bench: building {package} {}", features.join(" "));
    let mut command = Command::new(cargo::build_bin(package, package, features)?);
    arguments(&mut command).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("{package}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{package}: {}", output.status));
    }
    let mut cases = BTreeMap::<String, Case>::new();
    for text in String::from_utf8_lossy(&output.stdout).lines() {
        let line: Line = serde_json::from_str(text).map_err(|error| format!("{package} printed '{text}': {error}"))?;
        let case = cases.entry(line.case).or_default();
        match line.contender.as_str() {
            "esatto" => case.ours = line.ns,
            "floor" => case.floor = Some(line.ns),
            contender => match contender.strip_prefix("floor: ") {
                Some(floor) => case.floors.push((floor.to_owned(), line.ns)),
                None => case.peers.push((line.contender, line.ns)),
            },
        }
    }
    Ok(cases)
}
