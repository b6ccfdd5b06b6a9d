//! Set-up of instances: matching the data sources of producers with the entries of configs
//! (`docs/spec/service.md §6`).

use std::sync::Arc;

use esatto_schema::DataSourceDescriptorReader;

use crate::api::{Attachment, MemoryKind, Output};
use crate::client_text::Name;
use crate::context::Context;
use crate::ids::{InstanceId, ProducerId, SessionId};
use crate::machines::MAX_MACHINES;
use crate::producer::Memory;
use crate::producer::commands::{Command, encoded};
use crate::producer::data_sources::{FIRST, RegistrationId};
use crate::service::Service;
use crate::session::instances::{Instance, InstanceState};
use crate::session::members::INSTANCES;
use crate::session::state::State;

/// Result of setting up a registration for an entry of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetUp {
    /// It is an instance.
    Made(InstanceId),
    /// No registration of this producer becomes an instance of this entry.
    NotWanted,
}

impl Service {
    /// Sets up every data source that a session asks for and a producer offers, except those of
    /// some producers. Starts them if the session runs.
    pub(crate) fn set_up_all(&mut self, id: SessionId, is_left_out: impl Fn(ProducerId) -> bool, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get(id) else { return };
        let is_started = session.state() == State::Started;
        for entry in 0..session.config.data_sources.len() {
            let mut from = (ProducerId(0), FIRST);
            loop {
                cx.charge(1);
                let source = self.sessions.get(id).and_then(|session| session.config.data_sources.get(entry));
                let name = source.and_then(|source| source.config.as_ref()).and_then(|config| config.name.as_deref());
                let Some((producer, registration)) =
                    name.and_then(|name| self.producers.data_sources.next_named(name, from))
                else {
                    break;
                };
                let set_up = match is_left_out(producer) {
                    true => SetUp::NotWanted,
                    false => self.set_up(id, entry, registration, cx),
                };
                from = match set_up {
                    SetUp::Made(_) => (producer, RegistrationId(registration.0 + 1)),
                    SetUp::NotWanted => match producer.0.checked_add(1) {
                        Some(next) => (ProducerId(next), FIRST),
                        None => break,
                    },
                };
                if let SetUp::Made(instance) = set_up {
                    if is_started {
                        self.start_instance(id, instance, cx);
                    }
                }
            }
        }
    }

    /// Makes an instance, and tells the producer, if the entry's filters and the producer's share
    /// permit it.
    pub(crate) fn set_up(
        &mut self,
        session_id: SessionId,
        entry: usize,
        registration: RegistrationId,
        cx: &mut Context<'_>,
    ) -> SetUp {
        self.try_set_up(session_id, entry, registration, cx).map_or(SetUp::NotWanted, SetUp::Made)
    }

