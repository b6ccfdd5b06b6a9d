//! Part `losses`: slice pairs back to back, with default settings, until a service cannot follow;
//! and the reports of the losses.

use bench_harness::Operation;

use super::GROUP;
use super::contender::{Contender, Recorded, Spec};
use crate::options::Options;
use crate::row::{Of, Row};
use crate::samples::Time;
use crate::stats;
use crate::traced::Traced;

const PERFETTO: &str = "perfetto-sdk";

/// Slice pairs of each thread and round. The events of two threads fit into the buffer of a
/// session.
const PAIRS: u64 = 1_000_000;

/// Where, with ours and the peer.
const PLACES: [(&str, Spec, Spec); 2] = [
    (
        "in-process",
        Spec::new("esatto", "bench-sdk-esatto").args(&["--place", "in-process"]),
        Spec::new(PERFETTO, "bench-sdk-perfetto").args(&["--place", "in-process"]),
    ),
    ("traced", Spec::new("esatto", "bench-sdk-esatto"), Spec::new(PERFETTO, "bench-sdk-perfetto")),
];

/// A contender with what became of its events in all rounds.
struct Party {
    contender: Contender,
    rounds: Vec<Recorded>,
}

pub(super) fn rows(options: &Options) -> Result<Vec<Row>, String> {
    let traced = Traced::start(options.traced.as_deref());
    let mut rows = Vec::new();
    for (place, ours, peer) in PLACES {
        let traced = match (&traced, place) {
            (_, "in-process") => None,
            (Ok(traced), _) => Some(traced),
            (Err(error), _) => {
                eprintln!("bench: sdk, losses, without {place}: {error}");
                continue;
            }
        };
        for threads in [1, 2] {
            let mut ours = Party::build(&ours)?;
            let peer = Party::build(&peer).inspect_err(|error| eprintln!("bench: without {PERFETTO}: {error}"));
            let mut peer = peer.ok();
            for round in 1..=options.rounds {
                eprintln!("bench: sdk, losses, {place}, threads: {threads}, round {round} of {}", options.rounds);
                for party in [&mut ours].into_iter().chain(&mut peer) {
                    let recorded = party.contender.flood(traced, threads, PAIRS)?;
                    party.rounds.push(recorded);
                }
            }
            let threads_text = if threads == 1 { "one thread" } else { "two threads" };
            let row = |what: &str, unit, value: &dyn Fn(&Party) -> f64| {
                let row = Row::new(GROUP, format!("full speed, {place}, {threads_text}: {what}"), unit, value(&ours));
                row.beside(PERFETTO, peer.as_ref().map(value))
            };
            let cost = |time| {
                move |party: &Party| party.contender.value(Operation::Pair, threads, time, stats::median).unwrap_or(0.0)
            };
            rows.push(row("slice pair, median", "ns/op", &cost(Time::Wall)));
            rows.push(row("slice pair, CPU time, median", "ns/op", &cost(Time::Cpu)));
            rows.push(row("events recorded", "events", &|party| party.sum(|round| round.emitted)));
            rows.push(row("events lost", "events", &|party| party.sum(Recorded::lost)));
            rows.push(row("of a million events", "lost", &|party| {
                party.sum(Recorded::lost) * 1e6 / party.sum(|round| round.emitted)
            }));
            rows.push(row("marks of a loss in the trace", "packets", &|party| party.sum(|round| round.found.marks)));
            rows.push(row("losses counted by the service", "losses", &|party| party.sum(|round| round.found.counted)));
            let unseen = row("lost without a mark or a count", "events", &|party| {
                party.sum(|round| if round.found.marks + round.found.counted == 0 { round.lost() } else { 0 })
            });
            rows.push(unseen.reach(Of::Value, 0.0));
        }
    }
    Ok(rows)
}

impl Party {
    fn build(spec: &Spec) -> Result<Self, String> {
        Ok(Self { contender: spec.build()?, rounds: Vec::new() })
    }

    fn sum(&self, of: impl Fn(&Recorded) -> u64) -> f64 {
        self.rounds.iter().map(of).sum::<u64>() as f64
    }
}
