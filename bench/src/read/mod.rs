//! Group `read`: from a trace to its tables, and to a report that a browser shows. The peer is
//! Perfetto's trace processor as WebAssembly, in Node.js.
//!
//! Each program reads on one processor. The peer also runs a query that counts the slices, which
//! takes it some milliseconds.

mod children;
pub(crate) mod traces;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo;
use crate::options::Options;
use crate::row::{Of, Row};
use crate::stats;

use children::Run;
pub(crate) use children::run_pinned;

const GROUP: &str = "read";
/// The name of the peer.
pub(crate) const TRACE_PROCESSOR: &str = "trace processor v52 (wasm)";
const PEER: &str = TRACE_PROCESSOR;
const MB: f64 = 1e6;
/// Bytes of the trace of track events.
const TRACK_EVENTS: u64 = 500_000_000;
/// Bytes of the trace of switches.
const SCHEDULING: u64 = 200_000_000;
/// Bytes of the trace that shows whether memory grows faster than the file.
const LARGE: u64 = 2_000_000_000;
/// Bytes of a trace of about a million slices.
const MILLION_SLICES: u64 = 56_000_000;
/// Word that is searched in the report: part of the names of one slice in a hundred.
const WORD: &str = "kind 42";

/// The programs.
struct Programs {
    ours: PathBuf,
    esatto: PathBuf,
    /// The script that runs the trace processor; `None` if it is not there.
    peer: Option<PathBuf>,
}

const FILES: &[(&str, traces::Make, u64)] =
    &[("track events", traces::track_events, TRACK_EVENTS), ("scheduling", traces::scheduling, SCHEDULING)];

pub(crate) fn run(options: &Options) -> Result<Vec<Row>, String> {
    eprintln!("bench: building the programs");
    let script = cargo::root().join("../xtask/peers/tp");
    let is_there = Command::new(&script).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("bench: without {PEER}: cargo xtask peers ui");
    }
    let programs = Programs {
        ours: cargo::build("bench-read")?,
        esatto: cargo::build_shipped("esatto-cli", "esatto")?,
        peer: is_there.then_some(script),
    };
    let folder = tempfile::Builder::new().prefix("bench").tempdir().map_err(|error| format!("folder: {error}"))?;
    let mut rows = Vec::new();
    if options.wants("import") {
        let path = folder.path().join("trace.pftrace");
        for (name, make, bytes) in FILES {
            let bytes = make(&path, *bytes)?;
            rows.extend(import(options, &programs, &path, name, bytes)?);
        }
        match children::record_browser(&path) {
            Ok(bytes) => rows.extend(import(options, &programs, &path, "Chromium", bytes)?),
            Err(error) => eprintln!("bench: without a trace of Chromium: {error}"),
        }
        rows.extend(memory(&programs, &path)?);
    }
    if options.wants("report") {
        rows.extend(report(options, &programs, folder.path())?);
    }
    Ok(rows)
}

/// Measures how fast a trace is read, and the memory that this takes.
fn import(options: &Options, programs: &Programs, path: &Path, name: &str, bytes: u64) -> Result<Vec<Row>, String> {
    let (mut ours, mut peers): (Vec<Run>, Vec<Run>) = (Vec::new(), Vec::new());
    for round in 1..=options.rounds_or(3) {
        eprintln!("bench: read, {name}, round {round} of {}", options.rounds_or(3));
        ours.push(run_pinned(Command::new(&programs.ours).arg(path))?);
        if let Some(script) = &programs.peer {
            let mut command = Command::new(script);
            command.env("ESATTO_TP_OPTIMISE", "1").arg(path).arg("select count(*) from slice");
            match run_pinned(&mut command) {
                Ok(run) => peers.push(run),
                Err(error) => eprintln!("bench: {PEER}: {error}"),
            }
        }
    }
    let size = bytes as f64 / MB;
    let speed = |runs: &[Run]| (!runs.is_empty()).then(|| size / stats::median(&seconds(runs)));
    let memory = |runs: &[Run]| (!runs.is_empty()).then(|| peak(runs) / bytes as f64);
    let label = |what: &str| format!("{name}, {:.0} MB: {what}", size);
    Ok(vec![
        Row::new(GROUP, label("import"), "MB/s", speed(&ours).unwrap_or(0.0))
            .more_is_better()
            .beside(PEER, speed(&peers))
            .reach(Of::Peer, 4.0),
        Row::new(GROUP, label("peak memory"), "of the file", memory(&ours).unwrap_or(0.0))
            .beside(PEER, memory(&peers))
            .reach(Of::Value, 1.2),
    ])
}

/// Measures whether the memory of a file four times as large is four times as large.
fn memory(programs: &Programs, path: &Path) -> Result<Vec<Row>, String> {
    eprintln!("bench: read, a large file");
    let bytes = traces::track_events(path, LARGE)?;
    let large = run_pinned(Command::new(&programs.ours).arg(path))?;
    let label = format!("track events, {:.0} MB: peak memory", bytes as f64 / MB);
    Ok(vec![Row::new(GROUP, label, "of the file", large.peak_bytes / bytes as f64).reach(Of::Value, 1.2)])
}

fn seconds(runs: &[Run]) -> Vec<f64> {
    runs.iter().map(|run| run.seconds).collect()
}

fn peak(runs: &[Run]) -> f64 {
    stats::median(&runs.iter().map(|run| run.peak_bytes).collect::<Vec<_>>())
}

/// Measures the report of a million slices, and its page in a browser.
fn report(options: &Options, programs: &Programs, folder: &Path) -> Result<Vec<Row>, String> {
    let (trace, page) = (folder.join("million.pftrace"), folder.join("million.html"));
    traces::track_events(&trace, MILLION_SLICES)?;
    let mut runs = Vec::new();
    for round in 1..=options.rounds_or(3) {
        eprintln!("bench: read, report, round {round} of {}", options.rounds_or(3));
        let mut command = Command::new(&programs.esatto);
        runs.push(run_pinned(command.arg("report").arg(&trace).arg("--force").arg("-o").arg(&page))?);
    }
    let bytes = std::fs::metadata(&page).map_err(|error| format!("{}: {error}", page.display()))?.len();
    let case = |what: &str| format!("a million slices: {what}");
    let mut rows = vec![
        Row::new(GROUP, case("report"), "s", stats::median(&seconds(&runs))).reach(Of::Value, 5.0),
        Row::new(GROUP, case("its memory"), "MB", peak(&runs) / MB),
        Row::new(GROUP, case("size of the page"), "MB", bytes as f64 / MB).reach(Of::Value, 40.0),
    ];
    match children::frames(&page, WORD) {
        Ok(frames) => {
            for (what, unit, value, reach) in [
                ("ready in a browser", "s", frames.ready, 3.0),
                ("a frame while it pans, median", "ms", frames.median, 17.0),
                ("a frame while it pans, 99 %", "ms", frames.slowest, 34.0),
                ("search", "ms", frames.search, 200.0),
            ] {
                rows.push(Row::new(GROUP, case(what), unit, value).reach(Of::Value, reach));
            }
        }
        Err(error) => eprintln!("bench: without the browser: {error}"),
    }
    Ok(rows)
}
