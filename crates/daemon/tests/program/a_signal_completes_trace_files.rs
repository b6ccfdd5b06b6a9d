//! SIGTERM and SIGINT complete the files of sessions that stream, and the program ends with status
//! 0.

use crate::harness::{Harness, Running, client, wait_until};
use esatto_protozero::Owned as _;
use esatto_schema::trace_config::BufferConfig;
use esatto_schema::{EnableTracingRequest, TraceConfig};
use rustix::process::Signal;

#[test]
fn of_sessions_that_have_not_written_yet() {
    for signal in [Signal::TERM, Signal::INT] {
        let harness = Harness::new();
        let mut traced = Running::start(&harness, &mut harness.traced());
        let mut consumer = client(&harness.consumer(), "ConsumerPort");
        let config = TraceConfig {
            buffers: vec![BufferConfig { size_kb: Some(64), ..BufferConfig::default() }],
            write_into_file: Some(true),
            file_write_period_ms: Some(3_600_000),
            unique_session_name: Some("by the signal".into()),
            output_path: Some(harness.path("trace").to_str().unwrap().into()),
            ..TraceConfig::default()
        };
        let request = EnableTracingRequest { trace_config: Some(config.into()), ..EnableTracingRequest::default() };
        consumer.send("EnableTracing", &request.encode(), None).unwrap();
        wait_until("the session", || traced.log().contains("started").then_some(()));
        assert_eq!(std::fs::metadata(harness.path("trace")).unwrap().len(), 0);
        traced.signal(signal);
        assert!(traced.wait().success());
        // The service itself writes the config into the trace.
        let trace = std::fs::read(harness.path("trace")).unwrap();
        assert!(trace.windows(13).any(|part| part == b"by the signal"), "{} bytes", trace.len());
        assert!(traced.log().ends_with("Stopped\n"), "{}", traced.log());
    }
}
