//! `perfetto --query` shows the service, its producers, data sources and sessions.

use crate::{ENDLESS, recording, require};
use esatto_protozero::Owned as _;
use esatto_schema::TracingServiceState;
use esatto_tests::{Harness, Implementation, Skip};

fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
    require()?;
    let harness = Harness::with_perfetto(client);
    let _service = harness.service(service);
    let application = harness.application(Implementation::Ours, ENDLESS);
    harness.wait_for_producers(1);
    let named = r#"unique_session_name: "shown" bugreport_score: 5 duration_ms: 600000"#;
    let _session = recording(&harness, "trace", named);
    harness.wait_for_data_source("track_event");

    for arguments in [&["--query"][..], &["--query", "--long"]] {
        let (code, shown) = harness.run_perfetto(arguments);
        assert_eq!(code, 0, "{shown}");
        assert!(shown.contains("Tracing sessions: 1 (started: 1)"), "{shown}");
        for wanted in ["esatto-producer", "track_event", "rendering", "STARTED", "shown"] {
            assert!(shown.contains(wanted), "no {wanted} in\n{shown}");
        }
    }
    let output = harness.perfetto(&["--query-raw"]).output().expect("perfetto runs");
    assert!(output.status.success());
    let state = TracingServiceState::decode(&output.stdout).expect("a message");
    assert_eq!((state.num_sessions, state.num_sessions_started), (Some(1), Some(1)));
    assert_eq!(state.supports_tracing_sessions, Some(true));
    assert_eq!(state.producers.len(), 1);
    assert_eq!(state.producers[0].pid, Some(application.pid() as i32));
    let session = &state.tracing_sessions[0];
    assert_eq!((session.id, session.duration_ms, session.num_data_sources), (Some(1), Some(600_000), Some(1)));
    assert_eq!((session.bugreport_score, session.is_started), (Some(5), Some(true)));
    assert_eq!(session.buffer_size_kb, [16384]);
    assert!(session.start_realtime_ns > Some(1_600_000_000_000_000_000), "{session:?}");
    Ok(())
}
esatto_tests::for_each_client!(scenario);
