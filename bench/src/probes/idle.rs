//! Wake-ups of the probes while nothing happens, and their memory.

use std::time::Duration;

use esatto_schema::{DataSourceConfig, ProcessStatsConfig, SysStatsConfig};

use super::Bench;
use super::load::ping_pong;
use super::participants::{Probes, ftrace, ftrace_source, process_source, system_source};
use crate::options::Options;
use crate::row::{Of, Row};
use crate::service::participants::Kind;
use crate::service::process::{self, Rest};
use crate::stats;

/// Wake-ups are counted for this long.
const REST: Duration = Duration::from_secs(5);
/// Round trips of the load.
const ROUND_TRIPS: usize = 200_000;
const BUFFER_KB: u32 = 8192;

/// Figures of one round.
#[derive(Clone, Debug)]
struct Figures {
    /// Without a session.
    before: Rest,
    /// With a session whose event never comes.
    quiet: Rest,
    wakeups_per_s: f64,
    cpu_us_per_s: f64,
    /// At the end of the load.
    loaded: Rest,
    peak_bytes: u64,
}

pub(super) fn rows(options: &Options, bench: &Bench) -> Result<Vec<Row>, String> {
    let mut figures = [Vec::new(), Vec::new()];
    let rounds = options.rounds_or(3);
    for round in 1..=rounds {
        eprintln!("bench: probes idle, round {round} of {rounds}");
        for (kind, figures) in bench.probes.iter().zip(&mut figures) {
            figures.push(measure(bench, kind)?);
        }
    }
    let row = |case: &str, unit, value: fn(&Figures) -> f64| {
        let of = |kind: usize| stats::median(&figures[kind].iter().map(value).collect::<Vec<_>>());
        bench.row(case, unit, of)
    };
    Ok(vec![
        row("idle with ftrace only: wake-ups", "per s", |of| of.wakeups_per_s).reach(Of::Peer, 1.0),
        row("idle with ftrace only: CPU time", "us per s", |of| of.cpu_us_per_s),
        row("resident memory, no session", "kB", |of| kb(of.before.resident)).reach(Of::Peer, 1.0),
        row("resident memory, idle with ftrace", "kB", |of| kb(of.quiet.resident)).reach(Of::Peer, 1.0),
        row("resident memory, under load", "kB", |of| kb(of.loaded.resident)).reach(Of::Peer, 1.0),
        row("resident memory, largest under load", "kB", |of| kb(of.peak_bytes)).reach(Of::Peer, 1.0),
        row("anonymous memory, no session", "kB", |of| kb(of.before.anonymous)),
        row("anonymous memory, under load", "kB", |of| kb(of.loaded.anonymous)),
        row("threads, under load", "", |of| of.loaded.threads as f64),
    ])
}

fn kb(bytes: u64) -> f64 {
    bytes as f64 / 1000.0
}

fn measure(bench: &Bench, kind: &Kind) -> Result<Figures, String> {
    Probes::measure(bench, kind, |probes| {
        let before = process::rest(probes.id())?;
        // Only programs that write to the instance make this event.
        let quiet = ftrace(bench.instance()?, "ftrace/print", BUFFER_KB);
        let session = probes.record(vec![ftrace_source(quiet)])?;
        let (begin, cpu) = (process::rest(probes.id())?, probes.cpu_time()?);
        std::thread::sleep(REST);
        let (end, cpu) = (process::rest(probes.id())?, probes.cpu_time()?.saturating_sub(cpu));
        session.stop()?;
        let session = probes.record(everything(bench)?)?;
        ping_pong(0, ROUND_TRIPS)?;
        let loaded = process::rest(probes.id())?;
        let peak_bytes = process::peak(probes.id())?;
        let (recorded, _) = session.stop()?;
        if recorded.events < 2 * ROUND_TRIPS as u64 || recorded.system_packets == 0 || recorded.described == 0 {
            return Err("a data source has recorded nothing".to_owned());
        }
        let per_second = |value: f64| value / REST.as_secs_f64();
        Ok(Figures {
            before,
            quiet: end,
            wakeups_per_s: per_second((end.switches - begin.switches) as f64),
            cpu_us_per_s: per_second(cpu.as_secs_f64() * 1e6),
            loaded,
            peak_bytes,
        })
    })
}

/// Scheduling, processes and counters of the system at the same time.
fn everything(bench: &Bench) -> Result<Vec<DataSourceConfig>, String> {
    let processes = ProcessStatsConfig {
        scan_all_processes_on_start: Some(true),
        proc_stats_poll_ms: Some(250),
        ..ProcessStatsConfig::default()
    };
    let system = SysStatsConfig {
        meminfo_period_ms: Some(100),
        vmstat_period_ms: Some(100),
        stat_period_ms: Some(100),
        ..SysStatsConfig::default()
    };
    Ok(vec![
        ftrace_source(ftrace(bench.instance()?, "sched/sched_switch", BUFFER_KB)),
        process_source(processes),
        system_source(system),
    ])
}
