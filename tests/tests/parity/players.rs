//! A producer and a consumer that play a scenario. Each step is finished before the next begins.

use crate::outcome::Outcome;
use esatto_tests::Harness;
use esatto_tests::raw::{NEEDS_PATCHING, RawChunk, RawConsumer, RawProducer, Started, packet, patched};
use esatto_tests::wire::{self, Proto};
use std::collections::BTreeMap;

/// The producer and the consumer of a scenario.
pub(crate) struct Players<'a> {
    pub(crate) harness: &'a Harness,
    pub(crate) producer: RawProducer,
    pub(crate) consumer: RawConsumer,
    /// The next chunk of each writer.
    chunk_ids: BTreeMap<u16, u32>,
    /// The next packet.
    number: u64,
    outcome: Outcome,
}

impl<'a> Players<'a> {
    pub(crate) fn new(harness: &'a Harness) -> Self {
        // The producer asks for scraping (field 4), so that a flush finds uncommitted chunks.
        let introduction = Proto::new().bytes(3, "parity").int(4, 1);
        Self {
            harness,
            producer: RawProducer::introduce(wire::Peer::producer(harness), &introduction, &[]),
            consumer: RawConsumer::connect(harness),
            chunk_ids: BTreeMap::new(),
            number: 0,
            outcome: Outcome::default(),
        }
    }

    /// Offers data sources that need no acknowledgement.
    pub(crate) fn offer(&mut self, names: &[&str]) {
        for (id, name) in (1..).zip(names) {
            self.producer.register(&Proto::new().bytes(1, name).int(4, 1).int(7, id));
        }
    }

    /// Data sources without incremental state. Of others, ours asks for names after a snapshot that
    /// empties their buffer (`docs/spec/service.md` §13).
    pub(crate) fn offer_without_state(&mut self, names: &[&str]) {
        for (id, name) in (1..).zip(names) {
            self.producer.register(&Proto::new().bytes(1, name).int(7, id));
        }
    }

    pub(crate) fn enable(&mut self, config: &Proto) {
        self.consumer.enable(config);
    }

    /// The next command, noted; its number and body.
    pub(crate) fn command(&mut self) -> (u32, Vec<u8>) {
        let (number, body) = self.producer.command();
        self.outcome.command(number, &body);
        (number, body)
    }

    /// Follows the commands until an instance is started.
    pub(crate) fn await_start(&mut self) -> Started {
        loop {
            if let (1, start) = self.command() {
                let config = wire::last(&start, 2).expect("a config").to_vec();
                return Started { instance: wire::int(&start, 1), buffer: wire::int(&config, 2), config };
            }
        }
    }

    /// Follows the commands until this one.
    pub(crate) fn await_command(&mut self, number: u32) -> Vec<u8> {
        loop {
            let (found, body) = self.command();
            if found == number {
                return body;
            }
        }
    }

    /// A packet of this many bytes or a few more, each another one.
    pub(crate) fn packet(&mut self, len: usize) -> Vec<u8> {
        self.number += 1;
        let letter = char::from(b'a' + (self.number % 26) as u8);
        packet(self.number, &letter.to_string().repeat(len))
    }

    /// The next chunk of a writer, with these fragments. Its first packet says that it is, or ours
    /// would mark it (`docs/spec/trace-buffer.md` §19).
    pub(crate) fn chunk(&mut self, writer: u16, fragments: &[impl AsRef<[u8]>]) -> RawChunk {
        let is_first = !self.chunk_ids.contains_key(&writer);
        let id = self.chunk_ids.entry(writer).or_default();
        *id += 1;
        let mut fragments: Vec<Vec<u8>> = fragments.iter().map(|fragment| fragment.as_ref().to_vec()).collect();
        if let Some(first) = fragments.iter_mut().find(|fragment| is_first && !fragment.is_empty()) {
            first.splice(..0, Proto::new().int(87, 1).0);
        }
        RawChunk::new(writer, *id - 1, &fragments)
    }

    /// Commits a chunk with packets of these sizes.
    pub(crate) fn commit(&mut self, buffer: u64, writer: u16, sizes: &[usize]) {
        let packets: Vec<Vec<u8>> = sizes.iter().map(|size| self.packet(*size)).collect();
        let chunk = self.chunk(writer, &packets);
        self.producer.commit_chunk(buffer, &chunk);
    }

    /// Commits a packet in pieces of these sizes, a chunk for each, and returns the chunks' ids.
    pub(crate) fn commit_in_pieces(&mut self, buffer: u64, writer: u16, pieces: &[usize]) -> Vec<u32> {
        let content = self.packet(pieces.iter().sum());
        let mut rest = &content[..];
        let mut ids = Vec::new();
        for (i, size) in pieces.iter().enumerate() {
            let is_last = i + 1 == pieces.len();
            let (piece, later) = rest.split_at(if is_last { rest.len() } else { *size });
            rest = later;
            let flags = u16::from(i > 0) | if is_last { 0 } else { 2 };
            let chunk = self.chunk(writer, &[piece]).flags(flags);
            ids.push(chunk.chunk_id);
            self.producer.commit_chunk(buffer, &chunk);
        }
        ids
    }

