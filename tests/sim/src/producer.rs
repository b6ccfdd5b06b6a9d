//! An honest producer. It obeys the service; the profile draws its crashes, delays and lost
//! messages.

use std::collections::VecDeque;
use std::sync::Arc;

use esatto_schema::{GetAsyncCommandResponseReader, producer_port::Method};
use esatto_service::{MemoryKind, Peer};
use esatto_shm::abi::{ChunkFlags, ChunkHeader, ChunkState, Packets, PageLayout, PageSize};
use esatto_shm::state::BeingWritten;
use esatto_shm::sync::Ordering;
use esatto_shm::{Chunk, PrivateRegion, Smb};

use crate::content::{self, Name};
use crate::memory;
use crate::pb::{Pb, varint4};
use crate::profile::MS;
use crate::world::{Actor, Attached, ClientReply, Event, Phase, Port, SharedMemory, World};

const DROP_MARKER: [u8; 4] = [0xff, 0xff, 0xff, 0x7f];
/// Bytes of a chunk that travels by value.
const EMULATED_CHUNK: usize = 4088;
/// Chunks of this many packets are full.
const MAX_PACKETS: u16 = 1000;

/// A producer.
#[derive(Debug)]
pub struct Producer {
    client: usize,
    /// Its number in the packets it writes.
    pub tag: u32,
    /// True if its data sources acknowledge starts.
    pub notifies_start: bool,
    /// True if its data sources acknowledge stops.
    pub notifies_stop: bool,
    /// True if its data sources need no flushes.
    pub no_flush: bool,
    tells_first: bool,
    is_emulated: bool,
    layout: PageLayout,
    commands: u64,
    inbox: VecDeque<Command>,
    smb: Option<Smb<Arc<PrivateRegion>>>,
    writers: Vec<Writer>,
    next_writer: u16,
    pending: Pending,
}

#[derive(Debug, Default)]
struct Pending {
    moves: Vec<Move>,
    patches: Vec<PatchEntry>,
}

#[derive(Debug)]
struct Move {
    page: u32,
    chunk: u32,
    target: u16,
    data: Option<Vec<u8>>,
}

#[derive(Debug)]
struct PatchEntry {
    target: u16,
    writer: u16,
    chunk: u32,
    offset: usize,
    data: [u8; 4],
}

#[derive(Clone, Debug)]
enum Command {
    Start { instance: u64, target: u16 },
    Stop { instance: u64 },
    Flush { id: u64 },
}

#[derive(Debug)]
struct Writer {
    id: u16,
    target: u16,
    instance: u64,
    next_chunk: u32,
    next_number: u32,
    open: Option<Open>,
    half: Option<Half>,
}

/// A packet that is being written.
#[derive(Debug)]
struct Half {
    bytes: Vec<u8>,
    size_at: usize,
}

/// The chunk that a writer fills.
#[derive(Debug)]
struct Open {
    id: u32,
    place: Place,
    used: usize,
    size: usize,
    count: u16,
    flags: u8,
}

#[derive(Debug)]
enum Place {
    Shared(Chunk<BeingWritten>),
    Own(Vec<u8>),
}

