//! Services of another age, played by hand: they know the methods of a table and nothing else
//! (`docs/spec/wire-protocol.md` §18).

use crate::raw::{FIRST_CONTINUES, LAST_CONTINUES, ONE_BEING_WRITTEN, ONE_COMPLETE, PAGE_SIZE};
use crate::wire::{self, Peer, Proto};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;

/// Methods of a port with their numbers.
pub type Methods = Vec<(u64, &'static str)>;

/// The methods of ProducerPort, in the order in which they were added.
pub const PRODUCER_METHODS: [&str; 12] = [
    "InitializeConnection",
    "RegisterDataSource",
    "UnregisterDataSource",
    "CommitData",
    "GetAsyncCommand",
    "RegisterTraceWriter",
    "UnregisterTraceWriter",
    "NotifyDataSourceStarted",
    "NotifyDataSourceStopped",
    "ActivateTriggers",
    "Sync",
    "UpdateDataSource",
];

/// The methods of ConsumerPort, in the order in which they were added.
pub const CONSUMER_METHODS: [&str; 15] = [
    "EnableTracing",
    "DisableTracing",
    "ReadBuffers",
    "FreeBuffers",
    "Flush",
    "StartTracing",
    "ChangeTraceConfig",
    "Detach",
    "Attach",
    "GetTraceStats",
    "ObserveEvents",
    "QueryServiceState",
    "QueryCapabilities",
    "SaveTraceForBugreport",
    "CloneSession",
];

/// The first methods of a port, with the numbers that they always had.
#[must_use]
pub fn first(count: usize, methods: &[&'static str]) -> Methods {
    (1..).zip(methods[..count].iter().copied()).collect()
}

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Request id for the reply.
    pub id: u64,
    /// The name of the method.
    pub method: &'static str,
    /// Its arguments.
    pub args: Vec<u8>,
    /// No answer is wanted.
    pub drop_reply: bool,
}

/// The service's end of one connection.
#[derive(Debug)]
pub struct FakeService {
    /// The connection.
    pub peer: Peer,
    methods: Methods,
    /// The names of all calls so far.
    pub calls: Vec<&'static str>,
}

impl FakeService {
    /// Waits for a client.
    ///
    /// # Panics
    ///
    /// No client can connect.
    #[must_use]
    pub fn accept(listener: &UnixListener, methods: &Methods) -> Self {
        let (stream, _) = listener.accept().expect("a client");
        Self { peer: Peer::over(stream), methods: methods.clone(), calls: Vec::new() }
    }

    /// The next call; none when the client has gone. Binds are answered on the way.
    ///
    /// # Panics
    ///
    /// The client calls something that it was not told of.
    pub fn call(&mut self) -> Option<Call> {
        loop {
            let frame = self.peer.read_frame()?;
            let id = wire::int(&frame, 2);
            if wire::last(&frame, 3).is_some() {
                let reply = Proto::new().int(1, 1).int(2, 3);
                let reply = self
                    .methods
                    .iter()
                    .fold(reply, |reply, (id, name)| reply.message(3, &Proto::new().int(1, *id).bytes(2, name)));
                self.peer.send(&Proto::new().int(2, id).message(4, &reply).frame());
                continue;
            }
            let invoke = wire::last(&frame, 5).expect("a bind or a call");
            assert_eq!(wire::int(invoke, 1), 3, "the number of the service");
            let number = wire::int(invoke, 2);
            let found = self.methods.iter().find(|(id, _)| *id == number);
            let (_, method) = found.unwrap_or_else(|| panic!("the client calls method {number}, which is not there"));
            self.calls.push(method);
            let args = wire::last(invoke, 3).unwrap_or_default().to_vec();
            return Some(Call { id, method, args, drop_reply: wire::int(invoke, 4) != 0 });
        }
    }

    /// Answers a call, unless no answer is wanted.
    pub fn reply(&mut self, call: &Call, body: &Proto) {
        if !call.drop_reply {
            self.reply_to(call.id, body, false, None);
        }
    }

    /// One of several answers, with a descriptor.
    pub fn reply_to(&mut self, id: u64, body: &Proto, has_more: bool, fd: Option<&OwnedFd>) {
        self.reply_with(id, body, has_more, fd.map(|fd| fd.as_fd()).as_slice());
    }

    fn reply_with(&mut self, id: u64, body: &Proto, has_more: bool, fds: &[BorrowedFd<'_>]) {
        let reply = Proto::new().int(1, 1).int(2, u64::from(has_more)).message(3, body);
        let frame = Proto::new().int(2, id).message(6, &reply).frame();
        match fds {
            [] => self.peer.send(&frame),
            fds => self.peer.send_with_fds(&frame, fds),
        }
    }
}

/// Fragments announced, flags, payload.
type Chunk = (u16, u16, Vec<u8>);

/// A service to which one producer is connected.
#[derive(Debug)]
pub struct FakeProducerPort {
    /// The connection.
    pub service: FakeService,
    /// Reply to InitializeConnection.
    pub introduction: Proto,
    commands: Option<u64>,
    memory: OwnedFd,
    /// By writer and number.
    chunks: BTreeMap<(u16, u32), Chunk>,
    /// Flushes that were acknowledged.
    pub flushed: Vec<u64>,
}

impl FakeProducerPort {
    /// Waits for a producer.
    ///
    /// # Panics
    ///
    /// There is no memory for it.
    #[must_use]
    pub fn accept(listener: &UnixListener, methods: &Methods, introduction: Proto) -> Self {
        let memory = memfd_create("perfetto_shmem", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).expect("a memfd");
        ftruncate(&memory, 64 * PAGE_SIZE as u64).expect("a size");
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).expect("seals");
        let service = FakeService::accept(listener, methods);
        Self { service, introduction, commands: None, memory, chunks: BTreeMap::new(), flushed: Vec::new() }
    }

    /// Serves until this method was called so many times.
    ///
    /// # Panics
    ///
    /// The producer goes before.
    pub fn serve_until(&mut self, method: &str, times: usize) {
        while self.service.calls.iter().filter(|called| **called == method).count() < times {
            assert!(self.serve(), "the producer goes without calling {method}: {:?}", self.service.calls);
        }
    }

    /// Serves one call; false when the producer has gone.
    pub fn serve(&mut self) -> bool {
        let Some(call) = self.service.call() else { return false };
        match call.method {
            "InitializeConnection" => {
                let introduction = self.introduction.clone();
                self.service.reply(&call, &introduction);
            }
            "GetAsyncCommand" => self.commands = Some(call.id),
            "CommitData" => {
                self.commit(&call.args);
                self.service.reply(&call, &Proto::new());
            }
            _ => self.service.reply(&call, &Proto::new()),
        }
        true
    }

    /// Sends a command.
    ///
    /// # Panics
    ///
    /// The producer has not asked for any.
    pub fn command(&mut self, number: u32, body: &Proto) {
        let commands = self.commands.expect("GetAsyncCommand was called");
        self.service.reply_to(commands, &Proto::new().message(number, body), true, None);
    }

    /// Sends many commands at once.
    ///
    /// # Panics
    ///
    /// The producer has not asked for any.
    pub fn commands_at_once(&mut self, number: u32, bodies: impl Iterator<Item = Proto>) {
        let commands = self.commands.expect("GetAsyncCommand was called");
        let reply = |body: Proto| Proto::new().int(1, 1).int(2, 1).message(3, &Proto::new().message(number, &body));
        let frames = bodies.map(|body| Proto::new().int(2, commands).message(6, &reply(body)).frame());
        self.service.peer.send(&frames.collect::<Vec<_>>().concat());
    }

    /// Ends the stream of commands: by rejecting the call, or as one that it does not understand.
    ///
    /// # Panics
    ///
    /// The producer has not asked for any.
    pub fn end_commands(&mut self, is_understood: bool) {
        let commands = self.commands.take().expect("GetAsyncCommand was called");
        let end = if is_understood {
            Proto::new().message(6, &Proto::new().int(1, 0))
        } else {
            Proto::new().message(7, &Proto::new().bytes(1, "what?"))
        };
        self.service.peer.send(&end.int(2, commands).frame());
    }

    /// Sends a command, and ends the stream of commands with it.
    ///
    /// # Panics
    ///
    /// The producer has not asked for any.
    pub fn last_command(&mut self, number: u32, body: &Proto) {
        let commands = self.commands.take().expect("GetAsyncCommand was called");
        self.service.reply_to(commands, &Proto::new().message(number, body), false, None);
    }

    /// Sends a command, perhaps with a descriptor.
    ///
    /// # Panics
    ///
    /// The producer has not asked for any.
    pub fn command_with(&mut self, number: u32, body: &Proto, fd: Option<&OwnedFd>) {
        let commands = self.commands.expect("GetAsyncCommand was called");
        self.service.reply_to(commands, &Proto::new().message(number, body), true, fd);
    }

    /// Sends a command with descriptors.
    ///
    /// # Panics
    ///
    /// The producer has not asked for any.
    pub fn command_with_all(&mut self, number: u32, body: &Proto, fds: &[BorrowedFd<'_>]) {
        let commands = self.commands.expect("GetAsyncCommand was called");
        self.service.reply_with(commands, &Proto::new().message(number, body), true, fds);
    }

    /// Sends setup_tracing with the memory.
    ///
    /// # Panics
    ///
    /// The producer has not asked for commands.
    pub fn setup_tracing(&mut self) {
        let commands = self.commands.expect("GetAsyncCommand was called");
        let setup = Proto::new().message(3, &Proto::new().int(1, 4));
        self.service.reply_to(commands, &setup, true, Some(&self.memory));
    }

    /// Takes the chunks that the producer has left in the memory without a commit. A thread that
    /// ends while its process does so may not get to it.
    pub fn scrape(&mut self) {
        for page in 0..64 {
            let (word, key, (count, flags, payload)) = self.look(page * PAGE_SIZE as u64);
            let chunk = match word {
                ONE_COMPLETE => (count, flags, payload),
                // The last fragment is not finished.
                ONE_BEING_WRITTEN => (count.saturating_sub(1), flags & FIRST_CONTINUES, payload),
                _ => continue,
            };
            self.chunks.entry(key).or_insert(chunk);
        }
    }

    /// The word of a page with one chunk, the chunk's writer and id, and its content.
    fn look(&self, page: u64) -> (u32, (u16, u32), Chunk) {
        let mut bytes = [0; PAGE_SIZE];
        rustix::io::pread(&self.memory, &mut bytes, page).expect("the memory");
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let whole = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
        let packets = half(14);
        (whole(0), (half(12), whole(8)), (packets & 0x3ff, packets >> 10, bytes[16..].to_vec()))
    }

    /// Takes chunks, applies patches, notes flushes.
    fn commit(&mut self, request: &[u8]) {
        for moved in wire::all(request, 1) {
            let page = wire::int(moved, 1) * PAGE_SIZE as u64;
            assert_eq!((wire::int(moved, 2), wire::int(moved, 3)), (0, 1), "the only chunk, and the only buffer");
            let (word, key, chunk) = self.look(page);
            assert_eq!(word, ONE_COMPLETE);
            self.chunks.insert(key, chunk);
            rustix::io::pwrite(&self.memory, &[0; 8], page + 8).expect("the memory");
            rustix::io::pwrite(&self.memory, &[0; 4], page).expect("the memory");
        }
        for patched in wire::all(request, 2) {
            let writer = u16::try_from(wire::int(patched, 2)).expect("a writer");
            let chunk_id = u32::try_from(wire::int(patched, 3)).expect("a chunk");
            let (.., payload) = self.chunks.get_mut(&(writer, chunk_id)).expect("patches come behind their chunk");
            for patch in wire::all(patched, 4) {
                let at = usize::try_from(wire::int(patch, 1)).expect("an offset");
                payload[at..at + 4].copy_from_slice(wire::last(patch, 2).expect("4 bytes"));
            }
        }
        self.flushed.extend(Some(wire::int(request, 3)).filter(|id| *id != 0));
    }

    /// The packets that were committed, by writer.
    ///
    /// # Panics
    ///
    /// A chunk is missing, or its content is malformed.
    #[must_use]
    pub fn packets(&self) -> Vec<Vec<u8>> {
        let mut packets: Vec<Vec<u8>> = Vec::new();
        let mut last: Option<(u16, u32)> = None;
        let mut continues = false;
        for ((writer, chunk_id), (count, flags, payload)) in &self.chunks {
            let is_next = last.is_some_and(|last| last == (*writer, chunk_id.wrapping_sub(1)));
            assert!(is_next || *chunk_id == 0, "chunk {chunk_id} of writer {writer} comes behind {last:?}");
            assert_eq!(flags & FIRST_CONTINUES != 0, continues && is_next);
            last = Some((*writer, *chunk_id));
            let mut rest = &payload[..];
            for number in 0..*count {
                let size = usize::try_from(wire::take_varint(&mut rest)).expect("a size");
                let (fragment, later) = rest.split_at(size);
                rest = later;
                match packets.last_mut().filter(|_| number == 0 && flags & FIRST_CONTINUES != 0) {
                    Some(packet) => packet.extend_from_slice(fragment),
                    None => packets.push(fragment.to_vec()),
                }
            }
            continues = flags & LAST_CONTINUES != 0;
        }
        packets.retain(|packet| !packet.is_empty());
        packets
    }
}
