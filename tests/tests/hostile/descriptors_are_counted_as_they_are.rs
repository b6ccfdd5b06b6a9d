//! Connections that hold all the descriptors that they are counted with. These are the socket, the
//! shared memory, the same on its way to a producer that does not read, and one that came with a
//! part of a call. The service refuses further connections before its descriptors run out.

use crate::users::{ALICE, BOB, as_user, open_to_all, require_root};
use esatto_tests::raw::{self, RawConsumer, RawProducer};
use esatto_tests::wire::{Peer, Proto};
use esatto_tests::{Harness, Program, Skip, bystander, skip, wait_until};
use std::fs::File;
use std::os::fd::AsFd as _;
use std::process::Command;

/// Descriptors that the service may have, and how many of them a connection counts as.
const LIMIT: usize = 480;
const OF_CONNECTION: usize = 4;
/// Answers to this many calls fill a socket, and as many as there can be in a turn.
const UNREAD: usize = 1600;

/// Starts a program with that limit.
fn limit_descriptors(harness: &Harness, command: &mut Command) {
    let mut limited = harness.command("bash");
    limited.args(["-c", &format!("ulimit -n {LIMIT}; exec \"$0\" \"$@\"")]);
    limited.arg(command.get_program()).args(command.get_args());
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    *command = limited;
}

/// Connects and binds, if the connection is not refused.
fn connect(harness: &Harness) -> Option<Peer> {
    let mut peer = Peer::connect(&harness.producer_socket());
    peer.send(&Proto::new().int(2, 1).message(3, &Proto::new().bytes(1, "ProducerPort")).frame());
    peer.read_frame()?;
    peer.bind("ProducerPort");
    Some(peer)
}

/// Producers until one is refused. They fill their sockets with answers that they do not read, and
/// then offer descriptors that no call takes yet.
fn connect_all(harness: &Harness) -> Vec<RawProducer> {
    let connected = std::iter::from_fn(|| connect(harness)).take(LIMIT);
    connected
        .map(|peer| {
            let mut producer = RawProducer::introduce(peer, &Proto::new().bytes(3, "holder"), &[]);
            let bind = Proto::new().int(2, 1).message(3, &Proto::new().bytes(1, "ProducerPort")).frame();
            producer.peer.send(&bind.repeat(UNREAD));
            let wanted = Proto::new().message(1, &Proto::new().bytes(1, "wanted"));
            let (_, frame) = producer.peer.call_frame("RegisterDataSource", &wanted);
            producer.peer.send(&frame);
            producer
        })
        .collect()
}

/// Passes a descriptor with the first bytes of a frame that does not end.
fn pass_descriptor(producer: &mut RawProducer) {
    let file = File::open("/dev/null").expect("is there");
    producer.peer.send_with_fds(&[100, 0], &[file.as_fd()]);
}

fn wait_for_more(service: &Program, count: usize) {
    let what = format!("{count} descriptors are open");
    wait_until(&what, || (service.descriptors() >= count).then_some(()));
}

#[test]
fn there_are_some_left_when_connections_hold_all_of_theirs() {
    skip(|| {
        require_root()?;
        bystander::watch_with(limit_descriptors, |harness, service, _| {
            open_to_all(harness, &[&harness.producer_socket()]);
            let mut consumer = RawConsumer::connect(harness);
            let mut writer = Peer::consumer(harness);
            let before = service.descriptors();
            let mut holders = as_user(ALICE, || connect_all(harness));
            // Bob's socket is one more.
            let mut bob = as_user(BOB, || RawProducer::connect(harness, "bob"));
            // Root may have the whole rest.
            holders.extend(connect_all(harness));
            assert!(service.log().contains("connections are open"), "{}", service.log());
            assert!(holders.len() * OF_CONNECTION > LIMIT / 3, "{} connections", holders.len());

            // All sockets are full when all data sources are there, with that of the bystander.
            wait_until("all calls are handled", || {
                (consumer.peer.state().data_sources.len() == holders.len() + 1).then_some(())
            });
            consumer.enable(&raw::config(64, &["wanted"]));
            wait_for_more(service, before + 1 + holders.len() * (OF_CONNECTION - 1));
            holders.iter_mut().for_each(pass_descriptor);
            wait_for_more(service, before + 1 + holders.len() * OF_CONNECTION);
            assert!(service.descriptors() < LIMIT, "{} descriptors", service.descriptors());

            // A connected producer gets memory and files.
            bob.offer("wanted");
            assert!(bob.await_start().instance > 0 && bob.has_memory());
            let path = harness.path("trace");
            let file = File::options().read(true).write(true).create_new(true).open(&path).expect("a file");
            let config = raw::config(64, &[]).int(8, 1);
            let (_, frame) = writer.call_frame("EnableTracing", &Proto::new().message(1, &config));
            writer.send_with_fds(&frame, &[file.as_fd()]);
            assert!(writer.call("DisableTracing", &Proto::new()).success);
            wait_until("a trace is written", || {
                std::fs::metadata(&path).is_ok_and(|file| file.len() > 0).then_some(())
            });
            let log = service.log();
            assert!(!log.contains("trying again soon") && !log.contains("Too many open files"), "{log}");

            // And when some go, newcomers are served again.
            drop(holders);
            let mut newcomer = as_user(BOB, || wait_until("there is room", || connect(harness)));
            assert!(newcomer.call("InitializeConnection", &Proto::new().bytes(3, "newcomer")).success);
            consumer.disable();
        });
        Ok::<(), Skip>(())
    });
}