impl Producer {
    /// Connects and offers data sources.
    pub fn connect(world: &mut World) {
        let is_emulated = world.rng.percent(world.profile.emulated);
        let memory_kind = if is_emulated { MemoryKind::Emulated } else { MemoryKind::Shared };
        let machine_id = if is_emulated && world.rng.percent(30) { 7 } else { 0 };
        let pid = world.rng.between(2, 30_000) as i32;
        let pid = (!is_emulated || world.rng.percent(50)).then_some(pid);
        let peer = Peer { uid: 1000 + world.rng.below(5) as i32, pid, machine_id };
        let client = world.connect(peer, memory_kind, Port::Producer, false);

        let page_size = world.rng.pick(&[4096, 4096, 4096, 8192, 32768]);
        let size = page_size * world.rng.pick(&[4, 8, 16]);
        let is_scraped = world.rng.percent(world.profile.scraped);
        let brings_memory = !is_emulated && world.rng.percent(world.profile.own_memory);
        let mut hello = Pb::default().int(1, page_size as u64).int(2, size as u64);
        hello = hello.bytes(3, format!("producer-{client}").as_bytes());
        hello = hello.int(4, if is_scraped { 1 } else { 2 });
        if brings_memory {
            hello = hello.int(6, 1);
            let region = Arc::new(PrivateRegion::new(size));
            world.clients[client].memory = Some(SharedMemory { region, page_size });
        }
        let attached = brings_memory.then_some(Attached::Memory);
        world.call_with(client, Method::InitializeConnection.id(), &hello.0, false, attached);
        let commands = world.call(client, Method::GetAsyncCommand.id(), &[], false);

        let (notifies_start, notifies_stop) = (world.rng.percent(50), world.rng.percent(60));
        let no_flush = world.rng.percent(10);
        let sources = world.rng.between(1, 2);
        let first = world.rng.below(world.profile.sources);
        for i in 0..sources {
            let name = format!("source-{}", (first + i) % world.profile.sources);
            let descriptor = Pb::default()
                .bytes(1, name.as_bytes())
                .int(2, notifies_stop.into())
                .int(3, notifies_start.into())
                .int(4, 1)
                .int(7, i + 1)
                .int(9, no_flush.into());
            let request = Pb::default().bytes(1, &descriptor.0);
            world.call(client, Method::RegisterDataSource.id(), &request.0, true);
        }
        let divided = world.rng.percent(world.profile.divided);
        let layout = if divided { world.rng.pick(&PageLayout::ALL) } else { PageLayout::Div1 };
        let producer = Self {
            client,
            tag: client as u32,
            notifies_start,
            notifies_stop,
            no_flush,
            tells_first: world.rng.percent(world.profile.tells_first),
            is_emulated,
            layout,
            commands,
            inbox: VecDeque::new(),
            smb: None,
            writers: Vec::new(),
            next_writer: 1,
            pending: Pending::default(),
        };
        world.actors[client] = Some(Actor::Honest(Box::new(producer)));
        let delay_ns = world.rng.below(world.profile.pause_ns);
        world.after(delay_ns, Event::Act(client));
    }

    /// Takes a reply.
    pub fn receive(&mut self, reply: &ClientReply<'_>, world: &mut World) {
        if reply.request != self.commands || !reply.success {
            return;
        }
        let command = GetAsyncCommandResponseReader::new(reply.body);
        if command.setup_tracing().is_some() {
            let memory = world.clients[self.client].memory.clone();
            self.smb = memory.map(|memory| {
                let page_size = PageSize::new(memory.page_size).expect("what was granted");
                Smb::new(memory.region, page_size).expect("what was granted")
            });
        } else if let Some(start) = command.start_data_source() {
            let target = start.config().and_then(|config| config.target_buffer()).unwrap_or(0) as u16;
            self.inbox.push_back(Command::Start { instance: start.new_instance_id().unwrap_or(0), target });
        } else if let Some(stop) = command.stop_data_source() {
            self.inbox.push_back(Command::Stop { instance: stop.instance_id().unwrap_or(0) });
        } else if let Some(flush) = command.flush() {
            self.inbox.push_back(Command::Flush { id: flush.request_id().unwrap_or(0) });
        }
    }

