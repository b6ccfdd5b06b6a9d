//! Perfetto's own command, `perfetto`, uses the service's consumer port in every way it knows, with our service and with
//! Perfetto's. What it does not know how to call (StartTracing, ChangeTraceConfig, GetTraceStats) is compared frame by frame in
//! the area `bad_input`.

mod background;
mod detached_sessions_live_on;
mod exclusive_sessions_end_others;
mod files;
mod priority_is_boosted_while_a_session_wants_it;
mod snapshots;
mod the_state_is_shown;
mod triggers;

use esatto_tests::workload::{self, Expected, Workload};
use esatto_tests::{Lab, Peer, Program, Side, Skip};
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

/// What all tests here need.
fn require() -> Result<(), Skip> {
    Peer::Official.require()?;
    Peer::TraceProcessor.require()
}

/// A config with a buffer, the data source of the applications, and `more`.
fn config(lab: &Lab, name: &str, more: &str) -> String {
    let content = format!("buffers {{ size_kb: 16384 fill_policy: RING_BUFFER }}\n{DATA_SOURCE}\n{more}\n");
    lab.write(name, content).display().to_string()
}

/// The path of a file in the lab, as an argument.
fn path(lab: &Lab, name: &str) -> String {
    lab.path(name).display().to_string()
}

/// Starts `perfetto` with a config of `more`, into the file `name`, and waits until its session runs.
fn recording(lab: &Lab, name: &str, more: &str) -> Program {
    let config = config(lab, &format!("{name}.cfg"), more);
    let running = lab.state().sessions_started;
    let program = lab.start("perfetto", &mut lab.perfetto(&["--txt", "-c", &config, "-o", &path(lab, name)]));
    lab.wait_for_sessions(running + 1);
    program
}

/// Runs an application to its end; all it emitted is with the service.
fn run_application(lab: &Lab) -> Expected {
    run_application_in(lab, 1)
}

/// The same in so many recordings, which begin one after the other: it waits for the last of them.
fn run_application_in(lab: &Lab, recordings: u32) -> Expected {
    let mut command = lab.application_command(Side::Ours, SHORT);
    let mut application = lab.start("producer", command.arg(recordings.to_string()));
    application.wait_ok();
    lab.wait_for_producers(0);
    Expected { pid: application.pid(), workload: SHORT, details: false }
}

/// Checks that a trace holds all that an application emitted.
fn assert_whole(trace: &Path, expected: Expected) {
    workload::assert_whole(trace, &[expected]);
}
