//! Connected producers (`docs/spec/service.md §2`).

pub(crate) mod commands;
pub(crate) mod commit;
pub(crate) mod data_sources;
mod lockdown;
mod memory_size;
pub(crate) mod scrape_memory;
pub(crate) mod writers;

use std::sync::Arc;

use esatto_map::LargeMap;
use esatto_map::{Map, Set};

use crate::api::{ClientId, MemoryKind, Peer};
use crate::buffer::Identity;
use crate::buffer::table::Buffers;
use crate::client_text::{Name, quoted};
use crate::context::Context;
use crate::fair_share::Pool;
use crate::ids::{BufferId, ProducerId, SessionId, next_free};
use crate::shared_buffer::SharedBuffer;
use commands::Commands;
use data_sources::DataSources;
use lockdown::Lockdown;
use writers::{WRITERS, Writers};

/// All producers, their connections and data sources.
#[derive(Debug, Default)]
pub(crate) struct Producers {
    connections: Map<ClientId, Connection>,
    by_id: Map<ProducerId, Box<Producer>>,
    pub(crate) data_sources: DataSources,
    /// Writers that all producers have registered.
    writer_pool: Pool,
    pub(crate) lockdown: Lockdown,
    last: u16,
}

impl Producers {
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn get(&self, id: ProducerId) -> Option<&Producer> {
        self.by_id.get(&id).map(|producer| &**producer)
    }

    pub(crate) fn get_mut(&mut self, id: ProducerId) -> Option<&mut Producer> {
        self.by_id.get_mut(&id).map(|producer| &mut **producer)
    }

    pub(crate) fn contains(&self, id: ProducerId) -> bool {
        self.by_id.contains_key(&id)
    }

    /// Iterates over the producers in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Producer> {
        self.by_id.values().map(|producer| &**producer)
    }

    /// Iterates over the producers from this number on.
    pub(crate) fn iter_from(&self, id: ProducerId) -> impl Iterator<Item = &Producer> {
        self.by_id.iter_from(&id).map(|(_, producer)| &**producer)
    }

    /// Returns the number that the newest producer got.
    pub(crate) fn last_id(&self) -> u16 {
        self.last
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.len()
    }

    pub(crate) fn writer_pool(&self) -> &Pool {
        &self.writer_pool
    }

    /// Adds a connection that is no producer yet.
    pub(crate) fn connect(&mut self, client: ClientId, peer: Peer, memory: MemoryKind) {
        let connection = Connection { peer, memory, machine_name: Vec::new(), producer: None };
        self.connections.insert(client, connection);
    }

    pub(crate) fn connection(&self, client: ClientId) -> Option<&Connection> {
        self.connections.get(&client)
    }

    /// Notes the machine name that a relay claims for a connection, unless it comes from the host.
    pub(crate) fn name_machine(&mut self, client: ClientId, name: &[u8]) {
        if let Some(connection) = self.connections.get_mut(&client).filter(|found| found.peer.machine_id != 0) {
            connection.machine_name = name.to_vec();
        }
    }

    /// Removes a connection, and returns its producer.
    pub(crate) fn disconnect(&mut self, client: ClientId) -> Option<ProducerId> {
        self.connections.remove(&client)?.producer
    }

    /// Returns the producer of a client.
    pub(crate) fn of_client(&self, client: ClientId) -> Option<ProducerId> {
        self.connections.get(&client)?.producer
    }

    /// Makes a producer of a connection, without adding it yet. Returns `None` if no number is
    /// free.
    pub(crate) fn introduce(&mut self, client: ClientId) -> Option<Producer> {
        let connection = self.connections.get_mut(&client)?;
        let id = next_free(self.last, |id| self.by_id.contains_key(&ProducerId(id)))?;
        self.last = id;
        let id = ProducerId(id);
        connection.producer = Some(id);
        let mut producer = Producer::new(id, client, connection.peer, connection.memory);
        producer.machine_name.clone_from(&connection.machine_name);
        Some(producer)
    }

    pub(crate) fn add(&mut self, producer: Producer) {
        self.by_id.insert(producer.id, Box::new(producer));
    }

    /// Removes a producer and gives back its charges. Its chunks stay in the buffers, and can no
    /// longer be patched.
    pub(crate) fn remove(&mut self, id: ProducerId, buffers: &mut Buffers, cx: &mut Context<'_>) {
        self.unregister_all(id, cx);
        let Some(producer) = self.by_id.remove(&id) else { return };
        let writers = producer.writers.len();
        self.writer_pool.give_back(WRITERS, &producer.peer, writers, writers);
        for &buffer in &producer.allowed_buffers {
            cx.charge(1);
            if let Some(buffer) = buffers.get_mut(buffer) {
                buffer.retire_producer(id);
            }
        }
        let name = producer.display_name();
        match producer.writers.refused {
            0 => cx.debug(format!("producer {name} disconnected")),
            refused => cx.warn(format!("producer {name} disconnected; {refused} writers did not fit into its share")),
        }
    }

    /// Takes from a producer the right to write to the buffers of a session that ends.
    pub(crate) fn forbid_buffers(&mut self, id: ProducerId, buffers: &[BufferId], cx: &mut Context<'_>) {
        let Some(producer) = self.by_id.get_mut(&id) else { return };
        cx.charge(1);
        for buffer in buffers {
            if producer.allowed_buffers.remove(buffer) {
                producer.written_buffers.remove(buffer);
                let held = producer.writers.len();
                let removed = producer.writers.remove_all_of(*buffer);
                self.writer_pool.give_back(WRITERS, &producer.peer, held, removed);
                cx.charge(usize::try_from(removed).unwrap_or(usize::MAX).saturating_add(1));
            }
        }
    }

    /// Removes a flush from the producers that have not answered it.
    pub(crate) fn forget_flush<'a>(&mut self, producers: impl IntoIterator<Item = &'a ProducerId>, flush: u64) {
        for id in producers {
            if let Some(producer) = self.by_id.get_mut(id) {
                producer.flushes.remove(&flush);
            }
        }
    }
}

