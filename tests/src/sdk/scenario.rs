//! The test's side: starts the child and the service, and lets the trace be judged.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use super::recorder::{self, Recorder};
use super::trace::Trace;
use crate::{Harness, Implementation, Peer, Program, skip, wait_until};

/// In the environment of a child: the harness it belongs to.
const FOLDER: &str = "ESATTO_SDK_STAGE";

/// Which service records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The one inside the process.
    InProcess,
    /// Our `traced`.
    Ours,
    /// Perfetto's `traced`.
    Theirs,
}

impl Backend {
    fn named(name: &str) -> Self {
        match name {
            "in_process" => Self::InProcess,
            "ours" => Self::Ours,
            "theirs" => Self::Theirs,
            _ => panic!("{name} is no backend"),
        }
    }

    /// Implementation of the daemon, if there is one.
    const fn implementation(self) -> Option<Implementation> {
        match self {
            Self::InProcess => None,
            Self::Ours => Some(Implementation::Ours),
            Self::Theirs => Some(Implementation::Theirs),
        }
    }
}

/// A program that records, and the check of its trace.
#[derive(Debug)]
pub struct Scenario {
    record: fn(&Recorder),
    check: Option<fn(&Trace)>,
    tolerated: &'static [&'static str],
    dying: bool,
}

impl Scenario {
    /// A scenario without a trace.
    #[must_use]
    pub const fn new(record: fn(&Recorder)) -> Self {
        Self { record, check: None, tolerated: &[], dying: false }
    }

    /// Lets the trace processor judge the trace. Without a query by `check`, only for the errors
    /// that the trace processor reports.
    #[must_use]
    pub const fn check(mut self, check: fn(&Trace)) -> Self {
        self.check = Some(check);
        self
    }

    /// Lets these statistics of the trace processor differ from 0.
    #[must_use]
    pub const fn tolerating(mut self, stats: &'static [&'static str]) -> Self {
        self.tolerated = stats;
        self
    }

    /// Lets the child end as it likes: by a signal, or with a status that is not 0.
    #[must_use]
    pub const fn dying(mut self) -> Self {
        self.dying = true;
        self
    }
}

/// Runs a scenario: for [`scenario!`](crate::scenario!).
///
/// # Panics
///
/// The child fails, or the check does.
pub fn run(on: &str, module: &str, scenario: &Scenario) {
    let backend = Backend::named(on);
    if let Some(folder) = std::env::var_os(FOLDER) {
        let recorder = Recorder::new(backend, Harness::join(PathBuf::from(folder)));
        recorder.save(recorder::STARTED, "");
        (scenario.record)(&recorder);
        return;
    }
    skip(|| {
        if scenario.check.is_some() {
            Peer::TraceProcessor.require()?;
        }
        if backend == Backend::Theirs {
            Peer::Official.require()?;
        }
        // libtest's names begin below the crate.
        let module = module.split_once("::").map_or("", |(_, rest)| rest);
        parent(backend, &format!("{module}::{on}"), scenario);
        Ok(())
    });
}

fn parent(backend: Backend, test: &str, scenario: &Scenario) {
    let harness = Harness::new();
    let mut service = backend.implementation().map(|implementation| harness.service(implementation));
    // This path finds the program even if it is being built again meanwhile.
    let mut command = harness.command("/proc/self/exe");
    command.arg0(std::env::current_exe().expect("the test knows its own path"));
    command.args(["--exact", test, "--nocapture"]).env(FOLDER, harness.folder());
    let mut child = harness.start("child", &mut command);
    let status = wait_until(&format!("{test} has ended"), || {
        serve(&harness, backend, &mut service);
        (!child.is_running()).then(|| child.wait())
    });
    let log = child.log();
    assert!(status.success() || scenario.dying, "{test}: {status}\n{log}");
    assert!(harness.path(recorder::STARTED).exists(), "{test} is not the name of a test\n{log}");
    if let Some(check) = scenario.check {
        let trace = Trace::new(harness.folder(), recorder::TRACE, scenario.tolerated);
        check(&trace);
        trace.assert_judged();
    }
}

/// Carries out the child's requests for the service.
fn serve(harness: &Harness, backend: Backend, service: &mut Option<Program>) {
    if harness.path(recorder::STOP_SERVICE).exists() {
        if let Some(mut service) = service.take() {
            service.kill();
        }
        std::fs::remove_file(harness.path(recorder::STOP_SERVICE)).expect("the request can be removed");
    }
    if harness.path(recorder::START_SERVICE).exists() {
        *service = backend.implementation().map(|implementation| harness.service(implementation));
        std::fs::remove_file(harness.path(recorder::START_SERVICE)).expect("the request can be removed");
    }
}
