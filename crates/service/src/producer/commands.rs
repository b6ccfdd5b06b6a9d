//! Commands to a producer, and the queue in which they wait (`docs/spec/wire-protocol.md §9`).

use std::collections::VecDeque;
use std::sync::Arc;

use esatto_map::LargeSet;

use super::{Memory, Producer};
use crate::api::{Attachment, Body, CallId, ClientId, Output};
use crate::context::Context;
use crate::ids::InstanceId;

/// Bytes of commands that the service sends to a producer before it must take some of them: a
/// fourth of the bytes that an owner has to queue for it.
///
/// Further commands wait here, where they cost little. So a slow producer is not disconnected
/// because of the configs of other users.
const SENT_COMMAND_BYTES: usize = 1 << 20;

/// Bytes of flush requests and similar commands that may wait for a producer. The service does not
/// send those that do not fit; the log says so, and the flushes time out. The other commands take a
/// few words for each of the producer's instances.
const MAX_WAITING_BYTES: usize = 1 << 20;

impl Producer {
    /// Sends a command, or queues it until the producer has its memory and has taken the earlier
    /// commands. Without a pending GetAsyncCommand the command is lost (`docs/spec/wire-protocol.md
    /// §9`).
    pub(crate) fn send(&mut self, command: Command, cx: &mut Context<'_>) {
        let commands = &mut self.commands;
        if matches!(self.memory, Memory::Creating) || commands.is_blocked() {
            if !commands.queue(command) && !core::mem::replace(&mut commands.has_lost, true) {
                cx.warn(format!("producer {} does not take its commands: some are lost", self.display_name()));
            }
        } else if let Some(call) = commands.call {
            commands.transmit(call, self.client, command, cx);
        }
    }

    /// Tells the producer to stop an instance. Returns false if the producer has not received its
    /// set-up, and now never will.
    pub(crate) fn send_stop(&mut self, instance: InstanceId, cx: &mut Context<'_>) -> bool {
        if !matches!(self.memory, Memory::Creating) && self.commands.cancel(instance) {
            return false;
        }
        self.send(Command::Stop(instance), cx);
        true
    }

    /// Announces the memory, now or when GetAsyncCommand is called, and sends the commands that
    /// waited for it.
    pub(crate) fn announce_memory(&mut self, command: Vec<u8>, attachment: Attachment, cx: &mut Context<'_>) {
        match self.commands.call {
            Some(call) => cx.send(call, Body::Encoded(command), true, attachment),
            None => self.commands.setup_tracing = Some((command, attachment)),
        }
        self.send_waiting(cx);
    }

    /// Takes the call that carries the commands, in place of an earlier one.
    pub(crate) fn listen(&mut self, call: CallId, cx: &mut Context<'_>) {
        if let Some(earlier) = self.commands.call.replace(call) {
            cx.reject(earlier);
        }
        if let Some((command, attachment)) = self.commands.setup_tracing.take() {
            cx.send(call, Body::Encoded(command), true, attachment);
        }
    }

    /// Sends more commands to a producer that has taken the earlier ones.
    pub(crate) fn is_ready(&mut self, cx: &mut Context<'_>) {
        if self.commands.is_awaited {
            self.commands.is_awaited = false;
            self.commands.sent_bytes = 0;
            self.send_waiting(cx);
        }
    }

    fn send_waiting(&mut self, cx: &mut Context<'_>) {
        let (commands, client) = (&mut self.commands, self.client);
        if matches!(self.memory, Memory::Creating) {
            return;
        }
        while !commands.is_awaited {
            let Some(command) = commands.next() else { break };
            if let Some(call) = commands.call {
                commands.transmit(call, client, command, cx);
            }
        }
    }
}

/// A command to a producer. It is encoded when it is sent.
#[derive(Debug)]
pub(crate) enum Command {
    SetUp(InstanceId, Arc<[u8]>),
    Start(InstanceId, Arc<[u8]>),
    Stop(InstanceId),
    Encoded(Vec<u8>),
}

impl Command {
    fn encode(self) -> Vec<u8> {
        match self {
            Self::SetUp(instance, config) => encoded::setup_data_source(instance, &config),
            Self::Start(instance, config) => encoded::start_data_source(instance, &config),
            Self::Stop(instance) => encoded::stop_data_source(instance),
            Self::Encoded(bytes) => bytes,
        }
    }

    /// Returns the bytes that are charged while the command waits. The configs belong to the
    /// session.
    fn waiting_bytes(&self) -> usize {
        match self {
            Self::Encoded(bytes) => bytes.len(),
            _ => 0,
        }
    }

    fn is_of(&self, instances: &LargeSet<InstanceId>) -> bool {
        match self {
            Self::SetUp(instance, _) | Self::Start(instance, _) => instances.contains(instance),
            Self::Stop(_) | Self::Encoded(_) => false,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Commands {
    /// The pending GetAsyncCommand.
    call: Option<CallId>,
    /// The announcement of the memory, until there is a call for it.
    setup_tracing: Option<(Vec<u8>, Attachment)>,
    /// Commands that wait for the memory or for a slow producer.
    waiting: VecDeque<Command>,
    waiting_bytes: usize,
    /// Instances whose set-up waits.
    unheard_of: LargeSet<InstanceId>,
    /// Instances that were stopped before their set-up was sent. The queue skips their commands.
    cancelled: LargeSet<InstanceId>,
    /// Bytes sent since the producer was ready last.
    sent_bytes: usize,
    /// The service waits until the producer is ready.
    is_awaited: bool,
    /// The log says that commands are lost.
    has_lost: bool,
}

impl Commands {
    fn is_blocked(&self) -> bool {
        self.is_awaited || !self.waiting.is_empty()
    }

    /// Queues a command. Returns false if there is no room.
    fn queue(&mut self, command: Command) -> bool {
        let bytes = self.waiting_bytes + command.waiting_bytes();
        if bytes > MAX_WAITING_BYTES {
            return false;
        }
        self.waiting_bytes = bytes;
        if let Command::SetUp(instance, _) = &command {
            self.unheard_of.insert(*instance);
        }
        self.waiting.push_back(command);
        true
    }

    /// Takes back the commands of an instance whose set-up waits. Returns false if it does not
    /// wait.
    fn cancel(&mut self, instance: InstanceId) -> bool {
        if !self.unheard_of.remove(&instance) {
            return false;
        }
        self.cancelled.insert(instance);
        // The commands that are removed pay for the search through the queue.
        if self.cancelled.len() * 2 > self.waiting.len() {
            let cancelled = core::mem::take(&mut self.cancelled);
            self.waiting.retain(|command| !command.is_of(&cancelled));
        }
        true
    }

    /// Returns the next command that was not cancelled.
    fn next(&mut self) -> Option<Command> {
        loop {
            let command = self.waiting.pop_front()?;
            self.waiting_bytes -= command.waiting_bytes();
            if let Command::SetUp(instance, _) = &command {
                self.unheard_of.remove(instance);
            }
            if !command.is_of(&self.cancelled) {
                return Some(command);
            }
        }
    }

    fn transmit(&mut self, call: CallId, client: ClientId, command: Command, cx: &mut Context<'_>) {
        let command = command.encode();
        self.sent_bytes += command.len();
        cx.reply_part(call, command);
        if self.sent_bytes > SENT_COMMAND_BYTES && !self.is_awaited {
            self.is_awaited = true;
            cx.push(Output::AwaitReady(client));
        }
    }
}

/// The encoded commands (`docs/spec/wire-protocol.md §9`).
pub(crate) mod encoded {
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
