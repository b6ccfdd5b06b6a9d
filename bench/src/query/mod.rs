//! Group `query`: SQL over traces. Peers are DuckDB over the same Parquet, and Perfetto's trace
//! processor as WebAssembly.
//!
//! The programs of the workspace `query/` are built by cargo in that workspace and run as
//! processes, so the benches do not depend on DataFusion.

mod cluster;
mod engine;
mod many;
mod measured;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo;
use crate::options::Options;
use crate::read::{TRACE_PROCESSOR, run_pinned, traces};
use crate::row::{Of, Row};
use crate::stats;

use engine::Engine;
use measured::{gzipped, run, size_of};

const GROUP: &str = "query";
const DUCKDB: &str = "DuckDB 2.0.1";
const MB: f64 = 1e6;
/// Bytes of a trace of about ten million slices.
const TEN_MILLION_SLICES: u64 = 360_000_000;
/// Bytes of the traces that are exported.
const EXPORTED: u64 = 100_000_000;
/// Times that each engine answers in a round.
const ANSWERS: usize = 5;
/// The question.
const BY_NAME: &str = "select name, count(*) as n from slice group by name";

/// The programs.
struct Programs {
    query: PathBuf,
    cluster: PathBuf,
    /// The script that runs the trace processor; `None` if it is not there.
    trace_processor: Option<PathBuf>,
    /// The folder of DuckDB; `None` if it is not there.
    readers: Option<PathBuf>,
}

impl Programs {
    fn build() -> Result<Self, String> {
        eprintln!("bench: building the programs (of query/: a quarter of an hour, the first time)");
        let (query, cluster) = cargo::build_query()?;
        let script = cargo::root().join("../xtask/peers/tp");
        let is_there = Command::new(&script).arg("--version").output().is_ok_and(|output| output.status.success());
        if !is_there {
            eprintln!("bench: without {TRACE_PROCESSOR}: cargo xtask peers install ui");
        }
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let peers = std::env::var_os("PEERS_DIR").map_or_else(|| home.join(".cache/perfetto-peers"), PathBuf::from);
        let readers = peers.join(".readers").exists().then(|| peers.join("readers"));
        if readers.is_none() {
            eprintln!("bench: without {DUCKDB}: cargo xtask peers install readers");
        }
        Ok(Self { query, cluster, trace_processor: is_there.then_some(script), readers })
    }

    fn export(&self, trace: &Path, lake: &Path) -> Command {
        let mut command = Command::new(&self.query);
        command.arg("export").arg(trace).arg("--to").arg(lake).args([
            "--jobs",
            "1",
            "--quiet",
            "--memory-limit",
            "16G",
        ]);
        command
    }
}

pub(crate) fn run_group(options: &Options) -> Result<Vec<Row>, String> {
    let programs = Programs::build()?;
    // Below the target folder: there is more room than for temporary files.
    let target = cargo::target()?;
    let folder = tempfile::Builder::new()
        .prefix("bench-query")
        .tempdir_in(target)
        .map_err(|error| format!("folder: {error}"))?;
    let mut rows = Vec::new();
    if options.wants("aggregate") {
        rows.extend(aggregate(options, &programs, folder.path())?);
    }
    if options.wants("export") {
        for (name, make) in [("track events", traces::track_events as traces::Make), ("scheduling", traces::scheduling)]
        {
            rows.extend(export(options, &programs, folder.path(), name, make)?);
        }
    }
    if options.wants("traces") {
        rows.extend(many::thousand(options, &programs, folder.path())?);
    }
    if options.wants("growth") {
        rows.extend(many::growth(options, &programs, folder.path())?);
    }
    Ok(rows)
}

