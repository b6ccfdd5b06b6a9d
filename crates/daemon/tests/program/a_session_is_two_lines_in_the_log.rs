//! At the default level, a session is one line at its start and one at its end, with name, user,
//! sizes, duration and losses. Connections are not logged. A refusal is logged as such, with its
//! reason. Names cannot break lines.

use crate::harness::{
    DEADLINE, Harness, Running, buffer, client, enable, enable_with, offer_silent, record_silent, silent_in_words,
    wait_until,
};
use esatto_protozero::Owned as _;
use esatto_schema::{EnableTracingResponseReader, FlushRequest, TraceConfig};

/// Runs a session that lasts 200 ms, and one that is refused. Returns the log without the times.
fn log_of(args: &[&str]) -> Vec<String> {
    let harness = Harness::new();
    let mut traced = Running::start(&harness, harness.traced().args(args));
    let producer = offer_silent(&harness);
    let mut consumer = client(&harness.consumer(), "ConsumerPort");
    let config = TraceConfig {
        buffers: vec![buffer(64), buffer(4)],
        duration_ms: Some(200),
        flush_timeout_ms: Some(20),
        unique_session_name: Some("night\nly".into()),
        ..record_silent()
    };
    let end = enable(&mut consumer, config.clone());
    assert!(consumer.wait_reply(end, Some(DEADLINE)).unwrap().success);
    let mut other = client(&harness.consumer(), "ConsumerPort");
    let refused = enable(&mut other, TraceConfig { buffers: vec![buffer(0)], ..config });
    let reply = other.wait_reply(refused, Some(DEADLINE)).unwrap();
    assert!(EnableTracingResponseReader::new(&reply.body).error().is_some());
    consumer.call("FreeBuffers", &[], Some(DEADLINE)).unwrap();
    drop((producer, consumer, other));
    traced.stop();
    // "12:34:56.789 I text"
    traced.log().lines().map(|line| line[13..].to_owned()).collect()
}

#[test]
fn by_default() {
    let log = log_of(&[]);
    let uid = rustix::process::getuid().as_raw();
    let session = format!("session 1 \"night\\nly\" of uid {uid}");
    let named = silent_in_words();
    assert!(log[0].starts_with("I Started traced"), "{log:?}");
    assert_eq!(log[1], format!("I {session} started for 200ms: buffers of 64 + 4 KiB, 1 data source instances"));
    assert_eq!(log[2], format!("W session 1 \"night\\nly\": flush 1 was not acknowledged in time {named}"));
    assert_eq!(log[3], format!("W session 1 \"night\\nly\": its stop was not acknowledged within 100 ms {named}"));
    assert!(log[4].starts_with(&format!("I {session} ended after ")), "{log:?}");
    assert!(log[4].ends_with(": 0 bytes recorded, lost: 1 flushes not acknowledged"), "{log:?}");
    let reason = "refused: buffers[0].size_kb is 0, it must be between 1 and 4194300";
    assert_eq!(log[5], format!("W session \"night\\nly\" of uid {uid} {reason}"));
    assert!(log[6].starts_with("I Stopping"), "{log:?}");
    assert_eq!(log[7..], ["I Stopped"], "{log:?}");
}

#[test]
fn and_less_or_more_on_request() {
    let log = log_of(&["--log-level", "warn"]);
    assert!(log.len() == 3 && log.iter().all(|line| line.starts_with("W ")), "{log:?}");
    assert_eq!(log_of(&["--log-level=error"]), [""; 0]);
    let log = log_of(&["--log-level=debug"]);
    assert!(log.iter().any(|line| line.starts_with("D producer \"hangs\" (1) connected, uid ")), "{log:?}");
    assert!(log.iter().any(|line| line == "D session 1 \"night\\nly\" is freed"), "{log:?}");
}

#[test]
fn with_the_remedy_if_a_field_has_no_effect() {
    let harness = Harness::new();
    let mut traced = Running::start(&harness, &mut harness.traced());
    let mut consumer = client(&harness.consumer(), "ConsumerPort");
    let path = harness.path("trace");
    let config = TraceConfig {
        buffers: vec![buffer(64)],
        write_into_file: Some(true),
        output_path: Some(path.to_str().unwrap().into()),
        flush_period_ms: Some(100),
        ..TraceConfig::default()
    };
    enable(&mut consumer, config);
    let line = "to use flush_period_ms, set write_flush_mode: WRITE_FLUSH_DISABLED";
    wait_until(line, || traced.log().contains(line).then_some(()));
    let into = format!("started until it is stopped: buffers of 64 KiB, 0 data source instances, into {path:?}\n");
    wait_until(&into, || traced.log().contains(&into).then_some(()));
    let flush = FlushRequest::default().encode();
    assert!(consumer.call("Flush", &flush, Some(DEADLINE)).unwrap().success);
    traced.stop();
    assert!(traced.log().contains("bytes recorded, the service lost nothing\n"), "{}", traced.log());
}

/// A session whose file takes nothing. Returns the line at its end.
fn end_with_full_disk(end: impl FnOnce(esatto_ipc::BlockingClient)) -> String {
    let harness = Harness::new();
    let mut traced = Running::start(&harness, &mut harness.traced());
    let mut consumer = client(&harness.consumer(), "ConsumerPort");
    let config = TraceConfig {
        buffers: vec![buffer(64)],
        write_into_file: Some(true),
        file_write_period_ms: Some(200),
        ..TraceConfig::default()
    };
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    enable_with(&mut consumer, config, Some(full.into()));
    wait_until("the session", || traced.log().contains("started").then_some(()));
    end(consumer);
    let is_end = |line: &&str| line.contains(" ended after ");
    let line = wait_until("its end", || traced.log().lines().find(is_end).map(str::to_owned));
    traced.stop();
    assert_eq!(traced.log().lines().filter(is_end).count(), 1, "{}", traced.log());
    assert!(!traced.log().contains("the service lost nothing"), "{}", traced.log());
    line
}

#[test]
fn which_tells_that_the_file_failed() {
    let lost = "0 bytes recorded, lost: the end of the trace file; the";
    let line = end_with_full_disk(|mut consumer| {
        // The service ends the session at its first write.
        drop(consumer.next_reply(Some(DEADLINE)).unwrap());
    });
    assert!(line.contains(&format!("{lost} trace file cannot be written: No space left on device")), "{line}");
    let line = end_with_full_disk(drop);
    let expected = format!("{lost} end of the trace file cannot be written: No space left on device");
    assert!(line.contains(&expected), "{line}");
}
