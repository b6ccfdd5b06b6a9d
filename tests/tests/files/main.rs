//! Commands that make files of traces: in another format, or of a part, or of several.

mod a_trace_without_room_is_not_damaged;
mod archives_are_read;
mod damaged_files_are_told;
mod json_becomes_a_trace;
mod parts_are_cut;
mod parts_have_whole_slices;
mod results_are_written_safely;
mod texts_are_redacted;
mod traces_are_converted;
mod traces_are_merged;

use esatto_tests::esatto_bin;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Traces that Perfetto's programs have written.
const TRACES: [&str; 5] =
    ["track-events", "ring-buffer-wrapped", "long-two-buffers", "process-and-sys-stats", "deflate"];

fn trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("traces/official-v56-{name}.pftrace"))
}

fn esatto(args: &[&dyn AsRef<std::ffi::OsStr>]) -> Output {
    Command::new(esatto_bin()).args(args.iter().map(AsRef::as_ref)).output().expect("it runs")
}

/// Runs a command that must succeed, and returns what it said.
fn run(args: &[&dyn AsRef<std::ffi::OsStr>]) -> String {
    let output = esatto(args);
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    said
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Numbers that look random, from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
