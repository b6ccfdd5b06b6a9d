//! A producer and a consumer made of raw calls, with the producer's shared memory. They are for
//! tests that control each byte (`docs/spec/wire-protocol.md` §8–§13, `docs/spec/shared-memory.md`
//! §4–§6).

use crate::Harness;
use crate::wire::{self, Peer, Proto, Reply};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes of a page as the service makes them without a hint.
pub const PAGE_SIZE: usize = 4096;

/// The first fragment continues the last one of the chunk before.
pub const FIRST_CONTINUES: u16 = 1;
/// The last fragment continues in the next chunk.
pub const LAST_CONTINUES: u16 = 2;
/// Lengths are missing, and come as patches.
pub const NEEDS_PATCHING: u16 = 4;

/// The word of a page with one complete chunk.
pub const ONE_COMPLETE: u32 = 0x1000_0003;
/// The word of a page with one chunk that is being written.
pub const ONE_BEING_WRITTEN: u32 = 0x1000_0001;

/// A chunk as it stands in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawChunk {
    /// The writer.
    pub writer_id: u16,
    /// Its number in the writer's sequence.
    pub chunk_id: u32,
    /// Fragments announced.
    pub count: u16,
    /// The flags, from bit 0.
    pub flags: u16,
    /// Bytes after the header.
    pub payload: Vec<u8>,
}

impl RawChunk {
    /// With these fragments, each after its size in as few bytes as possible.
    pub fn new(writer_id: u16, chunk_id: u32, fragments: &[impl AsRef<[u8]>]) -> Self {
        let mut payload = Proto::new();
        for fragment in fragments {
            payload = payload.sized(fragment.as_ref());
        }
        let count = u16::try_from(fragments.len()).expect("few fragments");
        Self { writer_id, chunk_id, count, flags: 0, payload: payload.0 }
    }

    /// With these flags.
    #[must_use]
    pub fn flags(mut self, flags: u16) -> Self {
        self.flags = flags;
        self
    }

    /// Header and payload.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let packets = self.count | self.flags << 10;
        [&self.chunk_id.to_le_bytes(), &self.writer_id.to_le_bytes()[..], &packets.to_le_bytes(), &self.payload]
            .concat()
    }
}

/// An instance of a data source that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Its id.
    pub instance: u64,
    /// The buffer it writes to.
    pub buffer: u64,
    /// The whole config.
    pub config: Vec<u8>,
}

/// A producer on a new connection.
#[derive(Debug)]
pub struct RawProducer {
    /// The connection.
    pub peer: Peer,
    /// Reply to InitializeConnection.
    pub answer: Vec<u8>,
    commands: u64,
    /// Commands that came while another answer was waited for.
    waiting: VecDeque<Reply>,
    memory: Option<OwnedFd>,
}

impl RawProducer {
    /// Connects and introduces itself with its name only.
    #[must_use]
    pub fn connect(harness: &Harness, name: &str) -> Self {
        Self::introduce(Peer::producer(harness), &Proto::new().bytes(3, name), &[])
    }

