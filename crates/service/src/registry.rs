//! Data sources that producers offer, and how they meet the entries of configs (`docs/spec/service.md §3, §6`).

use esatto_protozero::Fields;
use esatto_schema::{DataSourceConfigReader, DataSourceDescriptorReader};

use crate::api::{MemoryKind, Output, SystemFacts};
use crate::config_check;
use crate::context::Context;
use crate::ids::{BufferId, InstanceId, ProducerId, SessionId};
use crate::name_pattern::NamePattern;
use crate::producer::{Memory, command};
use crate::service::Service;
use crate::session::{Instance, InstanceState, Session, State};
use crate::shared_buffer::granted_sizes;

/// Data sources one producer may offer.
const MAX_DATA_SOURCES_PER_PRODUCER: usize = 1024;

/// Bytes of descriptors one producer may register.
const MAX_DESCRIPTOR_BYTES_PER_PRODUCER: usize = 8 * 1024 * 1024;

/// Instances in one session, so that registrations cannot multiply a config without end.
const MAX_INSTANCES_PER_SESSION: usize = 16_384;

/// What a `machine_name_filter` calls the machine of the service, whatever its name.
const HOST: &[u8] = b"host";

/// A data source that a producer offers.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) producer: ProducerId,
    pub(crate) name: Vec<u8>,
    /// The producer's number for it, 0 = none.
    pub(crate) id: u64,
    /// The descriptor as it came.
    pub(crate) descriptor: Vec<u8>,
}

impl Service {
    pub(crate) fn register_data_source(
        &mut self,
        producer_id: ProducerId,
        descriptor: DataSourceDescriptorReader<'_>,
        cx: &mut Context<'_>,
    ) {
        let name = descriptor.name().unwrap_or_default();
        let id = descriptor.id().unwrap_or(0);
        let Some(producer) = self.producers.get_mut(&producer_id) else { return };
        if name.is_empty() {
            return;
        }
        let mut count = 0;
        for registration in self.registry.iter().filter(|registration| registration.producer == producer_id) {
            count += 1;
            if id != 0 && registration.id == id {
                cx.warn(format!("producer {}: data source id {id} is registered twice", producer.display_name()));
                return;
            }
        }
        let bytes = descriptor.as_bytes().to_vec();
        if count >= MAX_DATA_SOURCES_PER_PRODUCER
            || producer.descriptor_bytes + bytes.len() > MAX_DESCRIPTOR_BYTES_PER_PRODUCER
        {
            cx.warn(format!("producer {} registers too many data sources", producer.display_name()));
            return;
        }
        producer.descriptor_bytes += bytes.len();
        let registration = Registration { producer: producer_id, name: name.to_vec(), id, descriptor: bytes };
        self.registry.push(registration);
        let registration = self.registry.len() - 1;

        let running = |session: &&Session| matches!(session.state, State::Configured | State::Started);
        let sessions: Vec<SessionId> = self.sessions.values().filter(running).map(|session| session.id).collect();
        for session in sessions {
            let entries = self.entries_named(session, registration);
            for entry in entries {
                if let Some(instance) = self.set_up(session, entry, registration, cx) {
                    if self.sessions.get(&session).is_some_and(|session| session.state == State::Started) {
                        self.start_instance(session, instance, cx);
                    }
                }
            }
        }
    }

    pub(crate) fn update_data_source(
        &mut self,
        producer_id: ProducerId,
        descriptor: DataSourceDescriptorReader<'_>,
        cx: &mut Context<'_>,
    ) {
        let name = descriptor.name().unwrap_or_default();
        let id = descriptor.id().unwrap_or(0);
        let Some(producer) = self.producers.get_mut(&producer_id) else { return };
        let found = self
            .registry
            .iter_mut()
            .find(|known| id != 0 && known.producer == producer_id && known.id == id && known.name == name);
        let Some(registration) = found else {
            cx.warn(format!("producer {} updates a data source it did not register", producer.display_name()));
            return;
        };
        let bytes = descriptor.as_bytes().to_vec();
        let total = producer.descriptor_bytes - registration.descriptor.len() + bytes.len();
        if total > MAX_DESCRIPTOR_BYTES_PER_PRODUCER {
            cx.warn(format!("producer {} describes its data sources at too great length", producer.display_name()));
            return;
        }
        producer.descriptor_bytes = total;
        registration.descriptor = bytes;
    }

