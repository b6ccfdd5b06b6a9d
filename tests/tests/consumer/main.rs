//! Perfetto's own command, `perfetto`, uses the service's consumer port in every way it knows, with
//! our service and with Perfetto's. The area `bad_input` compares the calls that it does not make
//! (StartTracing, ChangeTraceConfig, GetTraceStats) frame by frame.

mod background;
mod detached_sessions_live_on;
mod exclusive_sessions_end_other_sessions;
mod files;
mod priority_is_boosted_while_a_session_wants_it;
mod snapshots;
mod the_state_is_shown;
mod triggers;

use esatto_tests::workload::{self, Expected, Workload};
use esatto_tests::{Harness, Implementation, Peer, Program, Skip};
use std::path::Path;

/// Ends by itself, in less than a second.
const SHORT: Workload = Workload { threads: 2, rounds: 200, pause_us: 500 };

/// Does not end while a test runs.
const ENDLESS: Workload = Workload { threads: 1, rounds: 1_000_000, pause_us: 2000 };

const DATA_SOURCE: &str = r#"
data_sources { config {
  name: "track_event"
  track_event_config { enabled_categories: "rendering" }
} }
"#;

/// Requirements of all tests here.
fn require() -> Result<(), Skip> {
    Peer::Official.require()?;
    Peer::TraceProcessor.require()
}

/// A config with a buffer, the data source of the applications, and `more`.
fn config(harness: &Harness, name: &str, more: &str) -> String {
    let content = format!("buffers {{ size_kb: 16384 fill_policy: RING_BUFFER }}\n{DATA_SOURCE}\n{more}\n");
    harness.write(name, content).display().to_string()
}

/// The path of a file in the harness, as an argument.
fn path(harness: &Harness, name: &str) -> String {
    harness.path(name).display().to_string()
}

/// Starts `perfetto` with a config of `more`, into the file `name`, and waits until its session
/// runs.
fn recording(harness: &Harness, name: &str, more: &str) -> Program {
    let config = config(harness, &format!("{name}.cfg"), more);
    let running = harness.state().sessions_started;
    let program =
        harness.start("perfetto", &mut harness.perfetto(&["--txt", "-c", &config, "-o", &path(harness, name)]));
    harness.wait_for_sessions(running + 1);
    program
}

/// Runs an application to its end; all it emitted is with the service.
fn run_application(harness: &Harness) -> Expected {
    run_application_in(harness, 1)
}

/// The same in so many recordings, which begin one after the other: it waits for the last of them.
fn run_application_in(harness: &Harness, recordings: u32) -> Expected {
    let mut command = harness.application_command(Implementation::Ours, SHORT);
    let mut application = harness.start("producer", command.arg(recordings.to_string()));
    application.wait_ok();
    harness.wait_for_producers(0);
    Expected { pid: application.pid(), workload: SHORT, details: false }
}

/// Checks that a trace holds all that an application emitted.
fn assert_whole(trace: &Path, expected: Expected) {
    workload::assert_whole(trace, &[expected]);
}
