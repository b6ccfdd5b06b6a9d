//! A connected producer (`docs/spec/service.md §2`).

use std::collections::VecDeque;

use esatto_map::{Map, Set};
use esatto_shm::planted;

use crate::api::{Attachment, Body, CallId, ClientId, MemoryKind, Peer};
use crate::buffer::Identity;
use crate::context::Context;
use crate::ids::{BufferId, ProducerId, WriterId};
use crate::shared_buffer::SharedBuffer;

/// Commands that may wait until the producer's memory was made.
const MAX_WAITING_COMMANDS: usize = 4096;

/// A connection to the producer port; a producer once it introduced itself.
#[derive(Debug)]
pub(crate) struct ProducerConnection {
    pub(crate) peer: Peer,
    pub(crate) memory: MemoryKind,
    /// As a relay claims; empty on the host.
    pub(crate) machine_name: Vec<u8>,
    pub(crate) producer: Option<ProducerId>,
}

impl ProducerConnection {
    pub(crate) fn new(peer: Peer, memory: MemoryKind) -> Self {
        Self { peer, memory, machine_name: Vec::new(), producer: None }
    }
}

/// Where the chunks of a producer come from.
#[derive(Debug)]
pub(crate) enum Memory {
    /// No data source was set up yet.
    Unset,
    /// The owner was asked to make it.
    Creating,
    /// Both sides have it.
    Shared(Box<dyn SharedBuffer>),
    /// Inside the commits.
    Emulated,
}

/// A producer.
#[derive(Debug)]
pub(crate) struct Producer {
    pub(crate) id: ProducerId,
    pub(crate) client: ClientId,
    pub(crate) peer: Peer,
    pub(crate) name: Vec<u8>,
    pub(crate) sdk_version: Vec<u8>,
    /// Empty on the host.
    pub(crate) machine_name: Vec<u8>,
    pub(crate) memory_kind: MemoryKind,
    /// Wished sizes, 0 = none.
    pub(crate) smb_size_hint: usize,
    pub(crate) page_size_hint: usize,
    pub(crate) wants_scraping: bool,
    pub(crate) memory: Memory,
    /// Target buffer of each registered writer.
    pub(crate) writers: Map<WriterId, BufferId>,
    /// Writers it has unregistered and not registered again; at most as many as there are ids.
    pub(crate) retired_writers: Set<WriterId>,
    /// Buffers it was ever told to write to and that still exist.
    pub(crate) allowed_buffers: Set<BufferId>,
    /// Bytes of its registered descriptors.
    pub(crate) descriptor_bytes: usize,
    commands: Commands,
}

impl Producer {
    pub(crate) fn new(id: ProducerId, client: ClientId, peer: Peer, memory_kind: MemoryKind) -> Self {
        Self {
            id,
            client,
            peer,
            name: Vec::new(),
            sdk_version: Vec::new(),
            machine_name: Vec::new(),
            memory_kind,
            smb_size_hint: 0,
            page_size_hint: 0,
            wants_scraping: false,
            memory: Memory::Unset,
            writers: Map::new(),
            retired_writers: Set::new(),
            allowed_buffers: Set::new(),
            descriptor_bytes: 0,
            commands: Commands::default(),
        }
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity { uid: self.peer.uid, pid: self.peer.pid, machine_id: self.peer.machine_id }
    }

    /// The name, for people.
    pub(crate) fn display_name(&self) -> String {
        format!("{:?} ({})", String::from_utf8_lossy(&self.name), self.id.0)
    }

    /// Sends an encoded GetAsyncCommandResponse; commands wait while the producer's memory is being made. Without a pending
    /// GetAsyncCommand the command is lost (`docs/spec/wire-protocol.md §9`).
    pub(crate) fn send(&mut self, command: Vec<u8>, cx: &mut Context<'_>) {
        if matches!(self.memory, Memory::Creating) {
            if self.commands.waiting.len() < MAX_WAITING_COMMANDS {
                self.commands.waiting.push_back(command);
            }
        } else if let Some(call) = self.commands.call {
            cx.reply_part(call, command);
        }
    }

    /// Announces the memory, now or when GetAsyncCommand is called, and what waited for it.
    pub(crate) fn announce_memory(&mut self, command: Vec<u8>, attachment: Attachment, cx: &mut Context<'_>) {
        match self.commands.call {
            Some(call) => cx.send(call, Body::Encoded(command), true, attachment),
            None => self.commands.setup_tracing = Some((command, attachment)),
        }
        if planted!("command-lost") && self.commands.waiting.len() > 2 {
            self.commands.waiting.pop_front();
        }
        while let Some(command) = self.commands.waiting.pop_front() {
            self.send(command, cx);
        }
    }

    /// The producer asks for commands; replaces an earlier call.
    pub(crate) fn listen(&mut self, call: CallId, cx: &mut Context<'_>) {
        if let Some(earlier) = self.commands.call.replace(call) {
            cx.reject(earlier);
        }
        if let Some((command, attachment)) = self.commands.setup_tracing.take() {
            cx.send(call, Body::Encoded(command), true, attachment);
        }
    }
}

#[derive(Debug, Default)]
struct Commands {
    /// The pending GetAsyncCommand.
    call: Option<CallId>,
    /// Not sent yet for want of a call.
    setup_tracing: Option<(Vec<u8>, Attachment)>,
    /// Not sent yet for want of memory.
    waiting: VecDeque<Vec<u8>>,
}

/// The encoded commands (`docs/spec/wire-protocol.md §9`).
pub(crate) mod command {
    use esatto_protozero::HeapBuffer;
    use esatto_schema::GetAsyncCommandResponseWriter;

    use crate::ids::InstanceId;

    fn encode(write: impl FnOnce(&mut GetAsyncCommandResponseWriter<'_>)) -> Vec<u8> {
        let mut buffer = HeapBuffer::new();
        write(&mut buffer.message().into());
        buffer.to_vec()
    }

    pub(crate) fn setup_tracing(page_size_bytes: Option<usize>) -> Vec<u8> {
        encode(|command| {
            let mut setup = command.setup_tracing();
            if let Some(kb) = page_size_bytes.and_then(|bytes| u32::try_from(bytes / 1024).ok()) {
                setup.shared_buffer_page_size_kb(kb);
            }
        })
    }

    pub(crate) fn setup_data_source(instance: InstanceId, config: &[u8]) -> Vec<u8> {
        encode(|command| {
            let mut setup = command.setup_data_source();
            setup.new_instance_id(instance.0);
            setup.message().bytes(2, config);
        })
    }

    pub(crate) fn start_data_source(instance: InstanceId, config: &[u8]) -> Vec<u8> {
        encode(|command| {
            let mut start = command.start_data_source();
            start.new_instance_id(instance.0);
            start.message().bytes(2, config);
        })
    }

    pub(crate) fn stop_data_source(instance: InstanceId) -> Vec<u8> {
        encode(|command| {
            command.stop_data_source().instance_id(instance.0);
        })
    }

    pub(crate) fn flush(instances: &[InstanceId], request_id: u64, flags: u64) -> Vec<u8> {
        encode(|command| {
            let mut flush = command.flush();
            for instance in instances {
                flush.message().varint(1, instance.0);
            }
            flush.request_id(request_id).flags(flags);
        })
    }

    pub(crate) fn clear_incremental_state(instances: &[InstanceId]) -> Vec<u8> {
        encode(|command| {
            let mut clear = command.clear_incremental_state();
            for instance in instances {
                clear.message().varint(1, instance.0);
            }
        })
    }
}
