//! Many producers may be connected, and each may have 32 MiB of memory that it does not write to. A
//! flush must not allocate the memory that it looks at (`docs/spec/shared-memory.md` §16).

use esatto_tests::bystander;
use esatto_tests::raw::{self, RawConsumer, RawProducer, moved};
use esatto_tests::wire::{Peer, Proto};
use std::os::fd::BorrowedFd;

const SIZE: u64 = 32 << 20;

/// Bytes of a memfd that exist.
fn allocated(memory: BorrowedFd<'_>) -> u64 {
    u64::try_from(rustix::fs::fstat(memory).expect("a memfd").st_blocks).expect("a count") * 512
}

#[test]
fn unused_pages_are_not_allocated() {
    bystander::watch(|harness, _, _| {
        // Scraping, and as much memory as there is.
        let introduction = Proto::new().int(1, 4096).int(2, SIZE).bytes(3, "idle").int(4, 1);
        let mut producer = RawProducer::introduce(Peer::producer(harness), &introduction, &[]);
        producer.offer("idle");
        let mut consumer = RawConsumer::connect(harness);
        consumer.enable(&raw::config(1024, &["idle"]));
        let buffer = producer.await_start().buffer;
        assert!(producer.call("RegisterTraceWriter", &Proto::new().int(1, 1).int(2, buffer)).success);
        assert_eq!(producer.pages() as u64 * 4096, SIZE);
        assert_eq!(allocated(producer.memory()), 0);

        let flush = consumer.flush(0);
        let id = producer.await_flush();
        producer.acknowledge(id);
        assert!(consumer.peer.reply_to(flush).success);
        assert_eq!(allocated(producer.memory()), 0, "bytes that a flush allocates");

        // Commits of chunks that are not there.
        let pages = producer.pages() as u64;
        let entries = (0..pages).fold(Proto::new(), |request, page| request.message(1, &moved(page, 0, buffer)));
        assert!(producer.commit(&entries).success);
        assert_eq!(allocated(producer.memory()), 0, "bytes that commits allocate");
    });
}