    pub(crate) fn unregister_data_source(&mut self, producer_id: ProducerId, name: &[u8], cx: &mut Context<'_>) {
        let sessions: Vec<SessionId> = self.sessions.keys().copied().collect();
        for session in sessions {
            self.drop_instances(session, producer_id, Some(name), cx);
        }
        let known = |registration: &Registration| registration.producer == producer_id && registration.name == name;
        if let Some(index) = self.registry.iter().position(known) {
            let removed = self.registry.remove(index);
            if let Some(producer) = self.producers.get_mut(&producer_id) {
                producer.descriptor_bytes -= removed.descriptor.len();
            }
        }
    }

    /// Config entries of a session that name this registration's data source.
    fn entries_named(&self, session: SessionId, registration: usize) -> Vec<usize> {
        let (Some(session), Some(registration)) = (self.sessions.get(&session), self.registry.get(registration)) else {
            return Vec::new();
        };
        let names = |name: &Option<esatto_protozero::ProtoString>| name.as_deref() == Some(&*registration.name);
        let entries = session.config.data_sources.iter().enumerate();
        entries
            .filter(|(_, entry)| entry.config.as_ref().is_some_and(|config| names(&config.name)))
            .map(|(index, _)| index)
            .collect()
    }

    /// Sets up every data source that a session asks for and a producer offers.
    pub(crate) fn set_up_all(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get(&session_id) else { return };
        let mut matches = Vec::new();
        for (entry, source) in session.config.data_sources.iter().enumerate() {
            let Some(name) = source.config.as_ref().and_then(|config| config.name.as_deref()) else { continue };
            for (index, registration) in self.registry.iter().enumerate() {
                if registration.name == name {
                    matches.push((entry, index));
                }
            }
        }
        for (entry, registration) in matches {
            self.set_up(session_id, entry, registration, cx);
        }
    }

    /// Makes an instance if the entry's filters let the producer pass, and tells the producer.
    pub(crate) fn set_up(
        &mut self,
        session_id: SessionId,
        entry: usize,
        registration: usize,
        cx: &mut Context<'_>,
    ) -> Option<InstanceId> {
        let session = self.sessions.get_mut(&session_id)?;
        let registration = self.registry.get(registration)?;
        let producer = self.producers.get_mut(&registration.producer)?;
        if self.is_locked_down && producer.peer.uid != self.config.uid {
            return None;
        }
        let source = session.config.data_sources.get(entry)?;
        let patterns = session.patterns.get(entry).map_or(&[][..], Vec::as_slice);
        let all_machines = session.config.trace_all_machines.unwrap_or(false);
        if !is_on_wanted_machine(source, all_machines, producer, &self.config.system)
            || !passes_name_filters(source, patterns, producer)
        {
            return None;
        }
        if session.instances.len() >= MAX_INSTANCES_PER_SESSION {
            cx.warn(format!("session {} has {MAX_INSTANCES_PER_SESSION} data source instances", session_id.0));
            return None;
        }
        let target = config_check::target_buffer(&session.config, source.config.as_ref()?);
        let Some(buffer) = target.and_then(|index| session.buffers.get(index)).copied() else {
            cx.warn(format!("session {}: data source entry {entry} has no buffer", session_id.0));
            return None;
        };

        self.last.instance += 1;
        let id = InstanceId(self.last.instance);
        let descriptor = DataSourceDescriptorReader::new(&registration.descriptor);
        let instance = Instance {
            id,
            producer: producer.id,
            name: registration.name.clone(),
            buffer,
            state: InstanceState::Configured,
            notifies_start: descriptor.will_notify_on_start().unwrap_or(false),
            notifies_stop: descriptor.will_notify_on_stop().unwrap_or(false),
            clears_incremental_state: descriptor.handles_incremental_state_clear().unwrap_or(false),
            no_flush: descriptor.no_flush().unwrap_or(false),
            config: instance_config(session, session.source_configs.get(entry)?, buffer),
        };
        let setup = command::setup_data_source(id, &instance.config);
        session.instances.push(instance);
        producer.allowed_buffers.insert(buffer);

        if matches!(producer.memory, Memory::Unset) {
            let (size, page_size) = wanted_sizes(&session.config, producer);
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
                    let announcement = command::setup_tracing(Some(page_size));
                    producer.announce_memory(announcement, crate::api::Attachment::Absent, cx);
                }
            }
        }
        producer.send(setup, cx);
        Some(id)
    }
}

