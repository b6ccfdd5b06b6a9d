//! Instances: how the data sources that producers offer meet the entries of configs
//! (`docs/spec/service.md §6`).

use std::collections::BTreeMap;
use std::sync::Arc;

use esatto_protozero::Fields;
use esatto_schema::{DataSourceConfigReader, DataSourceDescriptorReader};

use crate::api::{Attachment, MemoryKind, Output, SystemFacts};
use crate::client_text::{MAX_NAME_BYTES, Name};
use crate::context::Context;
use crate::fair_share::Bounds;
use crate::ids::{BufferId, InstanceId, ProducerId, SessionId};
use crate::name_pattern::NamePattern;
use crate::producer::Memory;
use crate::producer::commands::{Command, encoded};
use crate::producer::data_sources::{FIRST, RegistrationId};
use crate::service::Service;
use crate::session::config_check;
use crate::session::instances::{Instance, InstanceState};
use crate::session::{Session, State};
use crate::shared_buffer::granted_sizes;

/// Instances that one producer may have in a session, whatever others have.
const INSTANCES_PER_PRODUCER: u64 = 16;

/// Instances that all producers together may have in a session beyond that, so that registrations
/// cannot multiply a config without end. A user gets at most half of what is left, and a producer
/// at most half of what is left for its user. What is refused is named in the log and in the trace,
/// and counted in its statistics.
const INSTANCES_OF_ALL: u64 = 16_384;

const INSTANCES: Bounds = Bounds { each: INSTANCES_PER_PRODUCER, pool: INSTANCES_OF_ALL };

/// What a `machine_name_filter` calls the machine of the service, whatever its name.
const HOST: &[u8] = b"host";

/// What a session knows of a producer that it asked, or might have asked, for data.
#[derive(Debug)]
pub(crate) struct Member {
    /// Instances that it has now.
    instances: u64,
    /// Entries of the config for which was found out whether they want this producer.
    is_known: Entries,
    /// Those that do.
    is_wanted: Entries,
    /// The log has a line that says that it gets no more instances.
    is_refused: bool,
}

impl Member {
    fn new(entries: usize) -> Self {
        Self { instances: 0, is_known: Entries::new(entries), is_wanted: Entries::new(entries), is_refused: false }
    }

    /// The filters of the config changed.
    pub(crate) fn forget_filters(&mut self) {
        self.is_known.clear();
    }
}

/// Some of the entries of a config, a bit for each.
#[derive(Clone, Debug)]
pub(crate) struct Entries(Box<[u64]>);

