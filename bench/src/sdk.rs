//! Group `sdk`: what a trace point costs, and how many bytes it leaves.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bench_harness::{FLOORS, MOCK, Plan, sample};
use serde::Deserialize;

use crate::lab::Lab;
use crate::options::Options;
use crate::row::Row;
use crate::trace::TrackEvents;
use crate::{cargo, stats};

const GROUP: &str = "sdk";
const PEER: &str = "perfetto-sdk 1.2.1";

/// Timed batches of a case per round.
const BATCHES: usize = 60;
/// Between batches: the service fetches some 30 KiB.
const PAUSE_US: u64 = 1000;
/// Operations from which bytes per operation are counted.
const COUNTED: u64 = 4000;

/// The order of the table.
const TIMED: [&str; 9] = [
    "disabled slice pair",
    "disabled instant with two arguments",
    "slice pair",
    "slice pair with u64 and 15-byte string",
    "counter",
    "instant",
    "slice pair, CPU time",
    "slice pair, two threads",
    "slice pair, two threads, CPU time",
];
const SIZED: [&str; 4] = ["slice pair", "slice pair with u64 and 15-byte string", "counter", "instant"];

/// A line that a measured program prints.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Samples { case: String, ns: Vec<f64> },
    Events { events: u64 },
}

/// One of the two sides.
#[derive(Debug)]
struct Sdk {
    name: &'static str,
    program: PathBuf,
    samples: BTreeMap<String, Vec<f64>>,
    sizes: BTreeMap<&'static str, TrackEvents>,
    emitted: u64,
    arrived: u64,
}

pub(crate) fn run(options: &Options) -> Result<Vec<Row>, String> {
    let ours = Sdk::build("esatto", "bench-sdk-esatto")?;
    let mut sdks = vec![ours];
    match Sdk::build(PEER, "bench-sdk-perfetto") {
        Ok(theirs) => sdks.push(theirs),
        Err(error) => eprintln!("bench: without {PEER}: {error}"),
    }
    let lab = Lab::start(options.traced.as_deref())?;
    let mut floors = BTreeMap::<&str, Vec<f64>>::new();
    let plan = Plan { batches: BATCHES, pause: Duration::from_micros(PAUSE_US) };
    for round in 1..=options.rounds {
        eprintln!("bench: sdk, round {round} of {}", options.rounds);
        for floor in FLOORS.iter().chain([&MOCK]) {
            floors.entry(floor.name).or_default().extend(sample(floor, plan).wall);
        }
        for sdk in &mut sdks {
            sdk.time(&lab)?;
        }
    }
    for sdk in &mut sdks {
        for case in SIZED {
            sdk.count(&lab, case)?;
        }
    }
    Ok(rows(&sdks, &floors))
}

impl Sdk {
    fn build(name: &'static str, package: &str) -> Result<Self, String> {
        eprintln!("bench: building {package}");
        let program = cargo::build(package)?;
        Ok(Self { name, program, samples: BTreeMap::new(), sizes: BTreeMap::new(), emitted: 0, arrived: 0 })
    }

    /// One round of all cases.
    fn time(&mut self, lab: &Lab) -> Result<(), String> {
        let mut command = lab.command(&self.program);
        command.args(["time", &BATCHES.to_string(), &PAUSE_US.to_string()]);
        let (results, trace) = lab.record(&mut command)?;
        for line in results.lines() {
            match self.parse(line)? {
                Line::Samples { case, ns } => self.samples.entry(case).or_default().extend(ns),
                Line::Events { events } => self.emitted += events,
            }
        }
        self.arrived += TrackEvents::of(&trace)?.count;
        Ok(())
    }

    /// The bytes of one case.
    fn count(&mut self, lab: &Lab, case: &'static str) -> Result<(), String> {
        let mut command = lab.command(&self.program);
        command.args(["count", case, &COUNTED.to_string(), &PAUSE_US.to_string()]);
        let (results, trace) = lab.record(&mut command)?;
        let events = TrackEvents::of(&trace)?;
        let emitted = match self.parse(results.trim_end())? {
            Line::Events { events } => events,
            Line::Samples { .. } => 0,
        };
        if events.count != emitted {
            return Err(format!("{}, {case}: {emitted} events were recorded, {} arrived", self.name, events.count));
        }
        self.sizes.insert(case, events);
        Ok(())
    }

    fn parse(&self, line: &str) -> Result<Line, String> {
        serde_json::from_str(line).map_err(|error| format!("{} printed '{line}': {error}", self.name))
    }

    fn bytes(&self, case: &str, bytes: fn(&TrackEvents) -> u64) -> f64 {
        self.sizes.get(case).map_or(0.0, |events| bytes(events) as f64 / COUNTED as f64)
    }

    fn lost_ppm(&self) -> f64 {
        self.emitted.saturating_sub(self.arrived) as f64 * 1e6 / self.emitted as f64
    }
}

fn rows(sdks: &[Sdk], floors: &BTreeMap<&str, Vec<f64>>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = |case: String, unit, value: &dyn Fn(&Sdk) -> f64| {
        rows.push(Row::new(GROUP, case, unit, value(&sdks[0])).beside(PEER, sdks.get(1).map(value)));
    };
    for (statistic, of) in [("median", stats::median as fn(&[f64]) -> f64), ("min", stats::min)] {
        for case in TIMED {
            let value = |sdk: &Sdk| of(sdk.samples.get(case).map_or(&[], Vec::as_slice));
            row(format!("{case}, {statistic}"), "ns/op", &value);
        }
    }
    for case in SIZED {
        row(format!("{case}, in the trace"), "bytes/op", &|sdk| sdk.bytes(case, |events| events.bytes));
        row(format!("{case}, as written"), "bytes/op", &|sdk| sdk.bytes(case, |events| events.bytes_of_producer));
    }
    row("events lost in all rounds".to_owned(), "ppm", &Sdk::lost_ppm);
    for floor in FLOORS.iter().chain([&MOCK]) {
        for (statistic, of) in [("median", stats::median as fn(&[f64]) -> f64), ("min", stats::min)] {
            let samples = floors.get(floor.name).map_or(&[][..], Vec::as_slice);
            rows.push(Row::new(GROUP, format!("floor: {}, {statistic}", floor.name), "ns/op", of(samples)));
        }
    }
    rows
}