/// The config of an instance: the entry's, byte for byte, with the fields that the service sets.
fn instance_config(session: &Session, entry_config: &[u8], buffer: BufferId) -> Vec<u8> {
    let overwritten = [2, 3, 4, 6, 7, 8, 122];
    let prefers_suspend_clock = session.config.prefer_suspend_clock_for_duration;
    let mut out = Vec::with_capacity(entry_config.len() + 64);
    let mut fields = Fields::new(entry_config);
    let mut copied_to = 0;
    while let Some((field, bytes)) = fields.next_with_bytes() {
        if overwritten.contains(&field.id) && (field.id != 122 || prefers_suspend_clock.is_some()) {
            let end = fields.offset();
            out.extend_from_slice(&entry_config[copied_to..end - bytes.len()]);
            copied_to = end;
        }
    }
    out.extend_from_slice(&entry_config[copied_to..fields.offset()]);

    let mut own = esatto_protozero::HeapBuffer::new();
    let mut config = esatto_schema::DataSourceConfigWriter::from(own.message());
    config.target_buffer(buffer.0.into());
    config.trace_duration_ms(session.config.duration_ms.unwrap_or(0));
    config.tracing_session_id(session.id.0);
    config.enable_extra_guardrails(config_check::is_guarded(&session.config));
    config.stop_timeout_ms(session.stop_timeout_ms());
    if let Some(prefers) = prefers_suspend_clock {
        config.prefer_suspend_clock_for_duration(prefers);
    }
    config.session_initiator(esatto_schema::data_source_config::SessionInitiator::SESSION_INITIATOR_UNSPECIFIED);
    drop(config);
    out.extend_from_slice(own.as_slice());
    out
}

/// Whether an entry wants producers of this one's machine.
fn is_on_wanted_machine(
    source: &esatto_schema::trace_config::DataSource,
    all_machines: bool,
    producer: &crate::producer::Producer,
    host: &SystemFacts,
) -> bool {
    let wanted = &source.machine_name_filter;
    let is_host = producer.peer.machine_id == 0;
    if wanted.is_empty() {
        return is_host || all_machines;
    }
    let names = |name: &[u8]| wanted.iter().any(|wanted| wanted.as_bytes() == name);
    let name = &producer.machine_name;
    match is_host {
        true => names(HOST) || names(host.machine_name().as_bytes()),
        // A guest may call itself what it likes, but it does not become the host by that.
        false => name != HOST && names(name),
    }
}

/// Whether an entry wants producers of this one's name.
fn passes_name_filters(
    source: &esatto_schema::trace_config::DataSource,
    patterns: &[NamePattern],
    producer: &crate::producer::Producer,
) -> bool {
    let names = &source.producer_name_filter;
    let is_unfiltered = names.is_empty() && patterns.is_empty();
    let is_named = || names.iter().any(|name| name.as_bytes() == producer.name);
    is_unfiltered || is_named() || patterns.iter().any(|pattern| pattern.matches(&producer.name))
}

fn wanted_sizes(config: &esatto_schema::TraceConfig, producer: &crate::producer::Producer) -> (usize, usize) {
    let wish =
        config.producers.iter().find(|wish| wish.producer_name.as_deref().unwrap_or_default() == &*producer.name);
    let bytes = |kb: Option<u32>, hint: usize| match kb {
        None | Some(0) => hint,
        Some(kb) => (kb as usize).saturating_mul(1024),
    };
    granted_sizes(
        bytes(wish.and_then(|wish| wish.shm_size_kb), producer.smb_size_hint),
        bytes(wish.and_then(|wish| wish.page_size_kb), producer.page_size_hint),
    )
}

/// The raw config of each `data_sources` entry of an encoded TraceConfig, in order.
pub(crate) fn raw_source_configs(config: esatto_schema::TraceConfigReader<'_>) -> Vec<Vec<u8>> {
    config
        .data_sources()
        .map(|source| {
            source.config().map_or_else(Vec::new, |config: DataSourceConfigReader<'_>| config.as_bytes().to_vec())
        })
        .collect()
}
