//! A session is left behind under a key, found again, and stopped by another process.

use crate::{ENDLESS, assert_whole, config, path, require, run_application};
use esatto_tests::{Harness, Implementation, Skip, tp, wait_until};

const STREAMING: &str = "write_into_file: true file_write_period_ms: 200 flush_period_ms: 200";

mod and_are_attached_to {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        require()?;
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        let config = config(&harness, "cfg", STREAMING);
        let arguments = ["--txt", "-c", &config, "-o", &path(&harness, "trace"), "--detach=key"];
        let (code, log) = harness.run_perfetto(&arguments);
        assert_eq!(code, 0, "{log}");
        assert_eq!(harness.run_perfetto(&["--is_detached=key"]).0, 0);
        assert_eq!(harness.run_perfetto(&["--is_detached=other"]).0, 2);
        assert_eq!(harness.run_perfetto(&["--attach=other"]).0, 2);
        // The key is taken.
        let again = ["--txt", "-c", &config, "-o", &path(&harness, "second"), "--detach=key"];
        assert_eq!(harness.run_perfetto(&again).0, 1);
        wait_until("the second session is gone", || (harness.state().sessions == 1).then_some(()));

        let emitted = run_application(&harness);
        let (code, log) = harness.run_perfetto(&["--attach=key", "--stop"]);
        assert_eq!(code, 0, "{log}");
        assert_whole(&harness.path("trace"), emitted);
        assert_eq!(harness.run_perfetto(&["--is_detached=key"]).0, 2);
        assert_eq!(harness.state().sessions, 0);
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}

mod until_their_time_is_over {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        require()?;
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        let _application = harness.application(Implementation::Ours, ENDLESS);
        harness.wait_for_producers(1);
        let config = config(&harness, "cfg", &format!("{STREAMING} duration_ms: 1000"));
        let (code, log) =
            harness.run_perfetto(&["--txt", "-c", &config, "-o", &path(&harness, "trace"), "--detach=key"]);
        assert_eq!(code, 0, "{log}");
        wait_until("the session has ended by itself", || (harness.state().sessions == 0).then_some(()));
        let rows = tp::rows(&harness.path("trace"), "select count(*) as drawn from slice where name = 'draw'");
        assert!(rows[0].int("drawn") > 0);
        assert_eq!(harness.run_perfetto(&["--is_detached=key"]).0, 2);
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}
