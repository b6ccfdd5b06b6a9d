//! Shared parts of the attacks: memory to offer, and a session that the attacker writes to.

use esatto_tests::Harness;
use esatto_tests::raw::{self, RawChunk, RawConsumer, RawProducer, packet};
use esatto_tests::wire::{self, Peer, Proto};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::os::fd::{BorrowedFd, OwnedFd};

/// Those that adopted memory has.
pub(crate) const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A memfd.
pub(crate) fn memory(size: u64, seals: SealFlags) -> OwnedFd {
    let fd = memfd_create("smb", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).expect("a memfd");
    ftruncate(&fd, size).expect("a size");
    fcntl_add_seals(&fd, seals).expect("seals");
    fd
}

/// Introduces a producer that offers memory; it and whether that was adopted. The connection must
/// survive.
pub(crate) fn offer(harness: &Harness, page_size: u64, fd: BorrowedFd<'_>) -> (RawProducer, bool) {
    let introduction = Proto::new().int(1, page_size).bytes(3, "offer").int(6, 1);
    let mut producer = RawProducer::introduce(Peer::producer(harness), &introduction, &[fd]);
    let adopted = wire::int(&producer.answer, 1) != 0;
    assert!(producer.peer.call("Sync", &Proto::new()).success);
    (producer, adopted)
}

/// A producer with a session that records it.
pub(crate) struct Attacker {
    pub(crate) producer: RawProducer,
    pub(crate) consumer: RawConsumer,
    /// The only buffer it may write to.
    pub(crate) buffer: u64,
}

impl Attacker {
    pub(crate) fn start(harness: &Harness) -> Self {
        Self::start_as(harness, RawProducer::connect(harness, "attacker"))
    }

    pub(crate) fn start_as(harness: &Harness, producer: RawProducer) -> Self {
        Self::start_with(harness, producer, 0)
    }

    /// With a field of the TraceConfig that is true.
    pub(crate) fn start_with(harness: &Harness, mut producer: RawProducer, flag: u32) -> Self {
        let mut consumer = RawConsumer::connect(harness);
        producer.offer("attacked");
        let config = raw::config(1024, &["attacked"]);
        consumer.enable(&if flag == 0 { config } else { config.int(flag, 1) });
        let buffer = producer.await_start().buffer;
        Self { producer, consumer, buffer }
    }

    /// Calls CommitData, which succeeds with any content.
    pub(crate) fn commit(&mut self, request: &Proto) {
        assert!(self.producer.commit(request).success, "bad entries never fail the call");
    }

    /// After nonsense the service still takes valid packets: returns the texts in the buffer after
    /// one more packet.
    pub(crate) fn texts_and_one_more(&mut self, writer_id: u16) -> Vec<String> {
        self.producer.commit_chunk(self.buffer, &RawChunk::new(writer_id, 1000, &[packet(0, "one more")]));
        self.texts()
    }

    /// The texts in the buffer.
    pub(crate) fn texts(&mut self) -> Vec<String> {
        self.consumer.read_texts().into_iter().map(|(_, text)| text).collect()
    }

    /// A number in TraceStats.
    pub(crate) fn stat(&mut self, field: u32) -> u64 {
        wire::int(&self.consumer.stats(), field)
    }

    /// A number in the BufferStats.
    pub(crate) fn buffer_stat(&mut self, field: u32) -> u64 {
        wire::int(wire::last(&self.consumer.stats(), 1).expect("a buffer"), field)
    }
}

/// Field `trace_all_machines` of TraceConfig.
pub(crate) const ALL_MACHINES: u32 = 43;
/// Field numbers of TraceStats.
pub(crate) const CHUNKS_DISCARDED: u32 = 8;
pub(crate) const PATCHES_DISCARDED: u32 = 9;
/// Field numbers of TraceStats.BufferStats.
pub(crate) const CHUNKS_WRITTEN: u32 = 2;
pub(crate) const PATCHES_SUCCEEDED: u32 = 5;
pub(crate) const PATCHES_FAILED: u32 = 6;
pub(crate) const ABI_VIOLATIONS: u32 = 9;