    fn try_set_up(
        &mut self,
        session_id: SessionId,
        entry: usize,
        registration: RegistrationId,
        cx: &mut Context<'_>,
    ) -> Option<InstanceId> {
        cx.charge(1);
        let id = InstanceId(self.sessions.last.instance + 1);
        let session = self.sessions.get_mut(session_id)?;
        let is_locked_down = self.producers.lockdown.is_on();
        let (registration, producer) = self.producers.registration_mut(registration)?;
        if is_locked_down && producer.peer.uid != self.config.uid {
            return None;
        }
        if !session.wants(entry, producer, &self.config.system, cx) {
            return None;
        }
        let Some(buffer) = session.target_of(entry) else {
            cx.warn(format!("session {}: data source entry {entry} has no buffer", session_id.0));
            return None;
        };
        let member = session.members.by_producer.get_mut(&producer.id)?;
        if !session.members.pool.take(INSTANCES, &producer.peer, member.instances, 1) {
            if !core::mem::replace(&mut member.is_refused, true) {
                cx.warn(format!(
                    "session {}: data source {:?} of producer {} of uid {} is refused: the share of this producer is {} \
                     instances",
                    session_id.0,
                    String::from_utf8_lossy(&registration.name),
                    producer.display_name(),
                    producer.peer.uid,
                    member.instances,
                ));
            }
            session.record_refusal(&producer.name, &registration.name, cx.now);
            return None;
        }
        member.instances += 1;
        let (machine, known) = (producer.peer.machine_id, &mut session.members.machines);
        if machine != 0 && known.len() < MAX_MACHINES {
            known.insert(machine);
        }

        let descriptor = DataSourceDescriptorReader::new(&registration.descriptor);
        cx.charge_bytes(registration.descriptor.len());
        let config = session.config_of(entry, buffer, cx);
        let instance = Instance {
            id,
            producer: producer.id,
            name: Arc::clone(&registration.name),
            buffer,
            state: InstanceState::Configured,
            notifies_start: descriptor.will_notify_on_start().unwrap_or(false),
            notifies_stop: descriptor.will_notify_on_stop().unwrap_or(false),
            clears_incremental_state: descriptor.handles_incremental_state_clear().unwrap_or(false),
            no_flush: descriptor.no_flush().unwrap_or(false),
            config: Arc::clone(&config),
        };
        session.instances.add(instance);
        producer.allowed_buffers.insert(buffer);

        if matches!(producer.memory, Memory::Unset) {
            let (size, page_size) = producer.memory_sizes(&session.config, self.default_memory_bytes);
            match producer.memory_kind {
                MemoryKind::Shared => {
                    producer.memory = Memory::Creating;
                    cx.push(Output::CreateSharedBuffer {
                        client: producer.client,
                        size_bytes: size,
                        page_size_bytes: page_size,
                    });
                }
                MemoryKind::Emulated => {
                    producer.memory = Memory::Emulated;
                    let announcement = encoded::setup_tracing(Some(page_size));
                    producer.announce_memory(announcement, Attachment::Absent, cx);
                }
            }
        }
        producer.send(Command::SetUp(id, config), cx);
        let (producer, name) = (producer.id, Arc::clone(&registration.name));
        self.sessions.last.instance = id.0;
        self.sessions.instances_of.insert((producer, name, session_id, id));
        Some(id)
    }

    /// Removes instances of a producer from all sessions: all of them, or those of one name.
    pub(crate) fn drop_instances(&mut self, producer: ProducerId, name: Option<&[u8]>, cx: &mut Context<'_>) {
        let empty: Name = Arc::from(&[][..]);
        let from = match name {
            Some(name) => self.producers.data_sources.kept_name(name).unwrap_or(empty),
            None => empty,
        };
        let affected = self.sessions.instances_of.range((producer, from, SessionId(0), InstanceId(0))..);
        let affected =
            affected.take_while(|(of, its_name, ..)| *of == producer && name.is_none_or(|name| **its_name == *name));
        let mut affected: Vec<(SessionId, InstanceId)> =
            affected.map(|&(_, _, session, instance)| (session, instance)).collect();
        esatto_map::sort(&mut affected);
        cx.charge(affected.len());
        let mut at = 0;
        while let Some(&(session_id, _)) = affected.get(at) {
            let end = at + affected[at..].iter().take_while(|(session, _)| *session == session_id).count();
            for &(_, instance) in &affected[at..end] {
                self.stop_instance(session_id, instance, true, cx);
                self.set_instance_state(session_id, instance, InstanceState::Stopped);
            }
            for &(_, instance) in &affected[at..end] {
                self.remove_instance(session_id, instance);
            }
            self.report_all_started(session_id, cx);
            self.finish_if_all_stopped(session_id, cx);
            at = end;
        }
    }

    fn remove_instance(&mut self, session_id: SessionId, id: InstanceId) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        let Some(instance) = session.instances.remove(id) else { return };
        let producer = instance.producer;
        if let (Some(member), Some(producer)) =
            (session.members.by_producer.get_mut(&producer), self.producers.get(producer))
        {
            session.members.pool.give_back(INSTANCES, &producer.peer, member.instances, 1);
            member.instances -= 1;
        }
        self.sessions.instances_of.remove(&(producer, instance.name, session_id, id));
    }
}
