//! The service writes the file that the consumer brought, or creates one at a path, and overwrites
//! nothing.

use crate::{assert_whole, config, path, recording, require, run_application};
use esatto_tests::{Harness, Implementation, Signal, Skip, wait_until};

mod of_the_consumer {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        require()?;
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        let more = "write_into_file: true file_write_period_ms: 200 flush_period_ms: 200";
        let mut session = recording(&harness, "trace", more);
        let emitted = run_application(&harness);
        session.signal(Signal::INT);
        session.wait_ok();
        assert_whole(&harness.path("trace"), emitted);
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}

mod that_are_full_end_the_session {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        require()?;
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        let more = "write_into_file: true file_write_period_ms: 100 max_file_size_bytes: 8000";
        let config = config(&harness, "cfg", more);
        let mut session =
            harness.start("perfetto", &mut harness.perfetto(&["--txt", "-c", &config, "-o", &path(&harness, "trace")]));
        let _application = harness.application(Implementation::Ours, crate::ENDLESS);
        session.wait_ok();
        let size = std::fs::metadata(harness.path("trace")).expect("a file").len();
        assert!((1..8000).contains(&size), "{size}");
        // Whole packets.
        assert!(!esatto_tests::tp::rows(&harness.path("trace"), "select 1 as one").is_empty());
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}

mod that_exist_are_not_overwritten {
    use super::*;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        require()?;
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        let existing = harness.write("existing", "precious").display().to_string();
        let ordinary = config(&harness, "ordinary.cfg", "duration_ms: 100");
        let (code, log) = harness.run_perfetto(&["--txt", "-c", &ordinary, "-o", &existing, "--no-clobber"]);
        assert_eq!(code, 1, "{log}");
        let kept = std::fs::read(harness.path("existing")).expect("it is there");
        assert_eq!(kept, b"precious");
        wait_until("nothing is left behind", || (harness.state().sessions == 0).then_some(()));
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}

mod at_a_path_of_the_service {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
        require()?;
        let harness = Harness::with_perfetto(client);
        let _service = harness.service(service);
        let more = format!(
            "write_into_file: true output_path: \"{}\" file_write_period_ms: 200 flush_period_ms: 200",
            path(&harness, "trace")
        );
        let config = config(&harness, "cfg", &more);
        let mut session = harness.start("perfetto", &mut harness.perfetto(&["--txt", "-c", &config]));
        harness.wait_for_sessions(1);
        let emitted = run_application(&harness);
        session.signal(Signal::INT);
        session.wait_ok();
        assert_whole(&harness.path("trace"), emitted);
        let mode = std::fs::metadata(harness.path("trace")).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o644, "for others to read");

        let before = std::fs::read(harness.path("trace")).expect("a file");
        let (_, log) = harness.run_perfetto(&["--txt", "-c", &config]);
        assert!(log.contains("trace file") || log.contains("output_path"), "{log}");
        assert_eq!(std::fs::read(harness.path("trace")).expect("a file"), before);
        assert_eq!(harness.state().sessions, 0);
        Ok(())
    }
    esatto_tests::for_each_client!(scenario);
}
