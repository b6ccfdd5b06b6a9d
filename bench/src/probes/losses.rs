//! Events that the kernel overwrites before the probes have read them.

use std::time::Duration;

use esatto_schema::FtraceConfig;

use super::Bench;
use super::load::ping_pong_everywhere;
use super::participants::{Probes, ftrace, ftrace_source};
use crate::options::Options;
use crate::row::{Of, Row};
use crate::service::participants::Kind;
use crate::stats;

/// Buffers of a CPU.
const BUFFERS_KB: [u32; 5] = [4, 16, 64, 256, 1024];
/// Period of reading: the shortest that a config can have.
const PERIOD_MS: u32 = 1;
/// Duration of the load.
const LOAD: Duration = Duration::from_millis(1500);

pub(super) fn rows(options: &Options, bench: &Bench) -> Result<Vec<Row>, String> {
    let mut losses = vec![[Vec::new(), Vec::new()]; BUFFERS_KB.len()];
    for round in 1..=options.rounds {
        eprintln!("bench: probes losses, round {round} of {}", options.rounds);
        for (&buffer_kb, losses) in BUFFERS_KB.iter().zip(&mut losses) {
            for (kind, losses) in bench.probes.iter().zip(losses) {
                losses.push(measure(bench, kind, buffer_kb)?);
            }
        }
    }
    let row = |(buffer_kb, losses): (u32, [Vec<f64>; 2])| {
        let case = format!("events lost at the highest rate, {buffer_kb} KiB per CPU, median");
        bench.row(case, "per mille", |kind| stats::median(&losses[kind])).reach(Of::Peer, 1.0)
    };
    Ok(BUFFERS_KB.into_iter().zip(losses).map(row).collect())
}

fn measure(bench: &Bench, kind: &Kind, buffer_kb: u32) -> Result<f64, String> {
    let config = ftrace(bench.instance()?, "sched/sched_switch", buffer_kb);
    let config = FtraceConfig { drain_period_ms: Some(PERIOD_MS), ..config };
    Probes::measure(bench, kind, |probes| {
        let session = probes.record(vec![ftrace_source(config)])?;
        ping_pong_everywhere(LOAD)?;
        let (recorded, _) = session.stop()?;
        if recorded.events == 0 {
            return Err("no events".to_owned());
        }
        Ok(recorded.lost_per_mille())
    })
}