    /// Does the next step.
    pub fn act(&mut self, world: &mut World) {
        let profile = world.profile.clone();
        let is_running = world.phase == Phase::Running;
        if world.phase == Phase::Leaving {
            return;
        }
        if is_running && profile.crash_one_in != 0 && world.rng.one_in(profile.crash_one_in) {
            return world.crash(self.client);
        }
        for at in 0..self.writers.len() {
            self.finish_half(at, world);
        }
        for _ in 0..world.rng.between(1, 4) {
            match self.inbox.pop_front() {
                Some(command) => self.obey(&command, world),
                None => break,
            }
        }
        if is_running && !self.writers.is_empty() && (self.is_emulated || self.smb.is_some()) {
            for _ in 0..world.rng.between(1, 5) {
                let at = world.rng.index(self.writers.len());
                self.write_packet(at, world);
            }
        }
        let is_much = self.pending.moves.len() > 6 || !self.pending.patches.is_empty();
        if is_much || !self.pending.moves.is_empty() && world.rng.percent(60) {
            self.commit(0, world);
        }
        if is_running && world.rng.one_in(60) {
            self.something_else(world);
        }
        let pause_ns = if is_running { profile.pause_ns } else { 10 * MS };
        let pause_ns = world.rng.between(pause_ns / 20, pause_ns);
        world.after(pause_ns, Event::Act(self.client));
    }

    fn something_else(&mut self, world: &mut World) {
        match world.rng.below(4) {
            0 => {
                let name = format!("trigger-{}", world.rng.below(4));
                let request = Pb::default().bytes(1, name.as_bytes());
                world.call(self.client, Method::ActivateTriggers.id(), &request.0, true);
            }
            1 => drop(world.call(self.client, Method::Sync.id(), &[], false)),
            // A chunk is finished before it is full.
            2 if !self.writers.is_empty() => {
                let at = world.rng.index(self.writers.len());
                self.finish_chunk(at);
            }
            _ => {
                // Registers a data source under a name that no session asks for, and unregisters
                // it.
                let name = format!("other-{}", self.client);
                let descriptor = Pb::default().bytes(1, name.as_bytes());
                world.call(
                    self.client,
                    Method::RegisterDataSource.id(),
                    &Pb::default().bytes(1, &descriptor.0).0,
                    true,
                );
                world.call(
                    self.client,
                    Method::UnregisterDataSource.id(),
                    &Pb::default().bytes(1, name.as_bytes()).0,
                    true,
                );
            }
        }
    }

    fn obey(&mut self, command: &Command, world: &mut World) {
        let forgets = world.rng.percent(world.profile.forgotten_acks);
        match *command {
            Command::Start { instance, target } => {
                for _ in 0..world.rng.between(1, 2) {
                    let id = self.next_writer;
                    self.next_writer += 1;
                    let wraps = world.rng.percent(world.profile.wrapping_ids);
                    let next_chunk = if wraps { u32::MAX - world.rng.below(4) as u32 } else { 0 };
                    self.writers.push(Writer {
                        id,
                        target,
                        instance,
                        next_chunk,
                        next_number: 0,
                        open: None,
                        half: None,
                    });
                    if !world.rng.percent(world.profile.unregistered) {
                        let request = Pb::default().int(1, id.into()).int(2, target.into());
                        world.call(self.client, Method::RegisterTraceWriter.id(), &request.0, true);
                    }
                }
                if self.notifies_start && !forgets {
                    let request = Pb::default().int(1, instance);
                    world.call(self.client, Method::NotifyDataSourceStarted.id(), &request.0, true);
                }
            }
            Command::Stop { instance } => {
                for at in 0..self.writers.len() {
                    if self.writers[at].instance == instance {
                        self.finish_half(at, world);
                        self.finish_chunk(at);
                    }
                }
                self.commit(0, world);
                if self.notifies_stop && !forgets {
                    let request = Pb::default().int(1, instance);
                    world.call(self.client, Method::NotifyDataSourceStopped.id(), &request.0, true);
                }
                let (gone, kept) = core::mem::take(&mut self.writers)
                    .into_iter()
                    .partition::<Vec<_>, _>(|writer| writer.instance == instance);
                self.writers = kept;
                for writer in gone {
                    if world.rng.percent(50) {
                        let request = Pb::default().int(1, writer.id.into());
                        world.call(self.client, Method::UnregisterTraceWriter.id(), &request.0, true);
                    }
                }
            }
            Command::Flush { id } => {
                let is_thorough = world.rng.percent(70);
                for at in 0..self.writers.len() {
                    if is_thorough && self.writers[at].half.is_none() {
                        self.finish_chunk(at);
                    }
                }
                if !forgets {
                    self.commit(id, world);
                }
            }
        }
    }

