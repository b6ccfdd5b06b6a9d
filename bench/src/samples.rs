//! Samples that measured programs print, and their statistics.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::stats::Statistic;

/// Timed batches of a case per round.
pub(crate) const BATCHES: &str = "60";
/// Between batches: the service fetches some 30 KiB.
pub(crate) const PAUSE_US: &str = "1000";

/// Which clock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Time {
    Wall,
    /// The threads' own.
    Cpu,
}

/// A line that a measured program prints.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Samples { case: String, threads: usize, wall: Vec<f64>, cpu: Vec<f64> },
    Events { events: u64 },
}

#[derive(Debug, Default)]
struct Sample {
    wall: Vec<f64>,
    cpu: Vec<f64>,
}

/// Times of all rounds, by case and number of threads.
#[derive(Debug, Default)]
pub(crate) struct Samples(BTreeMap<(String, usize), Sample>);

impl Samples {
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds the output of the program `name`. Returns the number of events that it reports.
    pub(crate) fn add(&mut self, name: &str, printed: &str) -> Result<u64, String> {
        let mut emitted = 0;
        for line in printed.lines() {
            match serde_json::from_str(line).map_err(|error| format!("{name} printed '{line}': {error}"))? {
                Line::Samples { case, threads, wall, cpu } => {
                    let sample = self.0.entry((case, threads)).or_default();
                    sample.wall.extend(wall);
                    sample.cpu.extend(cpu);
                }
                Line::Events { events } => emitted += events,
            }
        }
        Ok(emitted)
    }

    /// ns per operation of all rounds, if there is such a case.
    pub(crate) fn value(&self, case: &str, threads: usize, time: Time, of: Statistic) -> Option<f64> {
        let sample = self.0.get(&(case.to_owned(), threads))?;
        Some(of(match time {
            Time::Wall => &sample.wall,
            Time::Cpu => &sample.cpu,
        }))
    }
}
