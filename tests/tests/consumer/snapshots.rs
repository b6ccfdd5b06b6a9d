//! A session is cloned: by id, by name, for a bug report, and when it streams into a file. The
//! clone holds everything, and so does the session.

use crate::{assert_whole, path, recording, require, run_application, run_application_in};
use esatto_tests::{Harness, Implementation, Signal, Skip, tp};

mod by_id_and_by_name {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        require()?;
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        let mut session = recording(&harness, "trace", r#"unique_session_name: "mine""#);
        let emitted = run_application(&harness);
        for (name, selector) in [("a", ["--clone", "1"]), ("b", ["--clone-by-name", "mine"])] {
            let (code, log) = harness.run_perfetto(&[selector[0], selector[1], "-o", &path(&harness, name)]);
            assert_eq!(code, 0, "{log}");
            assert_whole(&harness.path(name), emitted);
        }
        session.signal(Signal::INT);
        session.wait_ok();
        assert_whole(&harness.path("trace"), emitted);
        assert_eq!(harness.state().sessions, 0);
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}

mod of_a_session_that_streams_into_a_file {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        require()?;
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        // The trace processor wants the flush period.
        let streaming = r#"
unique_session_name: "streaming"
write_into_file: true
file_write_period_ms: 300
flush_period_ms: 300"#;
        let mut session = recording(&harness, "trace", streaming);
        let emitted = run_application(&harness);
        let clone_is_whole = |name| {
            let (code, log) = harness.run_perfetto(&["--clone-by-name", "streaming", "-o", &path(&harness, name)]);
            assert_eq!(code, 0, "{log}");
            std::panic::catch_unwind(|| assert_whole(&harness.path(name), emitted)).is_ok()
        };
        // About one clone in fifty of Perfetto's service lacks the packets in the file.
        let attempts: &[&str] = match service {
            Implementation::Ours => &["clone"],
            Implementation::Theirs => &["clone", "second clone", "third clone"],
        };
        assert!(attempts.iter().any(|name| clone_is_whole(name)), "the clone lacks packets: see above");
        session.signal(Signal::INT);
        session.wait_ok();
        assert_whole(&harness.path("trace"), emitted);
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}

/// A snapshot begins with an empty buffer, so the programs write their names into it again.
#[test]
fn of_transferred_buffers_can_be_read_each() {
    esatto_tests::skip(|| {
        require()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let config = format!(
            "buffers {{ size_kb: 16384 transfer_on_clone: true }} unique_session_name: \"mine\" {}",
            crate::DATA_SOURCE
        );
        let _recording = harness.record(Implementation::Ours, "trace", &config);
        let _application = harness.application(Implementation::Ours, crate::ENDLESS);
        let mut end = 0;
        for name in ["first", "second", "third"] {
            std::thread::sleep(std::time::Duration::from_millis(1000));
            let (code, log) = harness.run_perfetto(&["--clone-by-name", "mine", "-o", &path(&harness, name)]);
            assert_eq!(code, 0, "{log}");
            let query = "select count(*) as n, min(ts) as begin, max(ts) as end from slice";
            let row = &tp::rows(&harness.path(name), query)[0];
            assert!(row.int("n") > 100, "{name}: {}", row.int("n"));
            let gap_ms = (row.int("begin") - end) / 1_000_000;
            // The request takes a moment, in which events still refer to the names of before.
            assert!(end == 0 || gap_ms < 500, "{name}: {gap_ms} ms");
            end = row.int("end");
        }
        Ok(())
    });
}

mod for_bug_reports {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        require()?;
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        let _best = recording(&harness, "best", r#"bugreport_score: 9 bugreport_filename: "best.pftrace""#);
        let _other = recording(&harness, "other", "bugreport_score: 2");
        let _plain = recording(&harness, "plain", "");
        let emitted = run_application_in(&harness, 3);
        let (code, log) = harness.run_perfetto(&["--save-for-bugreport"]);
        assert_eq!(code, 0, "{log}");
        assert_whole(&harness.path("systrace.pftrace"), emitted);
        let (code, log) = harness.run_perfetto(&["--save-all-for-bugreport"]);
        assert_eq!(code, 0, "{log}");
        for name in ["best.pftrace", "systrace.pftrace"] {
            assert_whole(&harness.path(name), emitted);
        }
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}

mod of_nothing {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        require()?;
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        for selector in [["--clone", "77"], ["--clone-by-name", "nobody"]] {
            let (_, log) = harness.run_perfetto(&[selector[0], selector[1], "-o", &path(&harness, "none")]);
            assert!(log.contains("Failed to clone"), "{log}");
            assert!(!harness.path("none").exists());
        }
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}
