//! SIGTERM and SIGINT: sessions that stream into a file end with everything in it, and the program with status 0.

use crate::lab::{Lab, Running, client, wait_until};
use esatto_protozero::Owned as _;
use esatto_schema::trace_config::BufferConfig;
use esatto_schema::{EnableTracingRequest, TraceConfig};
use rustix::process::Signal;

#[test]
fn of_sessions_that_have_not_written_yet() {
    for signal in [Signal::TERM, Signal::INT] {
        let lab = Lab::new();
        let mut traced = Running::start(&lab, &mut lab.traced());
        let mut consumer = client(&lab.consumer(), "ConsumerPort");
        let config = TraceConfig {
            buffers: vec![BufferConfig { size_kb: Some(64), ..BufferConfig::default() }],
            write_into_file: Some(true),
            file_write_period_ms: Some(3_600_000),
            unique_session_name: Some("by the signal".into()),
            output_path: Some(lab.path("trace").to_str().unwrap().into()),
            ..TraceConfig::default()
        };
        let request = EnableTracingRequest { trace_config: Some(config.into()), ..EnableTracingRequest::default() };
        consumer.send("EnableTracing", &request.encode(), None).unwrap();
        wait_until("the session", || traced.log().contains("started").then_some(()));
        assert_eq!(std::fs::metadata(lab.path("trace")).unwrap().len(), 0);
        traced.signal(signal);
        assert!(traced.wait().success());
        // The config is among the packets that the service writes itself.
        let trace = std::fs::read(lab.path("trace")).unwrap();
        assert!(trace.windows(13).any(|part| part == b"by the signal"), "{} bytes", trace.len());
        assert!(traced.log().ends_with("Stopped\n"), "{}", traced.log());
    }
}
