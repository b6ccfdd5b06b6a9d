//! CPU time of the probes per event of the scheduler.

use esatto_schema::FtraceConfig;
use esatto_schema::ftrace_config::CompactSchedConfig;

use super::Bench;
use super::load::ping_pong;
use super::participants::{Probes, ftrace, ftrace_source};
use crate::options::Options;
use crate::row::{Of, Row};
use crate::service::participants::Kind;
use crate::stats;

/// Round trips of a measurement: some seconds.
const ROUND_TRIPS: usize = 400_000;
/// Nothing is lost, although reading may have to wait for a CPU.
const BUFFER_KB: u32 = 32 << 10;

/// Encodings, with the reach.
const ENCODINGS: [(&str, bool, f64); 2] = [("compact", true, 0.5), ("not compact", false, 0.6)];

pub(super) fn rows(options: &Options, bench: &Bench) -> Result<Vec<Row>, String> {
    let mut costs = vec![[Vec::new(), Vec::new()]; ENCODINGS.len()];
    for round in 1..=options.rounds {
        eprintln!("bench: probes switches, round {round} of {}", options.rounds);
        for ((_, is_compact, _), costs) in ENCODINGS.iter().zip(&mut costs) {
            for (kind, costs) in bench.probes.iter().zip(costs) {
                costs.push(measure(bench, kind, *is_compact)?);
            }
        }
    }
    let mut rows = Vec::new();
    for ((name, _, reach), costs) in ENCODINGS.into_iter().zip(costs) {
        let row = |statistic: &str, of: stats::Statistic| {
            bench.row(format!("a million sched_switch, {name}, {statistic}"), "CPU ms", |kind| of(&costs[kind]))
        };
        rows.push(row("median", stats::median).reach(Of::Peer, reach));
        rows.push(row("min", stats::min));
    }
    Ok(rows)
}

/// CPU time of a million events, in milliseconds.
fn measure(bench: &Bench, kind: &Kind, is_compact: bool) -> Result<f64, String> {
    let config = FtraceConfig {
        compact_sched: Some(CompactSchedConfig { enabled: Some(is_compact), ..CompactSchedConfig::default() }),
        ..ftrace(bench.instance()?, "sched/sched_switch", BUFFER_KB)
    };
    Probes::measure(bench, kind, |probes| {
        let mut session = probes.record(vec![ftrace_source(config)])?;
        session.flush()?;
        let before = probes.cpu_time()?;
        ping_pong(0, ROUND_TRIPS)?;
        session.flush()?;
        let cpu = probes.cpu_time()?.saturating_sub(before);
        let (recorded, _) = session.stop()?;
        if recorded.lost > 0 || recorded.events < 2 * ROUND_TRIPS as u64 {
            return Err(format!("{} events, {} lost", recorded.events, recorded.lost));
        }
        Ok(cpu.as_secs_f64() * 1e9 / recorded.events as f64)
    })
}
