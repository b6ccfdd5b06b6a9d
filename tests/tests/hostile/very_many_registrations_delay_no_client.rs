//! Very many data sources, with shared names and with unique names, and a config that wants very
//! many. The cost of a registration, or of the start of a session, depends on its own size, not on
//! the number of data sources. How much work it is, is counted in
//! `crates/service/tests/service/bounds.rs`.

use esatto_tests::Signal;
use esatto_tests::bystander;
use esatto_tests::raw::{self, RawConsumer, RawProducer};
use esatto_tests::wire::{self, Proto};

const PRODUCERS: u64 = 32;
/// Data sources that each of them may register.
const REGISTRATIONS: u64 = 1024;
/// Data sources that a config may ask for.
const WANTED: u64 = 1024;
/// Instances of a session for all producers, beyond the share of each.
const INSTANCES: u64 = 16_384;

/// The names of one producer: some that all of its data sources have, some that all producers have,
/// and some that only it has.
fn name(producer: u64, id: u64) -> String {
    match id % 3 {
        0 => "equal".to_owned(),
        1 => format!("of all {id}"),
        _ => format!("of {producer}: {id}"),
    }
}

/// Data sources that are registered now.
fn registered(consumer: &mut RawConsumer) -> u64 {
    wire::int(&consumer.stats(), 4)
}

#[test]
fn nor_do_configs_that_want_them() {
    bystander::watch(|harness, service, _| {
        let mut idle = RawConsumer::connect(harness);
        idle.enable(&raw::config(64, &["nothing"]));
        assert_eq!(registered(&mut idle), 1, "that of the bystander");
        let mut producers: Vec<_> =
            (0..PRODUCERS).map(|number| RawProducer::connect(harness, &format!("producer {number}"))).collect();

        // All of it is there before the service looks at anything, and the question comes after it.
        service.signal(Signal::STOP);
        let mut last = Vec::new();
        for (number, producer) in (0..).zip(&mut producers) {
            // One too many.
            let frames = (1..=REGISTRATIONS + 1).flat_map(|id| {
                let descriptor = Proto::new().bytes(1, name(number, id)).int(7, id);
                producer.peer.call_frame("RegisterDataSource", &Proto::new().message(1, &descriptor)).1
            });
            let mut frames: Vec<u8> = frames.collect();
            let (sync, frame) = producer.peer.call_frame("Sync", &Proto::new());
            frames.extend(frame);
            producer.peer.send(&frames);
            last.push(sync);
        }
        let (question, frame) = idle.peer.call_frame("GetTraceStats", &Proto::new());
        idle.peer.send(&frame);
        service.signal(Signal::CONT);
        let reply = idle.peer.reply_to(question);
        let first = wire::int(wire::last(&reply.body, 1).expect("trace_stats"), 4);
        assert!(first < PRODUCERS * REGISTRATIONS / 2, "{first} were registered before the question was answered");
        for (producer, last) in producers.iter_mut().zip(last) {
            assert!(producer.peer.reply_to(last).success);
        }
        assert_eq!(registered(&mut idle), PRODUCERS * REGISTRATIONS + 1, "and all in the end, but for one of each");
        assert!(service.log().contains("registers too many data sources"), "{}", service.log());

        // All producers have each of these.
        let wanted: Vec<String> =
            (1..=REGISTRATIONS).map(|id| name(0, id)).filter(|name| !name.contains(':')).collect();
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).cycle().take(WANTED as usize).collect();
        let mut consumer = RawConsumer::connect(harness);
        consumer.enable(&raw::config(64, &wanted));
        let stats = consumer.stats();
        let made = wire::int(&stats, 5);
        assert!((PRODUCERS * 16..INSTANCES + (PRODUCERS + 1) * 16).contains(&made), "{made} instances");
        assert!(wire::int(&stats, 4001) > 1000, "the statistics count what was refused");
        let mut newcomer = RawProducer::connect(harness, "newcomer");
        newcomer.offer("equal");
        assert!(newcomer.await_start().instance > 0);
        consumer.disable();
        idle.disable();
    });
}
