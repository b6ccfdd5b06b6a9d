//! A producer with a name of 131,040 bytes sends thousands of triggers. The observer of a session
//! keeps its connection and its session, learns of the producer, and gets the number of events that
//! it missed. Meanwhile the service does not use more memory.

use esatto_tests::bystander;
use esatto_tests::raw::{self, RawConsumer, RawProducer};
use esatto_tests::wire::{self, Proto, Reply};

const NAME_BYTES: usize = 131_040;
const TRIGGERS: u64 = 1000;
/// Far less than the names of the hits of one call. The buffer of the bystander is part of it.
const MAX_GROWTH_KB: u64 = 64 << 10;

/// The ObservableEvents of a reply.
fn events(reply: &Reply) -> &[u8] {
    assert!(reply.success && reply.has_more, "events go on: {reply:?}");
    wire::last(&reply.body, 1).unwrap_or_default()
}

#[test]
fn triggers_of_a_long_name() {
    bystander::watch(|harness, service, _| {
        let mut consumer = RawConsumer::connect(harness);
        let (observing, frame) = consumer.peer.call_frame("ObserveEvents", &Proto::new().int(1, 4));
        consumer.peer.send(&frame);
        let triggers = Proto::new().int(1, 4).message(2, &Proto::new().bytes(1, "t")).int(3, 1_000_000);
        consumer.enable(&raw::config(1024, &["nothing"]).message(17, &triggers));
        harness.wait_for_sessions(2);

        let mut producer = RawProducer::connect(harness, &"n".repeat(NAME_BYTES));
        let names = (0..TRIGGERS).fold(Proto::new(), |names, _| names.bytes(1, "t"));
        let before = service.own_memory_kb();
        // 1.3 GB of names, if each hit had its own.
        for _ in 0..10 {
            assert!(producer.call("ActivateTriggers", &names).success);
            let grown = service.own_memory_kb().saturating_sub(before);
            assert!(grown < MAX_GROWTH_KB, "{grown} KiB more are in use");
        }
        let (mut hits, mut lost) = (0, 0);
        while hits + lost < 10 * TRIGGERS {
            let reply = consumer.peer.reply_to(observing);
            let events = events(&reply);
            lost += wire::int(events, 4001);
            let hit = wire::last(events, 3).expect("a hit");
            assert_eq!(wire::last(hit, 3), Some(&[b'n'; 4096][..]), "the name is cut");
            hits += 1;
        }
        assert!(hits > 0);
        consumer.disable();
    });
}

#[test]
fn instances_of_a_long_name() {
    bystander::watch(|harness, _, _| {
        let mut consumer = RawConsumer::connect(harness);
        let (observing, frame) = consumer.peer.call_frame("ObserveEvents", &Proto::new().int(1, 1));
        consumer.peer.send(&frame);
        consumer.enable(&raw::config(1024, &["wanted"]));
        harness.wait_for_sessions(2);
        let mut producer = RawProducer::connect(harness, &"n".repeat(NAME_BYTES));
        producer.offer("wanted");
        let mut other = RawProducer::connect(harness, "other");
        other.offer("wanted");
        let mut told = Vec::new();
        while !told.iter().any(|name: &Vec<u8>| name == b"other") {
            let reply = consumer.peer.reply_to(observing);
            told.extend(wire::all(events(&reply), 1).iter().map(|change| wire::last(change, 1).unwrap().to_vec()));
        }
        assert!(told.contains(&vec![b'n'; 4096]), "the events of the long name come, too");
        consumer.disable();
    });
}
