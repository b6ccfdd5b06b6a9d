//! How long a user waits: from the start of a session to its first event, and from its end to the
//! complete trace.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::Bench;
use super::load::Background;
use super::participants::{Probes, Session, ftrace, ftrace_source};
use crate::options::Options;
use crate::row::{Of, Row};
use crate::service::participants::Kind;
use crate::stats;

/// Sessions of a measurement, in a round. The first one does not count.
const SESSIONS: usize = 8;
/// Duration of a session.
const RECORDING: Duration = Duration::from_millis(400);
const BUFFER_KB: u32 = 2048;

/// Milliseconds.
#[derive(Clone, Debug, Default)]
struct Waits {
    first_event: Vec<f64>,
    trace: Vec<f64>,
}

pub(super) fn rows(options: &Options, bench: &Bench) -> Result<Vec<Row>, String> {
    let mut waits = [Waits::default(), Waits::default()];
    for round in 1..=options.rounds {
        eprintln!("bench: probes latency, round {round} of {}", options.rounds);
        for (kind, waits) in bench.probes.iter().zip(&mut waits) {
            measure(bench, kind, waits)?;
        }
    }
    let mut rows = Vec::new();
    for (case, waits) in [
        ("start of a session to its first event", waits.each_ref().map(|waits| &waits.first_event)),
        ("end of a session to the complete trace", waits.each_ref().map(|waits| &waits.trace)),
    ] {
        let row = |name: &str, of: stats::Statistic| bench.row(format!("{case}, {name}"), "ms", |kind| of(waits[kind]));
        rows.push(row("median", stats::median).reach(Of::Peer, 1.0));
        rows.push(row("min", stats::min));
    }
    Ok(rows)
}

fn measure(bench: &Bench, kind: &Kind, waits: &mut Waits) -> Result<(), String> {
    let naps = Background::naps();
    Probes::measure(bench, kind, |probes| {
        for number in 0..=SESSIONS {
            let consumer = probes.consumer()?;
            let config = ftrace(bench.instance()?, "sched/sched_switch", BUFFER_KB);
            let start_ns = boot_ns();
            let session = Session::enable(consumer, vec![ftrace_source(config)])?;
            std::thread::sleep(RECORDING);
            let (recorded, elapsed) = session.stop()?;
            let first_ns = recorded.first_event_ns.ok_or("no events")?;
            if number > 0 {
                waits.first_event.push(first_ns.saturating_sub(start_ns) as f64 / 1e6);
                waits.trace.push(elapsed.as_secs_f64() * 1e3);
            }
        }
        Ok(())
    })?;
    naps.stop()
}

fn boot_ns() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