    /// Sends the commits that are due.
    fn commit(&mut self, flush: u64, world: &mut World) {
        let mut pending = core::mem::take(&mut self.pending);
        if pending.moves.is_empty() && pending.patches.is_empty() && flush == 0 {
            return;
        }
        if world.rng.percent(world.profile.shuffled) {
            for at in (1..pending.moves.len()).rev() {
                pending.moves.swap(at, world.rng.index(at + 1));
            }
        }
        let mut request = Pb::default();
        for entry in &pending.moves {
            let lost = world.profile.lost_commit_one_in;
            if lost != 0 && world.rng.one_in(lost) {
                continue;
            }
            let mut chunk =
                Pb::default().int(1, entry.page.into()).int(2, entry.chunk.into()).int(3, entry.target.into());
            if let Some(data) = &entry.data {
                chunk = chunk.bytes(4, data);
            }
            request = request.bytes(1, &chunk.0);
        }
        for entry in pending.patches {
            if world.rng.percent(10) {
                // In two messages, the first of which does not release the chunk.
                let chunk = Pb::default().int(1, entry.target.into()).int(2, entry.writer.into());
                request = request.bytes(2, &chunk.int(3, entry.chunk.into()).int(5, 1).0);
                self.pending.patches.push(entry);
                continue;
            }
            if world.rng.percent(world.profile.lost_patches) {
                continue;
            }
            let patch = Pb::default().int(1, entry.offset as u64).bytes(2, &entry.data);
            let chunk = Pb::default()
                .int(1, entry.target.into())
                .int(2, entry.writer.into())
                .int(3, entry.chunk.into())
                .bytes(4, &patch.0);
            request = request.bytes(2, &chunk.0);
        }
        if flush != 0 {
            request = request.int(3, flush);
        }
        let drop_reply = world.rng.percent(80);
        world.call(self.client, Method::CommitData.id(), &request.0, drop_reply);
    }

    fn write_packet(&mut self, at: usize, world: &mut World) {
        if self.writers[at].half.is_some() {
            return;
        }
        let profile = &world.profile;
        let is_large = profile.large != 0 && world.rng.percent(profile.large);
        let filler = match is_large {
            true => world.rng.between(3000, 20_000),
            false => world.rng.below(profile.packet_bytes),
        } as usize;
        let writer = &self.writers[at];
        let name = Name { producer: self.tag, writer: writer.id, number: writer.next_number };
        let (bytes, length_at) = content::packet(name, filler, self.tells_first);
        if !self.has_room(at, bytes.len()) {
            return;
        }
        self.writers[at].next_number += 1;
        if world.rng.percent(world.profile.aborted) && self.free_chunks() > 2 {
            return self.write_aborted(at, &bytes);
        }
        let room = self.writers[at].open.as_ref().map_or(0, |open| open.size - open.used);
        if bytes.len() + 4 <= room && world.rng.percent(world.profile.half_written) {
            return self.begin_half(at, bytes);
        }
        let patched = world.rng.percent(world.profile.patched);
        self.write_whole(at, &bytes, patched.then_some(length_at));
    }

    /// Returns true if enough chunks are free for a packet.
    fn has_room(&self, at: usize, bytes: usize) -> bool {
        let Some(smb) = &self.smb else { return true };
        let open = self.writers[at].open.as_ref().map_or(0, |open| open.size - open.used);
        if bytes + 4 <= open {
            return true;
        }
        let payload = self.layout.chunk_size(smb.page_size()) - 8;
        self.free_chunks() >= bytes / (payload - 4) + 3
    }

    fn free_chunks(&self) -> usize {
        let Some(smb) = &self.smb else { return usize::MAX };
        (0..smb.pages())
            .map(|page| match smb.page_word(page) {
                word if word.chunks() == 0 => self.layout.chunks(),
                word => (0..word.chunks()).filter(|&i| word.state(i) == Some(ChunkState::Free)).count(),
            })
            .sum()
    }

