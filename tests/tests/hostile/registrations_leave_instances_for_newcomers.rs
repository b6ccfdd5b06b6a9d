//! Producers with very many registrations of one name do not use up the instances of a session: a
//! later producer gets one. The log and the trace name the refused ones, and they are counted.

use esatto_tests::bystander;
use esatto_tests::raw::{self, RawConsumer, RawProducer};
use esatto_tests::wire::{self, Proto};

const GREEDY: usize = 17;
const REGISTRATIONS: u64 = 1024;

#[test]
fn seventeen_producers_with_1024_registrations() {
    bystander::watch(|harness, service, _| {
        let mut consumer = RawConsumer::connect(harness);
        consumer.enable(&raw::config(1024, &["wanted"]));
        let mut greedy: Vec<RawProducer> =
            (0..GREEDY).map(|number| RawProducer::connect(harness, &format!("greedy {number}"))).collect();
        for producer in &mut greedy {
            let frames = (1..=REGISTRATIONS).flat_map(|id| {
                let descriptor = Proto::new().bytes(1, "wanted").int(7, id);
                producer.peer.call_frame("RegisterDataSource", &Proto::new().message(1, &descriptor)).1
            });
            let frames: Vec<u8> = frames.collect();
            producer.peer.send(&frames);
            // Answered when all of them are.
            assert!(producer.call("Sync", &Proto::new()).success);
        }
        let mut newcomer = RawProducer::connect(harness, "newcomer");
        newcomer.offer("wanted");
        assert!(newcomer.call("Sync", &Proto::new()).success);
        let started = newcomer.await_start();
        assert!(started.instance > 0);

        let stats = consumer.stats();
        assert!(wire::int(&stats, 4001) > 1000, "the statistics count what was refused");
        let events: Vec<Vec<u8>> =
            consumer.read().iter().filter_map(|packet| wire::last(packet, 69).map(<[u8]>::to_vec)).collect();
        let refused: Vec<&[u8]> = events.iter().filter_map(|event| wire::last(event, 4001)).collect();
        let first = wire::last(refused.first().expect("the trace tells of it"), 1).expect("a data source");
        assert!(wire::last(first, 1).is_some_and(|name| name.starts_with(b"greedy")), "{first:?}");
        assert_eq!(wire::last(first, 2), Some(&b"wanted"[..]));
        assert!(service.log().contains("\"wanted\" of producer \"greedy"), "the log names it");
    });
}
