//! A program that is measured, and its results.

use std::path::PathBuf;
use std::process::Command;

use bench_harness::Operation;

use crate::cargo;
use crate::samples::{BATCHES, PAUSE_US, Samples, Time};
use crate::stats::Statistic;
use crate::trace::TrackEvents;
use crate::traced::{self, Traced};

/// Operations from which bytes per operation are counted.
pub(crate) const COUNTED: u64 = 4000;

/// How to get a program, and how to run it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    pub(crate) features: &'static [&'static str],
    pub(crate) args: &'static [&'static str],
}

/// A program.
#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    program: PathBuf,
    args: &'static [&'static str],
    samples: Samples,
    folder: tempfile::TempDir,
}

/// Events that one run recorded, and events in its trace; empty for a program without a trace.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recorded {
    pub(crate) emitted: u64,
    pub(crate) found: TrackEvents,
}

impl Recorded {
    pub(crate) fn lost(&self) -> u64 {
        self.emitted.saturating_sub(self.found.count)
    }

    pub(crate) fn lost_ppm(&self) -> f64 {
        self.lost() as f64 * 1e6 / self.emitted.max(1) as f64
    }
}

impl Spec {
    /// A program that has no options.
    pub(crate) const fn new(name: &'static str, package: &'static str) -> Self {
        Self { name, package, features: &[], args: &[] }
    }

    pub(crate) const fn args(mut self, args: &'static [&'static str]) -> Self {
        self.args = args;
        self
    }

    pub(crate) const fn features(mut self, features: &'static [&'static str]) -> Self {
        self.features = features;
        self
    }

    pub(crate) fn build(&self) -> Result<Contender, String> {
        let program = cargo::build_variant(self.package, self.features)?;
        let folder = tempfile::tempdir().map_err(|error| format!("temporary folder: {error}"))?;
        Ok(Contender { name: self.name, program, args: self.args, samples: Samples::new(), folder })
    }
}

/// Builds peers; one that does not build is left out.
pub(crate) fn build_peers(specs: &[Spec]) -> Vec<Contender> {
    let build = |spec: &Spec| spec.build().inspect_err(|error| eprintln!("bench: without {}: {error}", spec.name)).ok();
    specs.iter().filter_map(build).collect()
}

/// A round of each peer; a peer that fails is left out of later rounds.
pub(crate) fn time_peers(peers: &mut Vec<Contender>, traced: Option<&Traced>) {
    peers.retain_mut(|peer| {
        let done = peer.time(traced);
        done.inspect_err(|error| eprintln!("bench: from here on without {}: {error}", peer.name)).is_ok()
    });
}

/// The first of the contenders with that name that has such samples.
pub(crate) fn find(
    contenders: &[Contender],
    name: &str,
    operation: Operation,
    threads: usize,
    time: Time,
    of: Statistic,
) -> Option<f64> {
    contenders
        .iter()
        .filter(|contender| contender.name == name)
        .find_map(|contender| contender.value(operation, threads, time, of))
}

impl Contender {
    /// One round of all cases: in the traced's service, or all by itself.
    pub(crate) fn time(&mut self, traced: Option<&Traced>) -> Result<Recorded, String> {
        self.run(traced, &["time", BATCHES, PAUSE_US])
    }

    /// So many operations of one case.
    pub(crate) fn count(&mut self, traced: Option<&Traced>, operation: Operation) -> Result<TrackEvents, String> {
        let recorded = self.run(traced, &["count", operation.name(), &COUNTED.to_string(), PAUSE_US])?;
        let Recorded { emitted, found } = recorded;
        if found.count != emitted {
            let case = operation.name();
            return Err(format!("{}, {case}: {emitted} events were recorded, {} arrived", self.name, found.count));
        }
        Ok(found)
    }

    /// Slice pairs without a pause, so many on each of so many threads.
    pub(crate) fn flood(
        &mut self,
        traced: Option<&Traced>,
        threads: usize,
        operations: u64,
    ) -> Result<Recorded, String> {
        self.run(traced, &["flood", &threads.to_string(), &operations.to_string()])
    }

    /// ns per operation of all rounds, if the contender has the case.
    pub(crate) fn value(&self, operation: Operation, threads: usize, time: Time, of: Statistic) -> Option<f64> {
        self.samples.value(operation.name(), threads, time, of)
    }

    fn run(&mut self, traced: Option<&Traced>, mode: &[&str]) -> Result<Recorded, String> {
        let (results, trace) = match traced {
            Some(traced) => {
                let mut command = traced.command(&self.program);
                traced.record(command.args(self.args).args(mode))?
            }
            None => {
                let file = self.folder.path().join("trace.pftrace");
                let _ = std::fs::remove_file(&file);
                let mut command = Command::new(&self.program);
                let results = traced::run(command.args(self.args).arg("--trace").arg(&file).args(mode), || Ok(()))?;
                (results, std::fs::read(&file).unwrap_or_default())
            }
        };
        let found = TrackEvents::of(&trace)?;
        Ok(Recorded { emitted: self.samples.add(self.name, &results)?, found })
    }
}
