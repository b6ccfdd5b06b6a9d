//! A producer writes the fields that only the service writes, such as the trace's uuid. Its packets
//! are dropped and counted, and the trace has only the service's own fields.

use esatto_tests::bystander;
use esatto_tests::raw::{self, RawChunk, RawConsumer, RawProducer};
use esatto_tests::wire::{self, Proto};

/// Fields of TracePacket that no producer may write.
const SERVICE_FIELDS: [u32; 17] = [3, 10, 33, 35, 36, 46, 50, 69, 79, 89, 98, 107, 113, 124, 125, 133, 134];

#[test]
fn each_field_of_the_service() {
    bystander::watch(|harness, _, _| {
        let mut consumer = RawConsumer::connect(harness);
        consumer.enable(&raw::config(1024, &["forged"]));
        let mut producer = RawProducer::connect(harness, "forger");
        producer.offer("forged");
        let buffer = producer.await_start().buffer;
        let forged = SERVICE_FIELDS.map(|field| Proto::new().bytes(field, "forged").0);
        producer.commit_chunk(buffer, &RawChunk::new(1, 0, &forged));
        producer.commit_chunk(buffer, &RawChunk::new(1, 1, &[raw::packet(0, "honest")]));
        let packets = consumer.read();
        assert_eq!(packets.iter().filter_map(|packet| raw::text_of(packet)).count(), 1);
        for packet in &packets {
            for field in SERVICE_FIELDS {
                assert_ne!(wire::last(packet, field), Some(&b"forged"[..]), "field {field}");
            }
        }
        assert_eq!(packets.iter().filter(|packet| wire::last(packet, 89).is_some()).count(), 1);
        assert_eq!(wire::int(&consumer.stats(), 10), SERVICE_FIELDS.len() as u64, "invalid_packets");
    });
}