    fn write_whole(&mut self, at: usize, bytes: &[u8], patch_at: Option<usize>) {
        let mut rest = bytes;
        let mut is_first = true;
        while !rest.is_empty() {
            self.open_chunk(at, if is_first { 0 } else { 1 });
            let open = self.writers[at].open.as_ref().expect("just opened");
            let room = open.size - open.used;
            // The first fragment holds the length that may be patched.
            let least = if is_first { rest.len().min(16) } else { 1 };
            if room < least + 4 {
                assert!(open.count > 0, "a chunk has room for a piece of a packet");
                self.finish_chunk(at);
                continue;
            }
            let (piece, more) = rest.split_at(rest.len().min(room - 4));
            let start = open.used + 4;
            let mut piece = piece.to_vec();
            let patch = patch_at.filter(|_| is_first && !more.is_empty());
            if let Some(offset) = patch {
                let data = piece[offset..offset + 4].try_into().expect("four bytes");
                piece[offset..offset + 4].fill(0);
                let writer = &self.writers[at];
                let chunk = writer.open.as_ref().expect("just opened").id;
                let entry =
                    PatchEntry { target: writer.target, writer: writer.id, chunk, offset: start + offset, data };
                self.pending.patches.push(entry);
            }
            self.put_fragment(at, &varint4(piece.len() as u32), &piece);
            if !more.is_empty() {
                self.raise_flags(at, if patch.is_some() { 2 | 4 } else { 2 });
                self.finish_chunk(at);
            }
            rest = more;
            is_first = false;
        }
        if self.writers[at].open.as_ref().is_some_and(|open| open.count >= MAX_PACKETS || open.size - open.used < 24) {
            self.finish_chunk(at);
        }
    }

    /// Writes a packet of which the service sees at most the beginning.
    fn write_aborted(&mut self, at: usize, bytes: &[u8]) {
        self.open_chunk(at, 0);
        let open = self.writers[at].open.as_ref().expect("just opened");
        let room = open.size - open.used;
        if room < 8 {
            self.finish_chunk(at);
            self.open_chunk(at, 0);
        }
        if bytes.len() % 2 == 0 && room >= 24 {
            // Begins it in one chunk and gives it up in the next.
            let piece = bytes[..8].to_vec();
            self.put_fragment(at, &varint4(8), &piece);
            self.raise_flags(at, 2);
            self.finish_chunk(at);
            self.open_chunk(at, 1);
        }
        self.put_fragment(at, &DROP_MARKER, &[]);
        self.finish_chunk(at);
    }

    fn begin_half(&mut self, at: usize, bytes: Vec<u8>) {
        self.open_chunk(at, 0);
        let open = self.writers[at].open.as_ref().expect("just opened");
        let size_at = open.used;
        let half = bytes.len() / 2;
        // Announces it, with an open length and some of its bytes.
        let piece = bytes[..half].to_vec();
        self.put_fragment(at, &[0x80, 0x80, 0x80, 0], &piece);
        self.writers[at].half = Some(Half { bytes, size_at });
    }

    fn finish_half(&mut self, at: usize, world: &mut World) {
        if self.writers[at].half.is_none() || world.rng.percent(50) && world.phase == Phase::Running {
            return;
        }
        let Some(half) = self.writers[at].half.take() else { return };
        let written = half.bytes.len() / 2;
        self.put_bytes(at, &half.bytes[written..]);
        let size = varint4(half.bytes.len() as u32);
        let open = self.writers[at].open.as_mut().expect("a packet is being written into it");
        open.put(self.smb.as_ref(), half.size_at, &size);
    }

