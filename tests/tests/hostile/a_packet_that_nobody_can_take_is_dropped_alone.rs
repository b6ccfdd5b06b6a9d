//! Over a socket 64 MiB may wait for a consumer, and readers of files refuse packets of 256 MiB. A
//! producer can put together larger ones in a large buffer (`docs/spec/trace-buffer.md` §9): they
//! must not cost the consumer the rest of its trace.

use esatto_tests::bystander;
use esatto_tests::raw::{self, FIRST_CONTINUES, LAST_CONTINUES, RawChunk, RawConsumer, RawProducer};
use esatto_tests::wire::{self, Peer, Proto};

/// Bytes of each of its fragments.
const FRAGMENT: usize = 60_000;

#[test]
fn its_sequence_is_marked_and_all_others_arrive() {
    bystander::watch(|lab, service, port| {
        let mut peer = Peer::connect_tcp(port);
        peer.bind("ProducerPort");
        let mut producer = RawProducer::introduce(peer, &Proto::new().bytes(3, "large"), &[]);
        producer.offer("large");
        let mut consumer = RawConsumer::connect(lab);
        consumer.enable(&raw::config(128 << 10, &["large"]).int(43, 1));
        let buffer = producer.await_start().buffer;

        let mut commit = |writer: u16, id: u32, flags: u16, fragment: &[u8]| {
            producer.commit_data(buffer, &RawChunk::new(writer, id, &[fragment]).flags(flags));
        };
        commit(1, 0, 0, &raw::packet(0, "in front"));
        // 68 MiB of a string.
        let chunks: u32 = 1200;
        let mut first = Proto::new().int(8, 1).0;
        first.extend([0xa2, 0x38]);
        let length = chunks as usize * FRAGMENT - 8;
        first.extend([0, 7, 14].map(|shift| (length >> shift & 0x7f) as u8 | 0x80));
        first.push((length >> 21) as u8);
        first.resize(FRAGMENT, b'x');
        commit(1, 1, LAST_CONTINUES, &first);
        let piece = vec![b'x'; FRAGMENT];
        for id in 2..chunks {
            commit(1, id, FIRST_CONTINUES | LAST_CONTINUES, &piece);
        }
        commit(1, chunks, FIRST_CONTINUES, &piece);
        commit(1, chunks + 1, 0, &raw::packet(1, "behind"));
        commit(2, 0, 0, &raw::packet(2, "of another writer"));

        let packets = consumer.read();
        let own: Vec<_> = packets.iter().filter(|packet| wire::last(packet, 900).is_some()).collect();
        let texts: Vec<_> = own.iter().filter_map(|packet| raw::text_of(packet)).map(|(number, _)| number).collect();
        assert_eq!(texts, [0, 1, 2]);
        assert_eq!(wire::int(own[1], 42) & 1, 1, "the packet behind the large one says that something was lost");
        let stats = consumer.stats();
        let of_buffer = wire::last(&stats, 1).expect("statistics of the buffer");
        assert_eq!(wire::int(of_buffer, 9), 1, "abi_violations counts the packet");
        assert!(service.is_running());
    });
}