/// A connection to the producer port. It becomes a producer when it calls InitializeConnection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) peer: Peer,
    pub(crate) memory: MemoryKind,
    /// The name that a relay claims, empty on the host.
    pub(crate) machine_name: Vec<u8>,
    pub(crate) producer: Option<ProducerId>,
}

/// Where the chunks of a producer come from.
#[derive(Debug)]
pub(crate) enum Memory {
    /// No memory: no data source was set up yet.
    Unset,
    /// Shared memory that the owner has been asked to create.
    Creating,
    /// Shared memory that both sides have.
    Shared(Box<dyn SharedBuffer>),
    /// The commits themselves.
    Emulated,
}

/// A connected producer.
#[derive(Debug)]
pub(crate) struct Producer {
    pub(crate) id: ProducerId,
    pub(crate) client: ClientId,
    pub(crate) peer: Peer,
    pub(crate) name: Name,
    pub(crate) sdk_version: Vec<u8>,
    /// Empty on the host.
    pub(crate) machine_name: Vec<u8>,
    pub(crate) memory_kind: MemoryKind,
    /// Bytes of shared memory that it asks for, 0 = the default.
    pub(crate) smb_size_hint: usize,
    /// Bytes of a page that it asks for, 0 = the default.
    pub(crate) page_size_hint: usize,
    pub(crate) wants_scraping: bool,
    pub(crate) memory: Memory,
    pub(crate) writers: Writers,
    /// Existing buffers that the service has told it to write to, at any time.
    pub(crate) allowed_buffers: Set<BufferId>,
    /// Those of them that have got data of it.
    pub(crate) written_buffers: Set<BufferId>,
    /// BOOTTIME of InitializeConnection.
    pub(crate) connected_ns: u64,
    /// It has never offered a data source or activated a trigger.
    pub(crate) is_idle: bool,
    /// Number of data sources that it offers.
    pub(crate) registrations: usize,
    /// Bytes that are charged for them.
    pub(crate) descriptor_bytes: u64,
    /// Flushes that wait for its answer, and their sessions.
    pub(crate) flushes: LargeMap<u64, SessionId>,
    commands: Commands,
}

impl Producer {
    pub(crate) fn new(id: ProducerId, client: ClientId, peer: Peer, memory_kind: MemoryKind) -> Self {
        Self {
            id,
            client,
            peer,
            name: Arc::from(&[][..]),
            sdk_version: Vec::new(),
            machine_name: Vec::new(),
            memory_kind,
            smb_size_hint: 0,
            page_size_hint: 0,
            wants_scraping: false,
            memory: Memory::Unset,
            writers: Writers::default(),
            allowed_buffers: Set::new(),
            written_buffers: Set::new(),
            connected_ns: 0,
            is_idle: true,
            registrations: 0,
            descriptor_bytes: 0,
            flushes: LargeMap::new(),
            commands: Commands::default(),
        }
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity { uid: self.peer.uid, pid: self.peer.pid, machine_id: self.peer.machine_id }
    }

    /// Formats name, machine and number for the log.
    pub(crate) fn display_name(&self) -> String {
        format!("{:?}{} ({})", String::from_utf8_lossy(&self.name), self.machine_in_words(), self.id.0)
    }

    /// Names the machine for the log, after the name of the producer. Returns nothing for programs
    /// of the service's machine.
    pub(crate) fn machine_in_words(&self) -> String {
        match (self.peer.machine_id, self.machine_name.as_slice()) {
            (0, _) => String::new(),
            (id, []) => format!(" of machine {id:#010x}"),
            (_, name) => format!(" of machine {}", quoted(name)),
        }
    }
}
