//! A session is left behind under a key, found again, and stopped by another process.

use crate::{ENDLESS, assert_whole, config, path, require, run_application};
use esatto_tests::{Lab, Side, Skip, tp, wait_until};

const STREAMING: &str = "write_into_file: true file_write_period_ms: 200 flush_period_ms: 200";

mod and_are_attached_to {
    use super::*;

    fn scenario(service: Side) -> Result<(), Skip> {
        require()?;
        let lab = Lab::new();
        let _service = lab.service(service);
        let config = config(&lab, "cfg", STREAMING);
        let arguments = ["--txt", "-c", &config, "-o", &path(&lab, "trace"), "--detach=key"];
        let (code, log) = lab.run_perfetto(&arguments);
        assert_eq!(code, 0, "{log}");
        assert_eq!(lab.run_perfetto(&["--is_detached=key"]).0, 0);
        assert_eq!(lab.run_perfetto(&["--is_detached=other"]).0, 2);
        assert_eq!(lab.run_perfetto(&["--attach=other"]).0, 2);
        // The key is taken.
        let again = ["--txt", "-c", &config, "-o", &path(&lab, "second"), "--detach=key"];
        assert_eq!(lab.run_perfetto(&again).0, 1);
        wait_until("the second session is gone", || (lab.state().sessions == 1).then_some(()));

        let emitted = run_application(&lab);
        let (code, log) = lab.run_perfetto(&["--attach=key", "--stop"]);
        assert_eq!(code, 0, "{log}");
        assert_whole(&lab.path("trace"), emitted);
        assert_eq!(lab.run_perfetto(&["--is_detached=key"]).0, 2);
        assert_eq!(lab.state().sessions, 0);
        Ok(())
    }
    esatto_tests::for_each_service!(scenario);
}

mod until_their_time_is_over {
    use super::*;

    fn scenario(service: Side) -> Result<(), Skip> {
        require()?;
        let lab = Lab::new();
        let _service = lab.service(service);
        let _application = lab.application(Side::Ours, ENDLESS);
        lab.wait_for_producers(1);
        let config = config(&lab, "cfg", &format!("{STREAMING} duration_ms: 1000"));
        let (code, log) = lab.run_perfetto(&["--txt", "-c", &config, "-o", &path(&lab, "trace"), "--detach=key"]);
        assert_eq!(code, 0, "{log}");
        wait_until("the session has ended by itself", || (lab.state().sessions == 0).then_some(()));
        let rows = tp::rows(&lab.path("trace"), "select count(*) as drawn from slice where name = 'draw'");
        assert!(rows[0].int("drawn") > 0);
        assert_eq!(lab.run_perfetto(&["--is_detached=key"]).0, 2);
        Ok(())
    }
    esatto_tests::for_each_service!(scenario);
}
