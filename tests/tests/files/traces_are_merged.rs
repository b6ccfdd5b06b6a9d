//! A merged trace has what the trace processor finds in its parts.

use crate::{esatto, run, said, trace};
use esatto_tests::wire::Proto;
use esatto_tests::{Harness, Peer, skip, tp};
use std::path::Path;

/// Sums over all of a trace.
const SUMS: &str = "select (select count(*) from slice) as slices, (select sum(dur) from slice) as time,
    (select count(*) from counter) as counters, (select count(*) from flow) as flows";

#[test]
fn as_the_sum_of_its_parts() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let merged = harness.path("t.pftrace");
        let parts = ["long-two-buffers", "track-events", "process-and-sys-stats"].map(trace);
        run(&[&"merge", &parts[0], &parts[1], &parts[2], &"-o", &merged]);
        let sums = |file: &Path| {
            let row = &tp::rows(file, SUMS)[0];
            let time = if row.is_null("time") { 0 } else { row.int("time") };
            [row.int("slices"), time, row.int("counters"), row.int("flows")]
        };
        let mut expected = [0; 4];
        for part in &parts {
            expected.iter_mut().zip(sums(part)).for_each(|(sum, value)| *sum += value);
        }
        assert!(expected.iter().all(|sum| *sum > 1000), "{expected:?}");
        assert_eq!(sums(&merged), expected);
        tp::assert_clean(&merged);
        Ok(())
    });
}

#[test]
fn traces_of_another_boot_are_refused() {
    let harness = Harness::new();
    let reading = |id: u64, ns: u64| Proto::new().int(1, id).int(2, ns);
    let booted = |wall: u64| {
        let snapshot = Proto::new().message(1, &reading(6, 1_000)).message(1, &reading(1, wall));
        Proto::new().message(1, &Proto::new().int(10, 1).message(6, &snapshot)).0
    };
    let first = harness.write("first", booted(1_700_000_000_000_000_000));
    let second = harness.write("second", booted(1_700_009_000_000_000_000));
    let output = esatto(&[&"merge", &first, &second, &"-o", &harness.path("t")]);
    assert!(!output.status.success() && !harness.path("t").exists());
    assert!(said(&output).contains("another machine, or of another boot"), "{}", said(&output));
}
