//! The daemon has one thread, except while it writes a trace file or closes connections, because
//! both may block.

use crate::harness::{DEADLINE, Harness, Running, assert_serves, client, wait_until};
use esatto_protozero::Owned as _;
use esatto_schema::trace_config::BufferConfig;
use esatto_schema::{EnableTracingRequest, TraceConfig};

fn threads(traced: &Running) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", traced.pid())).unwrap().count()
}

#[test]
fn before_and_after_a_session_that_writes_a_file() {
    let harness = Harness::new();
    let mut traced = Running::start(&harness, &mut harness.traced());
    assert_serves(&harness.producer(), &harness.consumer());
    wait_until("connections are closed", || (threads(&traced) == 1).then_some(()));

    let mut consumer = client(&harness.consumer(), "ConsumerPort");
    let config = TraceConfig {
        buffers: vec![BufferConfig { size_kb: Some(64), ..BufferConfig::default() }],
        write_into_file: Some(true),
        output_path: Some(harness.path("trace").to_str().unwrap().into()),
        ..TraceConfig::default()
    };
    let request = EnableTracingRequest { trace_config: Some(config.into()), ..EnableTracingRequest::default() };
    let enabled = consumer.send("EnableTracing", &request.encode(), None).unwrap();
    wait_until("the file", || harness.path("trace").exists().then_some(()));
    wait_until("connections are closed", || (threads(&traced) == 2).then_some(()));
    assert!(consumer.call("DisableTracing", &[], Some(DEADLINE)).unwrap().success);
    assert!(consumer.wait_reply(enabled, Some(DEADLINE)).unwrap().success);
    drop(consumer);
    wait_until("the thread's end", || (threads(&traced) == 1).then_some(()));
    traced.stop();
}