    /// Ensures that the writer has a chunk. A new chunk begins with these flags.
    fn open_chunk(&mut self, at: usize, flags: u8) {
        let writer = &mut self.writers[at];
        if writer.open.is_some() {
            return;
        }
        let id = writer.next_chunk;
        writer.next_chunk = id.wrapping_add(1);
        let header = ChunkHeader { chunk_id: id, writer_id: writer.id, packets: Packets::new(0, ChunkFlags(flags)) };
        let (place, size) = match &self.smb {
            Some(smb) => {
                let chunk = acquire(smb, self.layout, header).expect("has_room counted");
                let size = chunk.payload_size();
                (Place::Shared(chunk), size)
            }
            None => {
                let mut data = vec![0; EMULATED_CHUNK];
                data[..8].copy_from_slice(&header.to_bytes());
                (Place::Own(data), EMULATED_CHUNK - 8)
            }
        };
        writer.open = Some(Open { id, place, used: 0, size, count: 0, flags });
    }

    fn put_fragment(&mut self, at: usize, size: &[u8; 4], bytes: &[u8]) {
        let open = self.writers[at].open.as_mut().expect("a chunk is open");
        open.count += 1;
        open.publish(self.smb.as_ref());
        self.put_bytes(at, size);
        self.put_bytes(at, bytes);
    }

    fn put_bytes(&mut self, at: usize, bytes: &[u8]) {
        let open = self.writers[at].open.as_mut().expect("a chunk is open");
        let used = open.used;
        open.put(self.smb.as_ref(), used, bytes);
        open.used += bytes.len();
    }

    fn raise_flags(&mut self, at: usize, flags: u8) {
        let open = self.writers[at].open.as_mut().expect("a chunk is open");
        open.flags |= flags;
        open.publish(self.smb.as_ref());
    }

    /// Completes the chunk, so that its commit is due.
    fn finish_chunk(&mut self, at: usize) {
        if self.writers[at].half.is_some() {
            return;
        }
        let Some(open) = self.writers[at].open.take() else { return };
        let target = self.writers[at].target;
        let entry = match open.place {
            Place::Shared(chunk) => {
                let (page, chunk_index) = (chunk.page(), chunk.index());
                let smb = self.smb.as_ref().expect("the chunk is from there");
                smb.complete(chunk).expect("the page is ours");
                Move { page, chunk: chunk_index, target, data: None }
            }
            Place::Own(mut data) => {
                data.truncate(8 + open.used);
                Move { page: 0, chunk: 0, target, data: Some(data) }
            }
        };
        self.pending.moves.push(entry);
    }
}

impl Open {
    fn put(&mut self, smb: Option<&Smb<Arc<PrivateRegion>>>, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.size, "a packet stays inside its chunk");
        match (&mut self.place, smb) {
            (Place::Shared(chunk), Some(smb)) => memory::write(smb.region(), chunk.payload_offset() + at, bytes),
            (Place::Own(data), _) => data[8 + at..8 + at + bytes.len()].copy_from_slice(bytes),
            (Place::Shared(_), None) => unreachable!("shared chunks come from shared memory"),
        }
    }

    fn publish(&mut self, smb: Option<&Smb<Arc<PrivateRegion>>>) {
        let packets = Packets::new(self.count, ChunkFlags(self.flags));
        match (&mut self.place, smb) {
            (Place::Shared(chunk), Some(smb)) => smb.packets_field(chunk).store(packets.0, Ordering::Release),
            (Place::Own(data), _) => data[6..8].copy_from_slice(&packets.0.to_le_bytes()),
            (Place::Shared(_), None) => unreachable!("shared chunks come from shared memory"),
        }
    }
}

fn acquire(smb: &Smb<Arc<PrivateRegion>>, layout: PageLayout, header: ChunkHeader) -> Option<Chunk<BeingWritten>> {
    for page in 0..smb.pages() {
        if smb.page_word(page).chunks() == 0 {
            smb.try_partition(page, layout);
        }
        if let Some(index) = smb.page_word(page).first_free_chunk() {
            return smb.acquire_for_writing(page, index as u32, header).ok();
        }
    }
    None
}
