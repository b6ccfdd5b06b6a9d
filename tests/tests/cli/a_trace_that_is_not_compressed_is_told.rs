//! A service that does not know `compression` ignores it without a word. `esatto record` says so.

use esatto_tests::workload::{CONFIG_WITHOUT_DEBUG, Workload};
use esatto_tests::{Harness, Implementation, Peer, esatto_bin, skip};

const LINE: &str = "The service did not compress the trace: it does not know `compression`.";

/// Returns the output of a recording with this line in its config.
fn record(service: Implementation, compression: &str) -> String {
    let harness = Harness::new();
    let _service = harness.service(service);
    harness.write("my.cfg", format!("{CONFIG_WITHOUT_DEBUG} {compression}"));
    let workload = Workload { threads: 1, rounds: 1_000_000, pause_us: 1000 };
    let _application = harness.application(Implementation::Ours, workload);
    harness.wait_for_data_source("track_event");
    let mut command = harness.command(esatto_bin());
    let mut record = harness.start("record", command.args(["record", "-t", "500ms", "-o", "trace", "-c", "my.cfg"]));
    record.wait_ok();
    record.log()
}

#[test]
fn of_perfettos_service() {
    skip(|| {
        Peer::Official.require()?;
        let said = record(Implementation::Theirs, "compression { deflate {} }");
        assert!(said.contains(LINE) && said.contains("COMPRESSION_TYPE_DEFLATE"), "{said}");
        let said = record(Implementation::Theirs, "compression_type: COMPRESSION_TYPE_DEFLATE");
        assert!(!said.contains(LINE), "{said}");
        Ok(())
    });
}

#[test]
fn but_not_of_ours() {
    let said = record(Implementation::Ours, "compression { deflate {} }");
    assert!(!said.contains(LINE), "{said}");
}
