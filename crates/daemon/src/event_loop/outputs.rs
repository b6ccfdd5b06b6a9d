//! Outputs of the service, carried out by the event loop.

use esatto_daemon_program::PriorityBoost;
use esatto_ipc::Error as IpcError;
use esatto_service::{Attachment, Body, ClientId, Input, LogLevel, MemoryKind, Output, SharedBuffer, TimerClock};
use esatto_shm::size::DEFAULT_SIZE;

use super::{EventLoop, TimerKey};
use crate::clocks;
use crate::shared_memory;

impl EventLoop {
    /// Carries out the queued outputs of the service, including those that they cause.
    pub(super) fn carry_out(&mut self) {
        while let Some(output) = self.outputs.pop() {
            self.carry_out_one(output);
        }
    }

    fn carry_out_one(&mut self, output: Output) {
        match output {
            Output::Reply(reply) => {
                let id = reply.call.client;
                let Some(client) = self.clients.get_mut(&id) else { return };
                let with_memory = reply.attachment == Attachment::SharedBuffer;
                let body = reply.body.as_bytes();
                match client.reply(reply.call.request, body, reply.has_more, with_memory, &self.counters) {
                    Ok(()) => self.mark_dirty(id),
                    Err(e) => self.close_later(id, &e),
                }
                if let (Body::Encoded(bytes), true) = (reply.body, reply.has_more) {
                    self.outputs.recycle(bytes);
                }
            }
            Output::Reject(call) => {
                if let Some(client) = self.clients.get_mut(&call.client) {
                    client.reject(call.request);
                    self.mark_dirty(call.client);
                }
            }
            Output::CreateSharedBuffer { client, size_bytes, page_size_bytes } => {
                self.create_shared_buffer(client, size_bytes, page_size_bytes);
            }
            Output::CloseClient { client, reason } => {
                if let Some(client) = self.clients.get(&client) {
                    log::warn!("{} is disconnected: {reason}", client.name());
                    client.connection.stream().shutdown();
                }
            }
            Output::AwaitReady(id) => {
                if let Some(client) = self.clients.get_mut(&id) {
                    client.awaits_ready = true;
                    self.mark_dirty(id);
                }
            }
            Output::SetTimer { timer, clock, at_ns } => {
                let timers = match clock {
                    TimerClock::Monotonic => &mut self.monotonic,
                    TimerClock::Boottime => &mut self.boottime,
                };
                timers.set(TimerKey::Service(timer), at_ns);
            }
            Output::CancelTimer(timer) => {
                self.monotonic.cancel(TimerKey::Service(timer));
                self.boottime.cancel(TimerKey::Service(timer));
            }
            Output::AdoptFile { file, call } => {
                if let Some(attached) = self.attached.take_if(|attached| attached.call == call) {
                    self.files.adopt(file, attached.fd, attached.owner);
                }
            }
            Output::CreateFile { file, path, uid } => self.files.create(file, path, uid),
            Output::WriteFile { file, bytes } => self.files.write(file, bytes),
            Output::SetPriority { change, boost } => {
                let boost = boost.map(|boost| match boost {
                    esatto_service::PriorityBoost::Other(below) => PriorityBoost::Other(below),
                    esatto_service::PriorityBoost::Fifo(priority) => PriorityBoost::Fifo(priority),
                });
                let result = self.priority.set(boost);
                self.service.handle(&clocks::now(), Input::PrioritySet { change, result }, &mut self.outputs);
            }
            Output::CopyFile { from, to } => self.files.copy(from, to),
            Output::SyncFile(file) => self.files.sync(file),
            Output::CloseFile(file) => self.files.close(file),
            Output::Log { level, text } => {
                let level = match level {
                    LogLevel::Debug => log::Level::Debug,
                    LogLevel::Info => log::Level::Info,
                    LogLevel::Warning => log::Level::Warn,
                    LogLevel::Error => log::Level::Error,
                };
                log::log!(level, "{text}");
            }
            other => log::error!("this daemon cannot carry out an output of the service: {other:?}"),
        }
    }

    fn create_shared_buffer(&mut self, id: ClientId, size_bytes: usize, page_size_bytes: usize) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let mut size_bytes = size_bytes;
        let is_shared = matches!(client.memory_kind(), MemoryKind::Shared);
        if is_shared && size_bytes > DEFAULT_SIZE && !self.shares.may_share_memory(client.owner, size_bytes) {
            // A config asks for this size, not the producer: the request must not end the producer.
            log::warn!(
                "{}: {} may not share {size_bytes} more bytes; it gets the default size",
                client.short_name(),
                client.owner
            );
            size_bytes = DEFAULT_SIZE;
        }
        let created: Result<Box<dyn SharedBuffer>, _> = match client.memory_kind() {
            MemoryKind::Shared if !self.shares.share_memory(client.owner, size_bytes) => {
                Err(format!("{} has used up its share of memory", client.owner))
            }
            MemoryKind::Shared => {
                client.memory_counted += size_bytes;
                let created = shared_memory::create(size_bytes, page_size_bytes).map(|(region, buffer)| {
                    client.shared = Some(region);
                    Box::new(buffer) as _
                });
                created.map_err(|e| e.to_string())
            }
            MemoryKind::Emulated => shared_memory::emulated(size_bytes, page_size_bytes)
                .map(|buffer| Box::new(buffer) as _)
                .map_err(|e| e.to_string()),
        };
        let buffer = created.map_err(|e| log::error!("{}: cannot create shared memory: {e}", client.short_name())).ok();
        let input = Input::SharedBufferCreated { client: id, buffer };
        self.service.handle(&clocks::now(), input, &mut self.outputs);
    }

    /// Ends a connection while its outputs are carried out. The loop then sees it hang up like any
    /// other.
    fn close_later(&mut self, id: ClientId, error: &IpcError) {
        if let Some(client) = self.clients.get(&id) {
            log::warn!("{} is disconnected: {error}", client.name());
            client.connection.stream().shutdown();
        }
    }
}
