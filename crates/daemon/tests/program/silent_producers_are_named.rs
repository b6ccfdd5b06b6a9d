//! A producer that acknowledges neither a flush nor its stop does not go unnoticed: the log names
//! it, with its process.

use crate::harness::{DEADLINE, Harness, Running, client, enable, offer, wait_until};
use esatto_protozero::Owned as _;
use esatto_schema::trace_config::{BufferConfig, DataSource};
use esatto_schema::{DataSourceConfig, DataSourceDescriptor, FlushRequest, TraceConfig};

#[test]
fn in_the_log() {
    let harness = Harness::new();
    let mut traced = Running::start(&harness, &mut harness.traced());
    let mut producer = client(&harness.producer(), "ProducerPort");
    let descriptor = DataSourceDescriptor {
        name: Some("test.silent".into()),
        will_notify_on_stop: Some(true),
        ..DataSourceDescriptor::default()
    };
    offer(&mut producer, "hangs", descriptor);
    let mut consumer = client(&harness.consumer(), "ConsumerPort");
    let source = DataSourceConfig { name: Some("test.silent".into()), ..DataSourceConfig::default() };
    let config = TraceConfig {
        buffers: vec![BufferConfig { size_kb: Some(64), ..BufferConfig::default() }],
        data_sources: vec![DataSource { config: Some(source.into()), ..DataSource::default() }],
        data_source_stop_timeout_ms: Some(100),
        unique_session_name: Some("nightly".into()),
        ..TraceConfig::default()
    };
    enable(&mut consumer, config);
    wait_until("the session", || traced.log().contains("started").then_some(()));

    let flush = FlushRequest { timeout_ms: Some(100), ..FlushRequest::default() };
    let reply = consumer.call("Flush", &flush.encode(), Some(DEADLINE)).unwrap();
    assert!(!reply.success);
    consumer.send("DisableTracing", &[], None).unwrap();
    let (uid, pid) = (rustix::process::getuid().as_raw(), std::process::id());
    let named = format!("by producer \"hangs\" (uid {uid}, pid {pid}): \"test.silent\"\n");
    for step in ["flush 1 was not acknowledged in time", "its stop was not acknowledged within 100 ms"] {
        let line = format!("W session 1 \"nightly\": {step} {named}");
        wait_until(&line, || traced.log().contains(&line).then_some(()));
    }
    traced.stop();
}
