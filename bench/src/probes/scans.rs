//! CPU time of the probes for a look at all processes, and at the counters of the system.

use std::time::Duration;

use esatto_schema::{DataSourceConfig, ProcessStatsConfig, SysStatsConfig};

use super::Bench;
use super::load::Sleepers;
use super::participants::{Probes, process_source, system_source};
use super::recorded::Recorded;
use crate::options::Options;
use crate::row::{Of, Row};
use crate::service::participants::Kind;
use crate::stats;

/// Processes beside those that the machine has anyway.
const PROCESSES: usize = 1000;
/// Polls go on for this long.
const POLLING: Duration = Duration::from_secs(3);
const PROCESS_PERIOD_MS: u32 = 200;
const SYSTEM_PERIOD_MS: u32 = 20;

/// A config, and how often it did its work.
struct Case {
    name: &'static str,
    config: fn() -> DataSourceConfig,
    /// Takes the trace and the id of a process that sleeps.
    count: fn(&Recorded, u32) -> u64,
    /// True if the work is done at the start of the session, and then no more.
    is_at_start: bool,
}

const CASES: [Case; 6] = [
    Case {
        name: "process_stats scan of 1000 processes",
        config: || process_source(ProcessStatsConfig { scan_all_processes_on_start: Some(true), ..Default::default() }),
        count: |recorded, _| u64::from(recorded.described >= PROCESSES as u64),
        is_at_start: true,
    },
    Case {
        name: "process_stats poll of 1000 processes",
        config: || {
            process_source(ProcessStatsConfig { proc_stats_poll_ms: Some(PROCESS_PERIOD_MS), ..Default::default() })
        },
        count: |recorded, pid| recorded.polls_of(pid),
        is_at_start: false,
    },
    Case {
        name: "process_stats poll with run time and age",
        config: || {
            process_source(ProcessStatsConfig {
                proc_stats_poll_ms: Some(PROCESS_PERIOD_MS),
                record_process_age: Some(true),
                record_process_runtime: Some(true),
                ..Default::default()
            })
        },
        count: |recorded, pid| recorded.polls_of(pid),
        is_at_start: false,
    },
    Case {
        name: "sys_stats poll of meminfo, vmstat and stat",
        config: || {
            system_source(SysStatsConfig {
                meminfo_period_ms: Some(SYSTEM_PERIOD_MS),
                vmstat_period_ms: Some(SYSTEM_PERIOD_MS),
                stat_period_ms: Some(SYSTEM_PERIOD_MS),
                ..Default::default()
            })
        },
        count: |recorded, _| recorded.system_packets,
        is_at_start: false,
    },
    Case {
        name: "sys_stats poll of all groups but slab",
        config: || {
            let period = Some(SYSTEM_PERIOD_MS);
            system_source(SysStatsConfig {
                meminfo_period_ms: period,
                vmstat_period_ms: period,
                stat_period_ms: period,
                devfreq_period_ms: period,
                cpufreq_period_ms: period,
                buddyinfo_period_ms: period,
                diskstat_period_ms: period,
                psi_period_ms: period,
                thermal_period_ms: period,
                cpuidle_period_ms: period,
                gpufreq_period_ms: period,
                ..Default::default()
            })
        },
        count: |recorded, _| recorded.system_packets,
        is_at_start: false,
    },
    Case {
        name: "sys_stats poll of slab",
        config: || system_source(SysStatsConfig { slab_period_ms: Some(SYSTEM_PERIOD_MS), ..Default::default() }),
        count: |recorded, _| recorded.system_packets,
        is_at_start: false,
    },
];

pub(super) fn rows(options: &Options, bench: &Bench) -> Result<Vec<Row>, String> {
    eprintln!("bench: probes scans: starting {PROCESSES} processes");
    let sleepers = Sleepers::start(PROCESSES)?;
    let mut costs = vec![[Vec::new(), Vec::new()]; CASES.len()];
    for round in 1..=options.rounds {
        eprintln!("bench: probes scans, round {round} of {}", options.rounds);
        for (case, costs) in CASES.iter().zip(&mut costs) {
            for (kind, costs) in bench.probes.iter().zip(costs) {
                costs.push(measure(bench, kind, case, sleepers.last())?);
            }
        }
    }
    let mut rows = Vec::new();
    for (case, costs) in CASES.iter().zip(costs) {
        let row = |statistic: &str, of: stats::Statistic| {
            bench.row(format!("{}, {statistic}", case.name), "CPU us", |kind| of(&costs[kind]))
        };
        rows.push(row("median", stats::median).reach(Of::Peer, 0.5));
        rows.push(row("min", stats::min));
    }
    Ok(rows)
}

/// CPU time of one scan or poll, in microseconds.
fn measure(bench: &Bench, kind: &Kind, case: &Case, pid: u32) -> Result<f64, String> {
    Probes::measure(bench, kind, |probes| {
        let start = probes.cpu_time()?;
        let mut session = probes.record(vec![(case.config)()])?;
        session.flush()?;
        let cpu = if case.is_at_start {
            probes.cpu_time()?.saturating_sub(start)
        } else {
            // The first poll is left out: it opens files that stay open.
            let begin = probes.cpu_time()?;
            std::thread::sleep(POLLING);
            session.flush()?;
            probes.cpu_time()?.saturating_sub(begin)
        };
        let (recorded, _) = session.stop()?;
        match (case.count)(&recorded, pid) {
            0 => Err(format!("{} is not in the trace", case.name)),
            count => Ok(cpu.as_secs_f64() * 1e6 / count as f64),
        }
    })
}
