//! An application and a recording that must not notice an attack on the service.

use crate::raw::{self, RawChunk, RawConsumer, RawProducer};
use crate::wire::{Peer, Proto};
use crate::workload::{self, CONFIG_WITHOUT_DEBUG, Expected, Workload};
use crate::{Harness, Implementation, Program, Skip, peers, wire};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// About a second.
const WORKLOAD: Workload = Workload { threads: 2, rounds: 800, pause_us: 1000 };

/// Runs `attack` against our service while an application is being recorded.
///
/// Afterwards the recording is whole, and the service lives and has not panicked. Its log has a
/// line about the attack, unless `attack` says that there is none.
///
/// # Errors
///
/// Returns the skip of `attack`, or of a missing trace processor.
///
/// # Panics
///
/// One of these does not hold.
pub fn attack(attack: impl FnOnce(&Harness, &mut Program) -> Logged) -> Result<(), Skip> {
    peers::Peer::TraceProcessor.require()?;
    let harness = Harness::new();
    let mut service = harness.service(Implementation::under_test());
    let mut recording = harness.record(Implementation::under_test(), "trace", CONFIG_WITHOUT_DEBUG);
    harness.wait_for_sessions(1);
    let mut application = harness.application(Implementation::under_test(), WORKLOAD);
    harness.wait_for_producers(1);

    let before = service.log().lines().count();
    let logged = attack(&harness, &mut service);
    let log = service.log();
    assert!(service.is_running(), "the service died of it");
    if logged == Logged::Yes {
        assert!(log.lines().count() > before, "the service's log says nothing of it");
    }

    application.wait_ok();
    let trace = harness.stop(&mut recording);
    workload::assert_whole(&trace, &[Expected { pid: application.pid(), workload: WORKLOAD, details: false }]);
    assert!(!service.log().contains("panicked"), "the service panicked");
    // It still knows who is there.
    assert_eq!(harness.state().sessions, 0);
    Ok(())
}

/// As [`attack`], with a bystander made of raw calls, whose every packet is compared: without a
/// trace processor, and with a TCP port for producers elsewhere.
///
/// Afterwards the service has not panicked, and has no more descriptors open than before.
///
/// # Panics
///
/// One of these does not hold, or a packet of the bystander is missing, changed, marked or not in
/// its place.
pub fn watch(attack: impl FnOnce(&Harness, &mut Program, u16)) {
    watch_with(|_, _| (), attack);
}

/// As [`watch`], with a change to the command that starts the service.
///
/// # Panics
///
/// As there.
pub fn watch_with(change: impl FnOnce(&Harness, &mut Command), attack: impl FnOnce(&Harness, &mut Program, u16)) {
    let harness = Harness::new();
    let (mut service, port) =
        harness.service_with_tcp(Implementation::under_test(), |command| change(&harness, command));
    let connect = || RawProducer::connect(&harness, "bystander");
    record_meanwhile(&harness, &mut service, connect, |harness, service| attack(harness, service, port));
}

/// As [`watch`], with a bystander and an attack on our relay, whose socket is the path.
///
/// # Panics
///
/// As [`watch`].
pub fn watch_behind_relay(attack: impl FnOnce(&Harness, &mut Program, &Path)) {
    let harness = Harness::new();
    let (mut service, port) = harness.service_with_tcp(Implementation::Ours, |_| ());
    let socket = harness.path("r.sock");
    let mut relay = harness.relay(port, &socket);
    let connect = || {
        let mut peer = Peer::connect(&socket);
        peer.bind("ProducerPort");
        RawProducer::introduce(peer, &Proto::new().bytes(3, "bystander"), &[])
    };
    record_meanwhile(&harness, &mut relay, connect, |harness, relay| attack(harness, relay, &socket));
    assert!(service.is_running() && !service.log().contains("panicked"), "the service behind the relay died of it");
}

/// Records a producer while `attack` deals with `program`.
fn record_meanwhile(
    harness: &Harness,
    program: &mut Program,
    connect: impl FnOnce() -> RawProducer,
    attack: impl FnOnce(&Harness, &mut Program),
) {
    let mut consumer = RawConsumer::connect(harness);
    // The bystander may be on another machine.
    consumer.enable(&raw::config(32 << 10, &["bystander"]).int(43, 1));
    let mut producer = connect();
    producer.offer("bystander");
    let buffer = producer.await_start().buffer;
    let before = program.descriptors();

    let done = AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        let writing = scope.spawn(|| write_until(&done, &mut producer, buffer));
        let set_when_dropped = Done(&done);
        attack(harness, program);
        assert!(program.is_running(), "it died of it");
        program.wait_for_descriptors(before);
        drop(set_when_dropped);
        writing.join().expect("the bystander goes on")
    });

    let flush = consumer.flush(0);
    let id = producer.await_flush();
    producer.acknowledge(id);
    assert!(consumer.peer.reply_to(flush).success, "the bystander is flushed");
    consumer.disable();
    let packets = consumer.read();
    let own: Vec<&Vec<u8>> = packets.iter().filter(|packet| wire::last(packet, 900).is_some()).collect();
    assert_eq!(own.len() as u64, written, "packets of the bystander");
    for (number, packet) in (0..).zip(own) {
        assert_eq!(raw::text_of(packet), Some((number, "bystander".into())));
        // The packets before the first are unknown.
        assert!(number == 0 || wire::int(packet, 42) == 0, "packet {number} says that others were lost");
    }
    assert!(program.is_running(), "it died of it");
    assert!(!program.log().contains("panicked"), "it panicked");
}

/// Commits chunks of two packets until told to stop; the number of packets.
fn write_until(done: &AtomicBool, producer: &mut RawProducer, buffer: u64) -> u64 {
    let mut number = 0;
    for chunk_id in 0.. {
        // One more after the attack.
        let last = done.load(Ordering::Relaxed);
        let packets = [number, number + 1].map(|number| raw::packet(number, "bystander"));
        let chunk = RawChunk::new(1, chunk_id, &packets);
        if producer.has_memory() {
            producer.commit_chunk(buffer, &chunk);
        } else {
            producer.commit_data(buffer, &chunk);
        }
        number += 2;
        if last {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    number
}

/// Lets the bystander end, also when the attack panics.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Lines that an attack leaves in the service's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logged {
    /// It must.
    Yes,
    /// It is no mistake, or an ordinary one.
    No,
}

/// Random numbers that are the same every time (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.number().to_le_bytes()[0]
    }
}