/// Counts ten million slices by name: over a lake and over the trace.
fn aggregate(options: &Options, programs: &Programs, folder: &Path) -> Result<Vec<Row>, String> {
    let (trace, lake) = (folder.join("ten-million.pftrace"), folder.join("ten-million"));
    eprintln!("bench: query, a trace of ten million slices");
    let bytes = traces::track_events(&trace, TEN_MILLION_SLICES)?;
    let rounds = options.rounds_or(3);
    run(&mut programs.export(&trace, &lake))?;

    let mut ours = Engine::esatto(&programs.query, &lake)?;
    let slices = ours.rows_of("select count(*) as n from slice")?;
    let slices: f64 = slices.last().and_then(|line| line.parse().ok()).ok_or("the lake has no slices")?;
    let mut peer = programs.readers.as_deref().map(|readers| Engine::duckdb(readers, &lake)).transpose()?;
    let (mut times, mut peer_times) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        eprintln!("bench: query, aggregate, warm, round {} of {rounds}", round + 1);
        // The first answer reads the files.
        let warm_up = usize::from(round == 0);
        times.extend(
            (0..ANSWERS + warm_up).map(|_| ours.time(BY_NAME)).collect::<Result<Vec<_>, _>>()?.split_off(warm_up),
        );
        if let Some(peer) = &mut peer {
            peer_times.extend(
                (0..ANSWERS + warm_up).map(|_| peer.time(BY_NAME)).collect::<Result<Vec<_>, _>>()?.split_off(warm_up),
            );
        }
    }
    if let Some(peer) = &mut peer {
        let (mut a, mut b) = (ours.rows_of(BY_NAME)?, peer.rows_of(BY_NAME)?);
        a.sort();
        b.sort();
        if a != b {
            return Err(format!("Esatto and {DUCKDB} have other rows: {a:?} and {b:?}"));
        }
    }
    drop((ours, peer));
    let million = slices / 1e6;
    let theirs = (!peer_times.is_empty()).then(|| stats::median(&peer_times));
    let label = |what: &str| format!("count by name, {million:.1} million slices: {what}");
    let mut rows = vec![
        Row::new(GROUP, label("lake, warm"), "s", stats::median(&times)).beside(DUCKDB, theirs).reach(Of::Peer, 1.0),
        Row::new(GROUP, label("lake, warm, of a second"), "s", stats::median(&times)).reach(Of::Value, 1.0),
    ];
    let _may_be_missing = std::fs::remove_dir_all(&lake);

    let (mut cold, mut peer_cold) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        eprintln!("bench: query, aggregate, cold, round {} of {rounds}", round + 1);
        cold.push(run_pinned(Command::new(&programs.query).arg(&trace).arg(BY_NAME).args(["--threads", "1"]))?.seconds);
        if let Some(script) = &programs.trace_processor {
            match run_pinned(Command::new(script).env("ESATTO_TP_OPTIMISE", "1").arg(&trace).arg(BY_NAME)) {
                Ok(run) => peer_cold.push(run.seconds),
                Err(error) => eprintln!("bench: {TRACE_PROCESSOR}: {error}"),
            }
        }
    }
    // As a speed, so that the reach is a factor.
    let speed = |times: &[f64]| (!times.is_empty()).then(|| bytes as f64 / MB / stats::median(times));
    rows.push(
        Row::new(GROUP, label("raw, cold"), "MB/s", speed(&cold).unwrap_or(0.0))
            .more_is_better()
            .beside(TRACE_PROCESSOR, speed(&peer_cold))
            .reach(Of::Peer, 4.0),
    );
    let mut in_memory = Engine::esatto(&programs.query, &trace)?;
    let times = (0..=ANSWERS).map(|_| in_memory.time(BY_NAME)).collect::<Result<Vec<_>, _>>()?.split_off(1);
    rows.push(Row::new(GROUP, label("raw, in memory"), "s", stats::median(&times)));
    drop(in_memory);
    let _may_be_missing = std::fs::remove_file(&trace);
    Ok(rows)
}

/// Exports a trace on one processor.
fn export(
    options: &Options,
    programs: &Programs,
    folder: &Path,
    name: &str,
    make: traces::Make,
) -> Result<Vec<Row>, String> {
    let (trace, lake) = (folder.join("exported.pftrace"), folder.join("exported"));
    let bytes = make(&trace, EXPORTED)? as f64;
    let rounds = options.rounds_or(3);
    let mut runs = Vec::new();
    for round in 0..rounds {
        eprintln!("bench: query, export, {name}, round {} of {rounds}", round + 1);
        let _may_be_missing = std::fs::remove_dir_all(&lake);
        runs.push(run(&mut programs.export(&trace, &lake))?);
    }
    let speeds: Vec<f64> = runs.iter().map(|run| bytes / MB / run.cpu_seconds).collect();
    let memory: Vec<f64> = runs.iter().map(|run| run.peak_bytes / bytes).collect();
    let (lake_bytes, zipped) = (size_of(&lake)?, gzipped(&trace)?);
    let label = |what: &str| format!("export, {name}, {:.0} MB: {what}", bytes / MB);
    let rows = vec![
        Row::new(GROUP, label("per second of a processor"), "MB/s", stats::median(&speeds))
            .more_is_better()
            .reach(Of::Value, 100.0),
        Row::new(GROUP, label("size"), "of gzip", lake_bytes / zipped).reach(Of::Value, 0.6),
        Row::new(GROUP, label("size"), "of the trace", lake_bytes / bytes),
        Row::new(GROUP, label("peak memory"), "of the trace", stats::median(&memory)),
    ];
    let _may_be_missing = (std::fs::remove_dir_all(&lake), std::fs::remove_file(&trace));
    Ok(rows)
}
