//! `write_into_file` with a file that the consumer brings, or that the service creates.

use crate::harness::{DEADLINE, Harness, config, enable, packet};
use esatto_schema::{EnableTracingResponseReader, TraceConfig};
use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn streaming() -> TraceConfig {
    TraceConfig { write_into_file: Some(true), file_write_period_ms: Some(100), ..config() }
}

/// Records one packet. Returns the error that ended the session.
fn record(harness: &Harness, config: TraceConfig, file: Option<File>) -> Option<String> {
    let mut consumer = harness.consumer();
    let enabled = consumer.send("EnableTracing", &enable(config), file.map(Into::into)).unwrap();
    consumer.call("QueryCapabilities", &[], Some(DEADLINE)).unwrap();
    let mut producer = harness.producer();
    producer.await_start();
    producer.commit(&packet(100));
    consumer.call("DisableTracing", &[], Some(DEADLINE)).unwrap();
    let reply = consumer.wait_reply(enabled, Some(DEADLINE)).unwrap();
    let error = EnableTracingResponseReader::new(&reply.body).error().unwrap_or_default();
    Some(String::from_utf8_lossy(error).into_owned()).filter(|error| !error.is_empty())
}

fn assert_recorded(path: &Path) {
    let trace = std::fs::read(path).unwrap();
    assert_eq!(trace[0], 0x0a, "a Trace message");
    assert!(trace.windows(100).any(|part| part == [b'x'; 100]), "{} bytes without the packet", trace.len());
}

#[test]
fn into_a_file_that_the_consumer_brings() {
    let harness = Harness::start();
    let path = harness.folder.path("trace");
    assert_eq!(record(&harness, streaming(), Some(File::create(&path).unwrap())), None);
    assert_recorded(&path);
    assert_eq!(harness.daemon.stats().file_bytes_written, std::fs::metadata(path).unwrap().len());
}

#[test]
fn into_a_file_that_it_creates() {
    let harness = Harness::start();
    let path = harness.folder.path("trace");
    let config = TraceConfig { output_path: Some(path.to_str().unwrap().into()), ..streaming() };
    assert_eq!(record(&harness, config.clone(), None), None);
    assert_recorded(&path);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
    // The service does not overwrite an existing file, and nothing is left of what it refuses.
    let mut consumer = harness.consumer();
    for _ in 0..70 {
        let reply = consumer.call("EnableTracing", &enable(config.clone()), Some(DEADLINE)).unwrap();
        let error = EnableTracingResponseReader::new(&reply.body)
            .error()
            .map(|error| String::from_utf8_lossy(error).into_owned());
        let want = format!("output_path {}: File exists; remove it, or choose another path", path.display());
        assert_eq!(error, Some(want));
    }
    let path = harness.folder.path("another");
    let config = TraceConfig { output_path: Some(path.to_str().unwrap().into()), ..streaming() };
    assert_eq!(record(&harness, config, None), None);
    assert_recorded(&path);
}

#[test]
fn completely_even_if_the_service_is_stopped() {
    let harness = Harness::start();
    let path = harness.folder.path("trace");
    let config = TraceConfig { file_write_period_ms: Some(3_600_000), ..streaming() };
    let mut consumer = harness.consumer();
    let file = File::create(&path).unwrap();
    consumer.send("EnableTracing", &enable(config), Some(file.into())).unwrap();
    let mut producer = harness.producer();
    producer.await_start();
    producer.commit(&packet(100));
    let Harness { daemon, folder: _folder } = harness;
    daemon.stop();
    assert_recorded(&path);
}
