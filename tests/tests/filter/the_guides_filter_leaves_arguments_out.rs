//! The commands that the guide for operators prints.

use std::path::Path;
use std::process::Command;

use esatto_tests::workload::{CONFIG_WITHOUT_DEBUG, Workload};
use esatto_tests::{Harness, Implementation, esatto_bin, filter_bin};
use esatto_trace::Trace;

const SHORT: Workload = Workload { threads: 1, rounds: 10, pause_us: 0 };

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Records our application with a config, and returns the trace.
fn record(harness: &Harness, config: &Path) -> Trace {
    let application = harness.application_command(Implementation::Ours, SHORT);
    let mut record = harness.command(esatto_bin());
    record.arg("record").arg("-c").arg(config).arg("-o").arg(harness.path("trace")).arg("--");
    harness.start("record", record.arg(application.get_program()).args(application.get_args())).wait_ok();
    Trace::read(&std::fs::read(harness.path("trace")).expect("it is recorded")[..])
}

#[test]
fn as_it_is_printed() {
    let page = std::fs::read_to_string(root().join("docs/how-to/fleet-service.md")).expect("the page is there");
    let (_, rest) = page.split_once("cargo install --path crates/filter --features compiler").expect("it is installed");
    let (_, rest) = rest.split_once('\n').expect("commands follow");
    let (commands, _) = rest.split_once("```").expect("their end");

    let harness = Harness::new();
    let config = harness.write("session.cfg", CONFIG_WITHOUT_DEBUG);
    let whole = record(&harness, &config);
    std::os::unix::fs::symlink(filter_bin(), harness.path("esatto-filter")).expect("the folder is ours");
    let path = format!("{}:{}", harness.folder().display(), std::env::var("PATH").unwrap_or_default());
    let commands = commands.replace(">> session.cfg", &format!(">> {}", config.display()));
    let status = Command::new("sh").args(["-e", "-c", &commands]).current_dir(root()).env("PATH", path).status();
    assert!(status.expect("a shell runs").success(), "{commands}");
    let filtered = record(&harness, &config);

    let arguments = |trace: &Trace| trace.events.iter().map(|event| event.annotations.len()).sum::<usize>();
    assert!(arguments(&whole) > 0 && arguments(&filtered) == 0);
    assert_eq!(filtered.slices.len(), whole.slices.len(), "nothing else is left out");
    assert!(filtered.errors.is_empty(), "{:?}", filtered.errors);
}
