//! GetTraceStats of a session with very many writers: one reply with as many as fit, and how many
//! those are that do not.

use esatto_tests::bystander;
use esatto_tests::raw::{self, RawChunk, RawConsumer, RawProducer, moved};
use esatto_tests::wire::{self, Proto};

const WRITERS: u16 = 30_000;

#[test]
fn thirty_thousand_writers() {
    bystander::watch(|harness, _, _| {
        let mut consumer = RawConsumer::connect(harness);
        let source = Proto::new().bytes(1, "many");
        let config =
            Proto::new().message(1, &Proto::new().int(1, 32 << 10)).message(2, &Proto::new().message(1, &source));
        consumer.enable(&config);
        let mut producer = RawProducer::connect(harness, "many");
        producer.offer("many");
        let buffer = producer.await_start().buffer;
        let pages = u16::try_from(producer.pages()).expect("few pages");
        for first in (1..=WRITERS).step_by(usize::from(pages)) {
            let mut request = Proto::new();
            for (page, writer) in (first..=WRITERS).take(usize::from(pages)).enumerate() {
                let chunk = RawChunk::new(writer, 0, &[raw::packet(1, "many")]);
                producer.put(page, raw::ONE_COMPLETE, &chunk);
                request = request.message(1, &moved(page as u64, 0, buffer));
            }
            assert!(producer.commit(&request).success);
        }
        for _ in 0..20 {
            let stats = consumer.stats();
            let told = wire::all(&stats, 18).len() as u64;
            assert!(told > 1000 && stats.len() < 131_000, "{told} writers in {} bytes", stats.len());
            assert_eq!(wire::int(&stats, 4004), u64::from(WRITERS) - told);
        }
    });
}
