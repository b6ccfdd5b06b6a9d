//! `esatto demo`, `esatto info` and the trace processor report the same numbers for one trace.

use esatto_tests::{Harness, Peer, esatto_bin, skip, tp};
use std::process::Command;

const COUNTS: &str = "select (select count(*) from slice) as slices,
    (select max(depth) + 1 from slice) as levels,
    (select count(*) from flow) as flows,
    (select count(*) from counter) as counter_values";

#[test]
fn for_its_trace() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let trace = harness.path("demo.pftrace");
        let mut command = harness.command(esatto_bin());
        let mut demo =
            harness.start("demo", command.args(["demo", "-t", "1s", "-o"]).arg(&trace).arg(harness.folder()));
        demo.wait_ok();
        let info = Command::new(esatto_bin()).arg("info").arg(&trace).output().expect("it runs");
        let info = String::from_utf8(info.stdout).expect("text");
        let counts = tp::rows(&trace, COUNTS).remove(0);
        let [slices, levels, flows, values] =
            ["slices", "levels", "flows", "counter_values"].map(|name| counts.int(name));
        let demo = demo.log();
        for (name, value) in [
            ("slices", format!("{slices}, ")),
            ("nested", format!("{levels} levels deep\n")),
            ("flows", format!("{flows} arrows")),
            ("counter values", format!("{values}\n")),
        ] {
            assert!(demo.contains(&format!("\n  {name:<16}{value}")), "{name} {value}: {demo}");
        }
        assert!(info.contains(&format!("\nSlices (nested up to {levels} deep")), "{levels}: {info}");
        let contents = format!(" {slices} slices (");
        assert!(
            info.contains(&contents) && info.contains(&format!(", {values} counter values, {flows} flows")),
            "{info}"
        );
        Ok(())
    });
}
