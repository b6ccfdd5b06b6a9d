//! Connected clients are served even if no further client can connect.

use crate::harness::{DEADLINE, Harness, Running, client, wait_until};
use esatto_ipc::BlockingClient;

fn traced_with_descriptors(harness: &Harness, limit: u32) -> Running {
    let script = format!("ulimit -n {limit}; exec \"$0\"");
    Running::start(harness, harness.command("bash").args(["-c", &script, env!("CARGO_BIN_EXE_traced")]))
}

fn assert_answers(consumer: &mut BlockingClient) {
    assert!(consumer.call("QueryCapabilities", &[], Some(DEADLINE)).unwrap().success);
}

#[test]
fn at_the_limit_of_connections() {
    let harness = Harness::new();
    // 28 connections, see `UserShares::max_connections`.
    let mut traced = traced_with_descriptors(&harness, 224);
    let mut consumer = client(&harness.consumer(), "ConsumerPort");
    let mut others: Vec<_> = (1..28).map(|_| client(&harness.producer(), "ProducerPort")).collect();
    assert!(BlockingClient::connect(&harness.producer(), "ProducerPort", DEADLINE).is_err(), "one too many");
    assert!(traced.log().contains("is refused: 28 connections are open"), "{}", traced.log());
    assert_answers(&mut consumer);
    others.pop();
    others.push(client(&harness.producer(), "ProducerPort"));
    assert_answers(&mut consumer);
    traced.stop();
}

#[test]
fn at_the_limit_of_descriptors() {
    let harness = Harness::new();
    let mut traced = traced_with_descriptors(&harness, 16);
    let mut consumer = client(&harness.consumer(), "ConsumerPort");
    // These connections wait, some of them for ever.
    let path = harness.path("p");
    let mut waiting: Vec<_> = (0..20).map(|_| std::os::unix::net::UnixStream::connect(&path).unwrap()).collect();
    wait_until("the daemon notices", || traced.log().contains("trying again soon").then_some(()));
    assert_answers(&mut consumer);
    // When some of them close, others are accepted, and all are served again.
    waiting.clear();
    drop(client(&harness.producer(), "ProducerPort"));
    assert_answers(&mut consumer);
    traced.stop();
}
