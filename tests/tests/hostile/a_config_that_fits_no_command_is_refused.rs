//! A config that just fits the consumer's frame would make SetupDataSource too large for the
//! producer's. It is refused, and the producer still gets its commands.

use esatto_tests::bystander;
use esatto_tests::raw::{self, RawConsumer, RawProducer};
use esatto_tests::wire::{self, Proto};

#[test]
fn the_largest_config_of_a_frame() {
    bystander::watch(|harness, _, _| {
        let mut producer = RawProducer::connect(harness, "producer");
        producer.offer("wanted");
        for bytes in [131_010, 130_990, 130_962] {
            let source = Proto::new().bytes(1, "wanted").bytes(1000, vec![b'x'; bytes]);
            let config =
                Proto::new().message(1, &Proto::new().int(1, 64)).message(2, &Proto::new().message(1, &source));
            let mut consumer = RawConsumer::connect(harness);
            consumer.enable(&config);
            let ended = consumer.ended();
            let error = wire::last(&ended.body, 3).expect("it is refused");
            let error = String::from_utf8_lossy(error);
            assert!(error.contains("bytes, at most"), "{error}");
        }
        let mut consumer = RawConsumer::connect(harness);
        consumer.enable(&raw::config(64, &["wanted"]));
        producer.await_start();
        consumer.disable();
    });
}

#[test]
fn the_largest_config_that_is_taken_is_heard() {
    bystander::watch(|harness, _, _| {
        let mut producer = RawProducer::connect(harness, "producer");
        producer.offer("wanted");
        let source = Proto::new().bytes(1, "wanted").bytes(1000, vec![b'x'; 130_961]);
        let config = Proto::new().message(1, &Proto::new().int(1, 64)).message(2, &Proto::new().message(1, &source));
        let mut consumer = RawConsumer::connect(harness);
        consumer.enable(&config);
        assert!(producer.await_start().config.len() > 130_961);
        consumer.disable();
    });
}
