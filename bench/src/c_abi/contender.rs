//! The program with one of the libraries, and its results.

use std::path::PathBuf;
use std::process::Command;

use crate::samples::{BATCHES, PAUSE_US, Samples, Time};
use crate::stats::Statistic;
use crate::trace::TrackEvents;

/// Of all events, in a round: on a busy machine the service may come too late. A batch that loses
/// events does not show their cost.
const MAX_LOST: f64 = 0.01;

/// See the module.
#[derive(Debug)]
pub(crate) struct Contender {
    name: &'static str,
    program: PathBuf,
    /// The folder of the library.
    library: PathBuf,
    samples: Samples,
}

impl Contender {
    pub(crate) const fn new(name: &'static str, program: PathBuf, library: PathBuf) -> Self {
        Self { name, program, library, samples: Samples::new() }
    }

    /// One round of all cases. The events have to arrive in the trace.
    pub(crate) fn time(&mut self) -> Result<(), String> {
        let folder = tempfile::tempdir().map_err(|error| format!("temporary folder: {error}"))?;
        let trace = folder.path().join("trace.pftrace");
        let mut command = Command::new(&self.program);
        command.env("LD_LIBRARY_PATH", &self.library).arg(&trace).args([BATCHES, PAUSE_US]);
        let output = command.output().map_err(|error| format!("{}: {error}", self.program.display()))?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}, {}: {error}", self.name, output.status));
        }
        let emitted = self.samples.add(self.name, &String::from_utf8_lossy(&output.stdout))?;
        let trace = std::fs::read(&trace).map_err(|error| format!("{}: {error}", trace.display()))?;
        let found = TrackEvents::of(&trace)?.count;
        let lost = emitted.saturating_sub(found);
        if found > emitted || lost as f64 > MAX_LOST * emitted as f64 {
            return Err(format!("{}: {emitted} events were recorded, {found} arrived", self.name));
        }
        if lost > 0 {
            eprintln!("bench: {}: {lost} of {emitted} events were lost: the machine is busy", self.name);
        }
        Ok(())
    }

    /// ns per operation of all rounds, if there is such a case.
    pub(crate) fn value(&self, case: &str, threads: usize, time: Time, of: Statistic) -> Option<f64> {
        self.samples.value(case, threads, time, of)
    }
}
