//! Perfetto's UI shows a recording of the whole machine, and of a program in it.

use esatto_tests::{Harness, Implementation, Peer, esatto_bin, skip, tp, ui};

#[test]
fn with_its_processors_threads_and_memory() {
    skip(|| {
        Peer::Browser.require()?;
        Peer::TraceProcessor.require()?;
        let _turn = crate::tracefs()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let _probes = harness.probes(Implementation::Ours);
        let trace = harness.path("machine.pftrace");
        let mut command = harness.command(esatto_bin());
        harness.start("record", command.args(["record", "-t", "2s", "-o"]).arg(&trace)).wait_ok();
        tp::assert_clean(&trace);
        let rows = tp::rows(
            &trace,
            "select (select count(distinct cpu) from sched) as cpus,
            (select count(distinct utid) from thread_state) as threads,
            (select count(*) from counter c join process_counter_track t on c.track_id = t.id
                where t.name = 'mem.rss') as memory,
            (select count(*) from counter) as counters",
        );
        for what in ["cpus", "threads", "memory"] {
            assert!(rows[0].int(what) > 0, "{what}: {rows:?}");
        }
        let shown = ui::open(&harness, &trace, &["--show", "CPU Scheduling|mem\\.rss"]);
        assert_eq!(shown.number("import_errors"), 0);
        assert_eq!(i64::try_from(shown.number("counters")), Ok(rows[0].int("counters")));
        assert!(shown.number("processes") >= 2 && shown.number("threads") >= 2, "{shown:?}");
        Ok(())
    });
}
