//! Whoever is connected is served, even if nobody else can be.

use crate::lab::{DEADLINE, Lab, Running, client, wait_until};
use esatto_ipc::BlockingClient;

fn traced_with_descriptors(lab: &Lab, limit: u32) -> Running {
    let script = format!("ulimit -n {limit}; exec \"$0\"");
    Running::start(lab, lab.command("bash").args(["-c", &script, env!("CARGO_BIN_EXE_traced")]))
}

fn assert_answers(consumer: &mut BlockingClient) {
    assert!(consumer.call("QueryCapabilities", &[], Some(DEADLINE)).unwrap().success);
}

#[test]
fn by_the_number_of_connections() {
    let lab = Lab::new();
    // 28 connections, see `Census`.
    let mut traced = traced_with_descriptors(&lab, 224);
    let mut consumer = client(&lab.consumer(), "ConsumerPort");
    let mut others: Vec<_> = (1..28).map(|_| client(&lab.producer(), "ProducerPort")).collect();
    assert!(BlockingClient::connect(&lab.producer(), "ProducerPort", DEADLINE).is_err(), "one too many");
    assert!(traced.log().contains("is refused: 28 connections are open"), "{}", traced.log());
    assert_answers(&mut consumer);
    others.pop();
    others.push(client(&lab.producer(), "ProducerPort"));
    assert_answers(&mut consumer);
    traced.stop();
}

#[test]
fn before_that() {
    let lab = Lab::new();
    let mut traced = traced_with_descriptors(&lab, 16);
    let mut consumer = client(&lab.consumer(), "ConsumerPort");
    // These wait, some of them for ever.
    let path = lab.path("p");
    let mut waiting: Vec<_> = (0..20).map(|_| std::os::unix::net::UnixStream::connect(&path).unwrap()).collect();
    wait_until("the daemon notices", || traced.log().contains("trying again soon").then_some(()));
    assert_answers(&mut consumer);
    // When some go, others come, and everybody is served again.
    waiting.clear();
    drop(client(&lab.producer(), "ProducerPort"));
    assert_answers(&mut consumer);
    traced.stop();
}
