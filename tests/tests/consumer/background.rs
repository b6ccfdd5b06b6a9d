//! `perfetto --background-wait` returns when all data sources are started, and records on.

use crate::{ENDLESS, assert_whole, config, path, require, run_application};
use esatto_tests::{Harness, Implementation, Signal, Skip, wait_until};
use rustix::process::{Pid, kill_process};

mod returns_when_the_session_runs {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        require()?;
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        let config = config(&harness, "cfg", "");
        let (code, log) =
            harness.run_perfetto(&["--txt", "-c", &config, "-o", &path(&harness, "trace"), "--background-wait"]);
        assert_eq!(code, 0, "{log}");
        assert_eq!(harness.state().sessions_started, 1, "no wait is needed any more");
        let emitted = run_application(&harness);
        let pid = log.lines().find_map(|line| line.trim().parse().ok()).and_then(Pid::from_raw);
        kill_process(pid.unwrap_or_else(|| panic!("no process id: {log}")), Signal::TERM).expect("it runs");
        // The session goes when the trace was read.
        wait_until("the session is over", || (harness.state().sessions == 0).then_some(()));
        wait_until("the trace is complete", || {
            let rows = std::fs::metadata(harness.path("trace")).ok()?;
            (rows.len() > 0).then_some(())
        });
        assert_whole(&harness.path("trace"), emitted);
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}

mod waits_for_data_sources_that_are_there {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        require()?;
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        let _application = harness.application(Implementation::Ours, ENDLESS);
        harness.wait_for_producers(1);
        let config = config(&harness, "cfg", "duration_ms: 300");
        let (code, log) = harness.run_perfetto(&["--txt", "-c", &config, "-o", &path(&harness, "trace"), "-D"]);
        assert_eq!(code, 0, "{log}");
        wait_until("the session is over", || (harness.state().sessions == 0).then_some(()));
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}