    /// Introduces itself over a connection and asks for commands, in one go as Perfetto's producers
    /// do.
    ///
    /// # Panics
    ///
    /// It is rejected.
    #[must_use]
    pub fn introduce(mut peer: Peer, introduction: &Proto, fds: &[BorrowedFd<'_>]) -> Self {
        let (hello, first) = peer.call_frame("InitializeConnection", introduction);
        let (commands, second) = peer.call_frame("GetAsyncCommand", &Proto::new());
        let both = [first, second].concat();
        if fds.is_empty() {
            peer.send(&both);
        } else {
            peer.send_with_fds(&both, fds);
        }
        let reply = peer.reply_to(hello);
        assert!(reply.success, "InitializeConnection: {reply:?}");
        Self { peer, answer: reply.body, commands, waiting: VecDeque::new(), memory: None }
    }

    /// Offers a data source by its name.
    pub fn offer(&mut self, name: &str) {
        self.register(&Proto::new().bytes(1, name));
    }

    /// Offers a data source with a DataSourceDescriptor.
    ///
    /// # Panics
    ///
    /// The call fails.
    pub fn register(&mut self, descriptor: &Proto) {
        assert!(self.call("RegisterDataSource", &Proto::new().message(1, descriptor)).success);
    }

    /// Calls a method and waits for its reply; commands that come meanwhile are kept.
    ///
    /// # Panics
    ///
    /// The service closes the connection instead.
    pub fn call(&mut self, method: &str, args: &Proto) -> Reply {
        let (id, frame) = self.peer.call_frame(method, args);
        self.peer.send(&frame);
        loop {
            let reply = self.peer.read().unwrap_or_else(|| panic!("the service closed the connection at {method}"));
            if reply.request_id == id {
                return reply;
            }
            if reply.request_id == self.commands {
                self.waiting.push_back(reply);
            }
        }
    }

    /// The next command: its number and its body.
    ///
    /// # Panics
    ///
    /// The service ends the stream of commands.
    pub fn command(&mut self) -> (u32, Vec<u8>) {
        let reply = self.waiting.pop_front().unwrap_or_else(|| self.peer.reply_to(self.commands));
        assert!(reply.success && reply.has_more, "commands go on: {reply:?}");
        if let Some(fd) = self.peer.take_descriptor() {
            self.memory = Some(fd);
        }
        let (number, value) = wire::fields(&reply.body).pop().expect("a command");
        let wire::Value::Bytes(body) = value else { panic!("commands are messages") };
        (number, body.to_vec())
    }

    /// The next command of this number; others are passed over.
    pub fn await_command(&mut self, number: u32) -> Vec<u8> {
        loop {
            let (found, body) = self.command();
            if found == number {
                return body;
            }
        }
    }

    /// Follows the commands until an instance is started.
    ///
    /// # Panics
    ///
    /// It has no config.
    pub fn await_start(&mut self) -> Started {
        let start = self.await_command(1);
        let config = wire::last(&start, 2).expect("a config").to_vec();
        Started { instance: wire::int(&start, 1), buffer: wire::int(&config, 2), config }
    }

    /// Waits for a flush, and returns its id.
    pub fn await_flush(&mut self) -> u64 {
        wire::int(&self.await_command(5), 2)
    }

    /// The shared memory.
    ///
    /// # Panics
    ///
    /// The service has not sent any yet.
    #[must_use]
    pub fn memory(&self) -> BorrowedFd<'_> {
        self.memory.as_ref().expect("setup_tracing brings a descriptor").as_fd()
    }

    /// True if the service has sent shared memory.
    #[must_use]
    pub fn has_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Uses this memory in place of the service's.
    pub fn set_memory(&mut self, memory: OwnedFd) {
        self.memory = Some(memory);
    }

    /// Number of pages of the memory.
    #[must_use]
    pub fn pages(&self) -> usize {
        let size = rustix::fs::fstat(self.memory()).expect("a size").st_size;
        usize::try_from(size).expect("a size") / PAGE_SIZE
    }

    /// Writes into the memory.
    ///
    /// # Panics
    ///
    /// It cannot be written.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let written = rustix::io::pwrite(self.memory(), bytes, offset as u64).expect("the memory can be written");
        assert_eq!(written, bytes.len());
    }

    /// The word of a page.
    ///
    /// # Panics
    ///
    /// There is no such page.
    #[must_use]
    pub fn word(&self, page: usize) -> u32 {
        let mut word = [0; 4];
        let read =
            rustix::io::pread(self.memory(), &mut word, (page * PAGE_SIZE) as u64).expect("the memory can be read");
        assert_eq!(read, 4);
        u32::from_le_bytes(word)
    }

    /// Puts a chunk that fills a page into the memory, then the page's word.
    pub fn put(&self, page: usize, word: u32, chunk: &RawChunk) {
        let mut bytes = chunk.to_bytes();
        bytes.resize(PAGE_SIZE - 8, 0);
        self.write(page * PAGE_SIZE + 8, &bytes);
        self.write(page * PAGE_SIZE, &word.to_le_bytes());
    }

    /// Calls CommitData and waits for its reply. Then the service has copied and freed the chunks.
    pub fn commit(&mut self, request: &Proto) -> Reply {
        self.call("CommitData", request)
    }

    /// Puts a complete chunk into page 0 and commits it.
    ///
    /// # Panics
    ///
    /// The commit is rejected.
    pub fn commit_chunk(&mut self, buffer: u64, chunk: &RawChunk) {
        self.put(0, ONE_COMPLETE, chunk);
        assert!(self.commit(&Proto::new().message(1, &moved(0, 0, buffer))).success);
    }

    /// As [`commit_chunk`](Self::commit_chunk), by value, for those without shared memory.
    ///
    /// # Panics
    ///
    /// The commit is rejected.
    pub fn commit_data(&mut self, buffer: u64, chunk: &RawChunk) {
        assert!(self.commit(&Proto::new().message(1, &moved(0, 0, buffer).bytes(4, chunk.to_bytes()))).success);
    }

    /// Acknowledges a flush.
    pub fn acknowledge(&mut self, flush: u64) {
        let _ = self.commit(&Proto::new().int(3, flush));
    }
}