impl Entries {
    fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)].into())
    }

    fn contains(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    fn set(&mut self, at: usize, value: bool) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word = *word & !(1 << (at % 64)) | u64::from(value) << (at % 64);
        }
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Those that are in the other set too, or are not.
    fn filtered(&self, other: &Self, wanted: bool) -> Vec<usize> {
        let mut found = Vec::new();
        for (at, (&mine, &theirs)) in self.0.iter().zip(&other.0).enumerate() {
            let mut left = mine & if wanted { theirs } else { !theirs };
            while left != 0 {
                found.push(at * 64 + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
        found
    }

    /// The entries of a config by the name of their data source.
    pub(crate) fn by_name(config: &esatto_schema::TraceConfig) -> BTreeMap<Name, Self> {
        let mut by_name: BTreeMap<Name, Self> = BTreeMap::new();
        let sources = &config.data_sources;
        for (entry, source) in sources.iter().enumerate() {
            let Some(name) = source.config.as_ref().and_then(|config| config.name.as_deref()) else { continue };
            // No data source has a longer one.
            if name.is_empty() || name.len() > MAX_NAME_BYTES {
                continue;
            }
            match by_name.get_mut(name) {
                Some(entries) => entries.set(entry, true),
                None => {
                    let mut entries = Self::new(sources.len());
                    entries.set(entry, true);
                    by_name.insert(name.into(), entries);
                }
            }
        }
        by_name
    }
}

/// What became of a registration that has the name of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetUp {
    /// It is an instance now.
    Made(InstanceId),
    /// Neither this nor another registration of the producer becomes an instance of this entry.
    NotWanted,
}

impl Service {
    /// Sets up every data source that a session asks for and a producer offers, but those of some
    /// producers. They are started if the session is.
    pub(crate) fn set_up_all(&mut self, id: SessionId, is_left_out: impl Fn(ProducerId) -> bool, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get(&id) else { return };
        let is_started = session.state == State::Started;
        for entry in 0..session.config.data_sources.len() {
            let mut from = (ProducerId(0), FIRST);
            loop {
                cx.charge(1);
                let source = self.sessions.get(&id).and_then(|session| session.config.data_sources.get(entry));
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

    /// Makes an instance if the entry's filters and the producer's share let it pass, and tells the
    /// producer.
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
        let session = self.sessions.get_mut(&session_id)?;
        let (registration, producer) = self.producers.registration_mut(registration)?;
        if self.is_locked_down && producer.peer.uid != self.config.uid {
            return None;
        }
        if !session.wants(entry, producer, &self.config.system, cx) {
            return None;
        }
        let Some(buffer) = session.target_of(entry) else {
            cx.warn(format!("session {}: data source entry {entry} has no buffer", session_id.0));
            return None;
        };
        let member = session.members.get_mut(&producer.id)?;
        if !session.instance_pool.take(INSTANCES, &producer.peer, member.instances, 1) {
            if !core::mem::replace(&mut member.is_refused, true) {
                cx.warn(format!(
                    "session {}: data source {:?} of producer {} of uid {} is refused: the share of this producer are \
                     {} instances, because others must get some",
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

        self.last.instance += 1;
        let id = InstanceId(self.last.instance);
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
        self.instances_of.insert((producer.id, Arc::clone(&registration.name), session_id, id));
        session.instances.add(instance);
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
                    let announcement = encoded::setup_tracing(Some(page_size));
                    producer.announce_memory(announcement, Attachment::Absent, cx);
                }
            }
        }
        producer.send(Command::SetUp(id, config), cx);
        Some(id)
    }

    /// Removes the instances of a producer (those of one name, or all) from all sessions:
    /// unregistered, or the producer is gone.
    pub(crate) fn drop_instances(&mut self, producer: ProducerId, name: Option<&[u8]>, cx: &mut Context<'_>) {
        let empty: Name = Arc::from(&[][..]);
        let from = match name {
            Some(name) => self.producers.data_sources.kept_name(name).unwrap_or(empty),
            None => empty,
        };
        let affected = self.instances_of.range((producer, from, SessionId(0), InstanceId(0))..);
        let affected =
            affected.take_while(|(of, its_name, ..)| *of == producer && name.is_none_or(|name| **its_name == *name));
        let mut affected: Vec<(SessionId, InstanceId)> =
            affected.map(|&(_, _, session, instance)| (session, instance)).collect();
        affected.sort_unstable();
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
        let Some(session) = self.sessions.get_mut(&session_id) else { return };
        let Some(instance) = session.instances.remove(id) else { return };
        let producer = instance.producer;
        self.instances_of.remove(&(producer, instance.name, session_id, id));
        let (Some(member), Some(producer)) = (session.members.get_mut(&producer), self.producers.get(producer)) else {
            return;
        };
        session.instance_pool.give_back(INSTANCES, &producer.peer, member.instances, 1);
        member.instances -= 1;
    }
}

impl Session {
    /// Whether an entry's filters let a producer pass; found out once for each of both.
    fn wants(
        &mut self,
        entry: usize,
        producer: &crate::producer::Producer,
        host: &SystemFacts,
        cx: &mut Context<'_>,
    ) -> bool {
        let Some(source) = self.config.data_sources.get(entry) else { return false };
        let entries = self.config.data_sources.len();
        let member = self.members.entry(producer.id).or_insert_with(|| Member::new(entries));
        if !member.is_known.contains(entry) {
            let patterns = self.patterns.get(entry).map_or(&[][..], Vec::as_slice);
            cx.charge(source.machine_name_filter.len() + source.producer_name_filter.len() + patterns.len());
            let all_machines = self.config.trace_all_machines.unwrap_or(false);
            let is_wanted = is_on_wanted_machine(source, all_machines, producer, host)
                && passes_name_filters(source, (self.id, patterns), producer, cx);
            member.is_known.set(entry, true);
            member.is_wanted.set(entry, is_wanted);
        }
        member.is_wanted.contains(entry)
    }

    /// The entries of a data source that let a producer pass.
    pub(crate) fn wanted_entries(
        &mut self,
        name: &[u8],
        producer: &crate::producer::Producer,
        host: &SystemFacts,
        cx: &mut Context<'_>,
    ) -> Vec<usize> {
        let Some(named) = self.entries_by_name.get(name).cloned() else { return Vec::new() };
        let entries = self.config.data_sources.len();
        let member = self.members.entry(producer.id).or_insert_with(|| Member::new(entries));
        for entry in named.filtered(&member.is_known, false) {
            self.wants(entry, producer, host, cx);
        }
        let wanted = self.members.get(&producer.id).map(|member| named.filtered(&member.is_wanted, true));
        cx.charge(named.0.len());
        wanted.unwrap_or_default()
    }

    /// The buffer that an entry's data go to.
    fn target_of(&self, entry: usize) -> Option<BufferId> {
        let source = self.config.data_sources.get(entry)?;
        let index = config_check::target_buffer(&self.config, source.config.as_ref()?)?;
        self.buffers.get(index).copied()
    }

    /// The config of an entry's instances, made once.
    fn config_of(&mut self, entry: usize, buffer: BufferId, cx: &mut Context<'_>) -> Arc<[u8]> {
        if let Some(made) = self.instance_configs.get(&entry) {
            return Arc::clone(made);
        }
        let config = self.source_configs.get(entry).map_or(&[][..], Vec::as_slice);
        let made: Arc<[u8]> = instance_config(self, config, buffer).into();
        cx.charge_bytes(made.len());
        self.instance_configs.insert(entry, Arc::clone(&made));
        made
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
    (session, patterns): (SessionId, &[NamePattern]),
    producer: &crate::producer::Producer,
    cx: &mut Context<'_>,
) -> bool {
    let names = &source.producer_name_filter;
    let is_unfiltered = names.is_empty() && patterns.is_empty();
    let is_named = || names.iter().any(|name| *name.as_bytes() == *producer.name);
    is_unfiltered || is_named() || patterns.iter().any(|pattern| pattern.matches(session, &producer.name, cx))
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