    /// Commits a packet of which the last four bytes of the text wait for a patch; the chunk's id
    /// and the offset.
    pub(crate) fn commit_unpatched(&mut self, buffer: u64, writer: u16, size: usize) -> (u32, u64) {
        let packet = self.packet(size);
        let chunk = self.chunk(writer, &[&packet]).flags(NEEDS_PATCHING);
        self.producer.commit_chunk(buffer, &chunk);
        // After the text comes the number: a tag and one byte.
        (chunk.chunk_id, chunk.payload.len() as u64 - 6)
    }

    pub(crate) fn patch(&mut self, buffer: u64, writer: u16, (chunk_id, offset): (u32, u64), more: bool) {
        let patch = patched(buffer, writer.into(), chunk_id.into(), &[(offset, b"ABCD")], more);
        assert!(self.producer.commit(&Proto::new().message(2, &patch)).success);
    }

    /// Flushes the session, which the producer acknowledges.
    pub(crate) fn flush(&mut self) {
        let call = self.consumer.flush(0);
        self.acknowledge_flush();
        assert!(self.consumer.peer.reply_to(call).success);
    }

    /// Waits for a flush and acknowledges it.
    pub(crate) fn acknowledge_flush(&mut self) {
        let flush = wire::int(&self.await_command(5), 2);
        self.producer.acknowledge(flush);
    }

    /// Reads the content of the buffers.
    pub(crate) fn read(&mut self) {
        let packets = self.consumer.read();
        self.outcome.read(&packets);
    }

    /// Another consumer clones a session; the producer acknowledges so many flushes for it. Notes
    /// the packets that it reads, and its statistics before and after.
    pub(crate) fn clone_session(&mut self, request: &Proto, flushes: usize) {
        let mut cloner = RawConsumer::connect(self.harness);
        let (id, frame) = cloner.peer.call_frame("CloneSession", request);
        cloner.peer.send(&frame);
        for _ in 0..flushes {
            self.acknowledge_flush();
        }
        let reply = cloner.peer.reply_to(id);
        let text = String::from_utf8_lossy(wire::last(&reply.body, 2).unwrap_or_default()).into_owned();
        assert!(reply.success && wire::int(&reply.body, 1) == 1, "{text}");
        self.outcome.stats(&cloner.stats());
        self.outcome.read(&cloner.read());
        self.outcome.read(&cloner.read());
        self.outcome.stats(&cloner.stats());
        assert!(cloner.peer.call("FreeBuffers", &Proto::new()).success);
    }

    /// Another consumer clones a session that streams into a file, with a file for the copy.
    pub(crate) fn clone_into(&mut self, request: &Proto, file: std::os::fd::BorrowedFd<'_>, flushes: usize) {
        let mut cloner = RawConsumer::connect(self.harness);
        let (id, frame) = cloner.peer.call_frame("CloneSession", request);
        cloner.peer.send_with_fds(&frame, &[file]);
        for _ in 0..flushes {
            self.acknowledge_flush();
        }
        let reply = cloner.peer.reply_to(id);
        assert!(reply.success && wire::int(&reply.body, 1) == 1 && wire::int(&reply.body, 5) == 1, "{reply:?}");
        assert!(cloner.peer.call("FreeBuffers", &Proto::new()).success);
    }

    /// Notes the statistics.
    pub(crate) fn stats(&mut self) {
        let stats = self.consumer.stats();
        self.outcome.stats(&stats);
    }

    /// Notes the answer to the consumer.
    pub(crate) fn told(&mut self, text: &str) {
        self.outcome.told(text);
    }

    /// Notes a trace that the service wrote into a file.
    pub(crate) fn file(&mut self, bytes: &[u8]) {
        let packets: Vec<Vec<u8>> = wire::all(bytes, 1).into_iter().map(<[u8]>::to_vec).collect();
        self.outcome.read(&packets);
    }

    /// Flushes the session and ends it, notes the statistics, and reads.
    pub(crate) fn stop_and_read(&mut self) {
        self.stop();
        self.stats();
        self.read();
    }

    /// Flushes the session and ends it.
    pub(crate) fn stop(&mut self) {
        self.flush();
        let (id, frame) = self.consumer.peer.call_frame("DisableTracing", &Proto::new());
        self.consumer.peer.send(&frame);
        assert!(self.consumer.peer.reply_to(id).success);
        self.ended();
    }

    /// Waits for the end of the session.
    pub(crate) fn ended(&mut self) {
        let reply = self.consumer.ended();
        assert!(reply.success && wire::last(&reply.body, 3).is_none(), "{reply:?}");
        let _ = self.await_command(2);
    }

    /// The producer goes; a session without anybody to flush is ended by
    /// [`disable_alone`](Self::disable_alone).
    pub(crate) fn leave(&mut self) {
        self.producer = RawProducer::connect(self.harness, "another");
        self.harness.wait_for_producers(1);
    }

    /// Ends a session in which no producer takes part any more.
    pub(crate) fn disable_alone(&mut self) {
        self.consumer.disable();
    }

    pub(crate) fn into_outcome(self) -> Outcome {
        self.outcome
    }
}