/// A ChunksToMove.
#[must_use]
pub fn moved(page: u64, chunk: u64, buffer: u64) -> Proto {
    Proto::new().int(1, page).int(2, chunk).int(3, buffer)
}

/// A ChunkToPatch, with offsets and values.
#[must_use]
pub fn patched(buffer: u64, writer_id: u64, chunk_id: u64, patches: &[(u64, &[u8])], more: bool) -> Proto {
    let mut patch = Proto::new().int(1, buffer).int(2, writer_id).int(3, chunk_id);
    for (offset, value) in patches {
        patch = patch.message(4, &Proto::new().int(1, *offset).bytes(2, value));
    }
    if more { patch.int(5, 1) } else { patch }
}

/// A packet for tests: a number and a text.
#[must_use]
pub fn packet(number: u64, text: &str) -> Vec<u8> {
    Proto::new().int(8, number + 1).message(900, &Proto::new().bytes(1, text).int(2, number)).0
}

/// The text and number of a packet of [`packet`]; none of any other.
#[must_use]
pub fn text_of(packet: &[u8]) -> Option<(u64, String)> {
    let event = wire::last(packet, 900)?;
    Some((wire::int(event, 2), String::from_utf8_lossy(wire::last(event, 1)?).into_owned()))
}

/// A consumer on a new connection.
#[derive(Debug)]
pub struct RawConsumer {
    /// The connection.
    pub peer: Peer,
    enabled: Option<u64>,
}

impl RawConsumer {
    /// Connects.
    #[must_use]
    pub fn connect(harness: &Harness) -> Self {
        Self { peer: Peer::consumer(harness), enabled: None }
    }

    /// Starts a session with this TraceConfig; its end is waited for with [`ended`](Self::ended).
    pub fn enable(&mut self, config: &Proto) {
        let (id, frame) = self.peer.call_frame("EnableTracing", &Proto::new().message(1, config));
        self.peer.send(&frame);
        self.enabled = Some(id);
    }

    /// Waits until the session has ended; what EnableTracing is answered.
    ///
    /// # Panics
    ///
    /// There is no session.
    pub fn ended(&mut self) -> Reply {
        let id = self.enabled.take().expect("EnableTracing was called");
        self.peer.reply_to(id)
    }

    /// Calls Flush without waiting; the request's id.
    pub fn flush(&mut self, timeout_ms: u64) -> u64 {
        let (id, frame) = self.peer.call_frame("Flush", &Proto::new().int(1, timeout_ms));
        self.peer.send(&frame);
        id
    }

    /// Ends the session and waits for the end.
    ///
    /// # Panics
    ///
    /// It ends with an error.
    pub fn disable(&mut self) {
        assert!(self.peer.call("DisableTracing", &Proto::new()).success);
        let reply = self.ended();
        assert!(reply.success && wire::last(&reply.body, 3).is_none(), "{reply:?}");
    }

    /// Reads all that is in the buffers: the packets, whole.
    ///
    /// # Panics
    ///
    /// A packet is not finished.
    pub fn read(&mut self) -> Vec<Vec<u8>> {
        let (id, frame) = self.peer.call_frame("ReadBuffers", &Proto::new());
        self.peer.send(&frame);
        let (mut packets, mut packet) = (Vec::new(), Vec::new());
        loop {
            let reply = self.peer.reply_to(id);
            assert!(reply.success, "ReadBuffers: {reply:?}");
            for slice in wire::all(&reply.body, 2) {
                packet.extend_from_slice(wire::last(slice, 1).unwrap_or_default());
                if wire::int(slice, 2) != 0 {
                    packets.push(std::mem::take(&mut packet));
                }
            }
            if !reply.has_more {
                assert!(packet.is_empty(), "the last packet is whole");
                return packets;
            }
        }
    }

    /// The numbers and texts of the packets of [`packet`] that are in the buffers.
    pub fn read_texts(&mut self) -> Vec<(u64, String)> {
        self.read().iter().filter_map(|packet| text_of(packet)).collect()
    }

    /// TraceStats.
    ///
    /// # Panics
    ///
    /// There are none.
    pub fn stats(&mut self) -> Vec<u8> {
        let reply = self.peer.call("GetTraceStats", &Proto::new());
        wire::last(&reply.body, 1).expect("trace_stats").to_vec()
    }
}

/// A TraceConfig with one buffer of this size and these data sources.
#[must_use]
pub fn config(size_kb: u64, data_sources: &[&str]) -> Proto {
    let config = Proto::new().message(1, &Proto::new().int(1, size_kb));
    data_sources
        .iter()
        .fold(config, |config, name| config.message(2, &Proto::new().message(1, &Proto::new().bytes(1, name))))
}
