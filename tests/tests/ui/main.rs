//! Perfetto's UI opens what we record.

use esatto_tests::workload::{CONFIG, Workload};
use esatto_tests::{Harness, Implementation, Peer, esatto_bin, skip, tp, ui};

#[test]
fn it_opens_a_recorded_application() {
    skip(|| {
        Peer::Browser.require()?;
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::under_test());
        let mut recording = harness.record(Implementation::under_test(), "trace", CONFIG);
        let mut application =
            harness.application(Implementation::under_test(), Workload { threads: 3, rounds: 50, pause_us: 1000 });
        application.wait_ok();
        let shown = ui::open(&harness, &harness.stop(&mut recording), &["--select", "frame"]);
        assert_eq!(shown.number("import_errors"), 0);
        assert_eq!(shown.number("slices"), 3 * (50 * 5 + 1));
        assert_eq!(shown.number("counters"), 3 * 50);
        assert!(shown.number("threads") >= 4 && shown.number("processes") >= 1, "{shown:?}");
        assert!(shown.number("slice_tracks") >= 4, "{shown:?}");
        Ok(())
    });
}

#[test]
fn it_opens_the_demo() {
    skip(|| {
        Peer::Browser.require()?;
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let trace = harness.path("demo.pftrace");
        let mut command = harness.command(esatto_bin());
        harness.start("demo", command.args(["demo", "-t", "3s", "-o"]).arg(&trace)).wait_ok();
        tp::assert_clean(&trace);
        let rows = tp::rows(
            &trace,
            "select (select count(distinct upid) from thread_track join thread using (utid)
                where thread_track.id in (select track_id from slice)) as processes,
            (select count(distinct utid) from thread_track where id in (select track_id from slice)) as threads,
            (select max(depth) from slice) as depth,
            (select count(*) from slice where dur = 0) as instants,
            (select count(*) from counter) as counters,
            (select count(*) from flow) as flows,
            (select count(*) from args where flat_key like 'debug.%') as annotations,
            (select count(*) from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id
                join thread_track s on a.track_id = s.id join thread_track t on b.track_id = t.id
                join thread x on s.utid = x.utid join thread y on t.utid = y.utid
                where x.upid != y.upid) as flows_between_processes",
        );
        for (what, least) in [
            ("processes", 3),
            ("threads", 4),
            ("depth", 1),
            ("instants", 1),
            ("counters", 1),
            ("flows", 1),
            ("annotations", 1),
            ("flows_between_processes", 1),
        ] {
            assert!(rows[0].int(what) >= least, "{what}: {rows:?}");
        }
        let shown = ui::open(&harness, &trace, &[]);
        assert_eq!(shown.number("import_errors"), 0);
        Ok(())
    });
}
