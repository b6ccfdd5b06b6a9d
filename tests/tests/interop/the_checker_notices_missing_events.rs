//! Tests of the checker itself: it accepts a trace that Perfetto recorded of its own application,
//! and rejects all others.

use esatto_tests::workload::{Expected, Trace, Workload};
use esatto_tests::{Peer, skip, tp};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

#[test]
fn it_also_notices_extra_events() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/official-v56-track-events.pftrace");
        let pid = tp::rows(&path, "select pid from process where name glob '*official-producer'")[0].int("pid");
        let trace = Trace::load(&path);
        let expected = |threads, rounds, details| Expected {
            pid: u32::try_from(pid).expect("a process id"),
            workload: Workload { threads, rounds, pause_us: 2000 },
            details,
        };
        trace.assert_whole(&expected(3, 100, true));
        trace.assert_clean();
        assert_eq!(trace.assert_beginning(&expected(3, 1000, true)), 3 * 99);
        assert_eq!(trace.assert_end(&expected(3, 100, true)), 3 * 100);
        for wrong in [
            expected(3, 99, true),
            expected(3, 101, true),
            expected(2, 100, true),
            expected(4, 100, true),
            expected(3, 100, false),
            Expected { pid: 1, ..expected(3, 100, true) },
        ] {
            let judged = catch_unwind(AssertUnwindSafe(|| trace.assert_whole(&wrong)));
            assert!(judged.is_err(), "{wrong:?} is not what is in the trace");
        }
        let wrong = expected(3, 101, true);
        assert!(catch_unwind(AssertUnwindSafe(|| trace.assert_end(&wrong))).is_err(), "it ends a round earlier");
        Ok(())
    });
}
