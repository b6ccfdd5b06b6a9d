//! An honest producer. It obeys the service; the profile draws its crashes, delays and lost
//! messages.

mod writers;

use esatto_ports::Rpc as _;
use esatto_ports::producer_port::method;
use std::collections::VecDeque;
use std::sync::Arc;

use esatto_schema::GetAsyncCommandResponseReader;
use esatto_service::{MemoryKind, Peer};
use esatto_shm::abi::{PageLayout, PageSize};
use esatto_shm::{PrivateRegion, Smb};

use crate::connection::{Attached, ClientReply, Port, SharedMemory};
use crate::pb::Pb;
use crate::profile::MS;
use crate::world::{Actor, Event, Phase, World};
use writers::Writer;

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
        world.call_with(client, method::InitializeConnection::METHOD, &hello.0, false, attached);
        let commands = world.call(client, method::GetAsyncCommand::METHOD, &[], false);

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
            world.call(client, method::RegisterDataSource::METHOD, &request.0, true);
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
                world.call(self.client, method::ActivateTriggers::METHOD, &request.0, true);
            }
            1 => drop(world.call(self.client, method::Sync::METHOD, &[], false)),
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
                    method::RegisterDataSource::METHOD,
                    &Pb::default().bytes(1, &descriptor.0).0,
                    true,
                );
                world.call(
                    self.client,
                    method::UnregisterDataSource::METHOD,
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
                    self.writers.push(Writer::new(id, target, instance, next_chunk));
                    if !world.rng.percent(world.profile.unregistered) {
                        let request = Pb::default().int(1, id.into()).int(2, target.into());
                        world.call(self.client, method::RegisterTraceWriter::METHOD, &request.0, true);
                    }
                }
                if self.notifies_start && !forgets {
                    let request = Pb::default().int(1, instance);
                    world.call(self.client, method::NotifyDataSourceStarted::METHOD, &request.0, true);
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
                    world.call(self.client, method::NotifyDataSourceStopped::METHOD, &request.0, true);
                }
                let (gone, kept) = core::mem::take(&mut self.writers)
                    .into_iter()
                    .partition::<Vec<_>, _>(|writer| writer.instance == instance);
                self.writers = kept;
                for writer in gone {
                    if world.rng.percent(50) {
                        let request = Pb::default().int(1, writer.id.into());
                        world.call(self.client, method::UnregisterTraceWriter::METHOD, &request.0, true);
                    }
                }
            }
            Command::Flush { id } => {
                let is_thorough = world.rng.percent(70);
                for at in 0..self.writers.len() {
                    if is_thorough {
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
        world.call(self.client, method::CommitData::METHOD, &request.0, drop_reply);
    }
}
