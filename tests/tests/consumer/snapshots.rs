//! A session is cloned: by id, by name, for a bug report, and when it streams into a file. The clone holds everything, and so
//! does the session.

use crate::{assert_whole, path, recording, require, run_application, run_application_in};
use esatto_tests::{Lab, Side, Signal, Skip};

mod by_id_and_by_name {
    use super::*;

    fn scenario(service: Side) -> Result<(), Skip> {
        require()?;
        let lab = Lab::new();
        let _service = lab.service(service);
        let mut session = recording(&lab, "trace", r#"unique_session_name: "mine""#);
        let emitted = run_application(&lab);
        for (name, selector) in [("a", ["--clone", "1"]), ("b", ["--clone-by-name", "mine"])] {
            let (code, log) = lab.run_perfetto(&[selector[0], selector[1], "-o", &path(&lab, name)]);
            assert_eq!(code, 0, "{log}");
            assert_whole(&lab.path(name), emitted);
        }
        session.signal(Signal::INT);
        session.wait_ok();
        assert_whole(&lab.path("trace"), emitted);
        assert_eq!(lab.state().sessions, 0);
        Ok(())
    }
    esatto_tests::for_each_service!(scenario);
}

mod of_a_session_that_streams_into_a_file {
    use super::*;

    fn scenario(service: Side) -> Result<(), Skip> {
        require()?;
        let lab = Lab::new();
        let _service = lab.service(service);
        // The trace processor wants the flush period.
        let streaming = r#"
unique_session_name: "streaming"
write_into_file: true
file_write_period_ms: 300
flush_period_ms: 300"#;
        let mut session = recording(&lab, "trace", streaming);
        let emitted = run_application(&lab);
        let (code, log) = lab.run_perfetto(&["--clone-by-name", "streaming", "-o", &path(&lab, "clone")]);
        assert_eq!(code, 0, "{log}");
        assert_whole(&lab.path("clone"), emitted);
        session.signal(Signal::INT);
        session.wait_ok();
        assert_whole(&lab.path("trace"), emitted);
        Ok(())
    }
    esatto_tests::for_each_service!(scenario);
}

mod for_bug_reports {
    use super::*;

    fn scenario(service: Side) -> Result<(), Skip> {
        require()?;
        let lab = Lab::new();
        let _service = lab.service(service);
        let _best = recording(&lab, "best", r#"bugreport_score: 9 bugreport_filename: "best.pftrace""#);
        let _other = recording(&lab, "other", "bugreport_score: 2");
        let _plain = recording(&lab, "plain", "");
        let emitted = run_application_in(&lab, 3);
        let (code, log) = lab.run_perfetto(&["--save-for-bugreport"]);
        assert_eq!(code, 0, "{log}");
        assert_whole(&lab.path("systrace.pftrace"), emitted);
        let (code, log) = lab.run_perfetto(&["--save-all-for-bugreport"]);
        assert_eq!(code, 0, "{log}");
        for name in ["best.pftrace", "systrace.pftrace"] {
            assert_whole(&lab.path(name), emitted);
        }
        Ok(())
    }
    esatto_tests::for_each_service!(scenario);
}

mod of_nothing {
    use super::*;

    fn scenario(service: Side) -> Result<(), Skip> {
        require()?;
        let lab = Lab::new();
        let _service = lab.service(service);
        for selector in [["--clone", "77"], ["--clone-by-name", "nobody"]] {
            let (_, log) = lab.run_perfetto(&[selector[0], selector[1], "-o", &path(&lab, "none")]);
            assert!(log.contains("Failed to clone"), "{log}");
            assert!(!lab.path("none").exists());
        }
        Ok(())
    }
    esatto_tests::for_each_service!(scenario);
}
