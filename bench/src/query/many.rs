//! Many traces: a thousand on several processors and on a cluster, and more and more small ones.
//!
//! All traces are names of one file, so that ten thousand of them take no space. Each is read as if
//! it were another one.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::cluster::Cluster;
use super::measured::{Run, run};
use super::{GROUP, MB, Programs};
use crate::options::Options;
use crate::read::traces;
use crate::row::{Of, Row};
use crate::stats;

/// Traces that are asked on one processor, on two, and on a cluster.
const THOUSAND: usize = 1000;
/// Bytes of each.
const BYTES: u64 = 5_000_000;
/// Bytes of a small trace.
const SMALL: u64 = 50_000;
/// Numbers of small traces.
const NUMBERS: [usize; 4] = [10, 100, 1000, 10_000];
/// Limit of the memory for a thousand traces: they do not all stay open.
const MEMORY: &str = "2G";
/// Limit for small traces: a thousand of them do not all stay open.
const SMALL_MEMORY: &str = "64M";
/// The question.
const SQL: &str = "select name, count(*) as n, sum(dur) as total from slice group by name order by total desc limit 10";

/// Makes a folder with a trace of so many bytes under so many names.
fn folder_of(folder: &Path, traces: usize, bytes: u64) -> Result<(PathBuf, u64), String> {
    let own = folder.join(format!("traces-{traces}"));
    let show = |error| format!("{}: {error}", own.display());
    std::fs::create_dir_all(&own).map_err(show)?;
    let first = own.join("t00000.pftrace");
    let bytes = traces::track_events(&first, bytes)?;
    for number in 1..traces {
        // A file can have only some ten thousands of names.
        std::fs::hard_link(&first, own.join(format!("t{number:05}.pftrace"))).map_err(show)?;
    }
    Ok((own, bytes))
}

fn ask(program: &Path, folder: &Path, memory: &str, args: &[&str]) -> Result<Run, String> {
    let mut command = Command::new(program);
    command.args(args).arg(folder.join("*.pftrace")).arg(SQL).args(["--format", "csv", "--memory-limit", memory]);
    run(&mut command)
}

/// One aggregate of a thousand traces.
pub(super) fn thousand(options: &Options, programs: &Programs, folder: &Path) -> Result<Vec<Row>, String> {
    let (own, bytes) = folder_of(folder, THOUSAND, BYTES)?;
    let cluster = Cluster::start(&programs.cluster, &own, 2)?;
    let (mut one, mut two, mut on_cluster) = (Vec::new(), Vec::new(), Vec::new());
    let rounds = options.rounds_or(1);
    for round in 0..rounds {
        eprintln!("bench: query, traces, round {} of {rounds}", round + 1);
        one.push(ask(&programs.query, &own, MEMORY, &["--threads", "1"])?);
        two.push(ask(&programs.query, &own, MEMORY, &["--threads", "2"])?);
        on_cluster.push(ask(&programs.query, &own, MEMORY, &["--cluster", &cluster.address])?);
    }
    let label = |what: &str| format!("{THOUSAND} traces of {:.1} MB, one aggregate: {what}", bytes as f64 / MB);
    let seconds = |runs: &[Run]| stats::median(&runs.iter().map(|run| run.seconds).collect::<Vec<_>>());
    let peak = |runs: &[Run]| runs.iter().map(|run| run.peak_bytes).fold(0.0, f64::max) / MB;
    let (a, b, c) = (seconds(&one), seconds(&two), seconds(&on_cluster));
    let rows = vec![
        Row::new(GROUP, label("1 thread"), "s", a),
        Row::new(GROUP, label("2 threads"), "s", b),
        Row::new(GROUP, label("cluster of two executors"), "s", c),
        // Linear is 2.
        Row::new(GROUP, label("1 thread / 2 threads"), "times", a / b).more_is_better().reach(Of::Value, 1.8),
        Row::new(GROUP, label("1 thread / cluster"), "times", a / c).more_is_better().reach(Of::Value, 1.8),
        Row::new(GROUP, label("cluster / 2 threads"), "times", c / b),
        Row::new(GROUP, label("peak memory, 2 threads"), "MB", peak(&two)),
        Row::new(GROUP, label("peak memory of an executor"), "MB", cluster.peak_bytes() / MB),
    ];
    drop(cluster);
    let _may_be_missing = std::fs::remove_dir_all(&own);
    Ok(rows)
}

/// More and more small traces.
pub(super) fn growth(options: &Options, programs: &Programs, folder: &Path) -> Result<Vec<Row>, String> {
    let rounds = options.rounds_or(3);
    let mut results = Vec::new();
    for number in NUMBERS {
        let (own, bytes) = folder_of(folder, number, SMALL)?;
        let mut runs = Vec::new();
        for round in 0..rounds {
            eprintln!("bench: query, growth, {number} traces, round {} of {rounds}", round + 1);
            runs.push(ask(&programs.query, &own, SMALL_MEMORY, &["--threads", "2"])?);
        }
        let seconds = stats::median(&runs.iter().map(|run| run.seconds).collect::<Vec<_>>());
        let peak = runs.iter().map(|run| run.peak_bytes).fold(0.0, f64::max);
        results.push((number, bytes, seconds, peak));
        let _may_be_missing = std::fs::remove_dir_all(&own);
    }
    let mut rows = Vec::new();
    for (number, bytes, seconds, peak) in &results {
        let label = |what: &str| format!("{number} traces of {:.0} kB: {what}", *bytes as f64 / 1e3);
        rows.push(Row::new(GROUP, label("time per trace"), "ms", seconds * 1e3 / *number as f64));
        rows.push(Row::new(GROUP, label("peak memory"), "MB", peak / MB));
    }
    if let [.., (many, _, before, small), (most, _, after, large)] = &results[..] {
        let label = |what: &str| format!("{many} to {most} traces: {what}");
        let factor = (after / *most as f64) / (before / *many as f64);
        rows.push(Row::new(GROUP, label("time per trace"), "times", factor).reach(Of::Value, 1.1));
        rows.push(Row::new(GROUP, label("peak memory"), "times", large / small).reach(Of::Value, 1.1));
    }
    Ok(rows)
}
