//! A producer that acknowledges neither a flush nor its stop does not go unnoticed: the log names
//! it, with its process.

use crate::harness::{
    DEADLINE, Harness, Running, client, enable, offer_silent, record_silent, silent_in_words, wait_until,
};
use esatto_protozero::Owned as _;
use esatto_schema::{FlushRequest, TraceConfig};

#[test]
fn in_the_log() {
    let harness = Harness::new();
    let mut traced = Running::start(&harness, &mut harness.traced());
    let _producer = offer_silent(&harness);
    let mut consumer = client(&harness.consumer(), "ConsumerPort");
    let config = TraceConfig { unique_session_name: Some("nightly".into()), ..record_silent() };
    enable(&mut consumer, config);
    wait_until("the session", || traced.log().contains("started").then_some(()));

    let flush = FlushRequest { timeout_ms: Some(100), ..FlushRequest::default() };
    let reply = consumer.call("Flush", &flush.encode(), Some(DEADLINE)).unwrap();
    assert!(!reply.success);
    consumer.send("DisableTracing", &[], None).unwrap();
    let named = silent_in_words() + "\n";
    for step in ["flush 1 was not acknowledged in time", "its stop was not acknowledged within 100 ms"] {
        let line = format!("W session 1 \"nightly\": {step} {named}");
        wait_until(&line, || traced.log().contains(&line).then_some(()));
    }
    traced.stop();
}
