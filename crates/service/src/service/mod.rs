//! The service: its state, and which step an input leads to.

pub(crate) mod admission;
pub(crate) mod clone_session;
pub(crate) mod data_source_setup;
pub(crate) mod enable_tracing;
pub(crate) mod file_writing;
pub(crate) mod flush_requests;
pub(crate) mod freed_sessions;
pub(crate) mod other_sessions;
pub(crate) mod pending_resources;
pub(crate) mod producer_port;
pub(crate) mod read_buffers;
pub(crate) mod scraping;
pub(crate) mod service_packets;
pub(crate) mod start_stop;
pub(crate) mod state_query;

use std::collections::BTreeSet;

use esatto_map::{Map, Set};

use crate::api::{ClientId, ConsumerCall, FileId, Input, Now, Outputs, ServiceConfig, TimerId};
use crate::buffer::table::Buffers;
use crate::client_text::Name;
use crate::consumer::Consumer;
use crate::context::Context;
use crate::ids::{InstanceId, ProducerId, SessionId};
use crate::machines::Machines;
use crate::priority_boost::Priorities;
use crate::producer::Producers;
use crate::random::Random;
use crate::service::clone_session::{CloneId, PendingClone};
use crate::service::freed_sessions::Drain;
use crate::session::Session;
use crate::session::guarded_names::GuardedNames;
use crate::session::triggers::{History, Listeners};
use crate::timers::{Purpose, Timer, Timers};

/// The tracing service; see [`api`](crate::api) for how it is driven.
#[derive(Debug)]
pub struct Service {
    pub(crate) config: ServiceConfig,
    pub(crate) random: Random,
    pub(crate) producers: Producers,
    /// All instances, by their producers and names.
    pub(crate) instances_of: BTreeSet<(ProducerId, Name, SessionId, InstanceId)>,
    pub(crate) consumers: Map<ClientId, Consumer>,
    pub(crate) machines: Machines,
    pub(crate) sessions: Map<SessionId, Session>,
    pub(crate) buffers: Buffers,
    pub(crate) files: Map<FileId, SessionId>,
    /// Freed sessions whose files are not complete yet.
    pub(crate) drains: Map<SessionId, Drain>,
    pub(crate) timers: Timers,
    pub(crate) last: LastIds,
    /// Only producers of the service's own user are served.
    pub(crate) is_locked_down: bool,
    /// The names of guarded sessions that began not long ago.
    pub(crate) guarded_names: GuardedNames,
    pub(crate) trigger_history: History,
    /// Which sessions wait for which triggers.
    pub(crate) listeners: Listeners,
    pub(crate) priorities: Priorities,
    /// Snapshots that wait for data sources to flush.
    pub(crate) pending_clones: Map<CloneId, PendingClone>,
    /// Consumers with events that were not sent yet.
    pub(crate) to_notify: Set<ClientId>,
    /// See [`Service::work`].
    pub(crate) work: u64,
}

/// The numbers handed out last.
#[derive(Debug, Default)]
pub(crate) struct LastIds {
    pub(crate) instance: u64,
    pub(crate) session: u64,
    pub(crate) flush: u64,
    pub(crate) file: u64,
    pub(crate) clone: u64,
}

impl Service {
    /// A service without clients.
    pub fn new(config: ServiceConfig) -> Self {
        let random = Random::new(&config.seed);
        Self {
            config,
            random,
            producers: Producers::default(),
            instances_of: BTreeSet::new(),
            consumers: Map::new(),
            machines: Machines::default(),
            sessions: Map::new(),
            buffers: Buffers::default(),
            files: Map::new(),
            drains: Map::new(),
            timers: Timers::default(),
            last: LastIds::default(),
            is_locked_down: false,
            guarded_names: GuardedNames::default(),
            trigger_history: History::default(),
            listeners: Listeners::default(),
            priorities: Priorities::default(),
            pending_clones: Map::new(),
            to_notify: Set::new(),
            work: 0,
        }
    }

    /// Limits the bytes of the buffers of all sessions and clones together, which have no limit
    /// otherwise. A user gets at most half of what the others leave; root and the service's own
    /// user get all of it. What goes beyond is refused with an error that says how much is left.
    pub fn limit_buffers(&mut self, bytes: u64) {
        self.buffers.max_bytes = bytes;
    }

    /// Bytes of all central buffers that sessions have asked for, filled or not.
    pub fn buffer_bytes(&self) -> u64 {
        self.buffers.bytes()
    }

    /// Work that this service has done so far, in units that mean the same on every machine: an
    /// entry of a table that was visited or moved counts one, as do 64 bytes that were copied. It
    /// only grows.
    ///
    /// An event loop reads it before and after an input, and goes on to the next client when one of
    /// them has used up its share of a turn.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Takes in something that happened; what is to be done about it is appended to `out`.
    pub fn handle(&mut self, now: &Now, input: Input<'_>, out: &mut Outputs) {
        let cx = &mut Context {
            now,
            out,
            work: 1,
            #[cfg(feature = "regex")]
            steps_left: Vec::new(),
        };
        match input {
            Input::ProducerCall { call, method } => self.producer_call(call, method, cx),
            Input::ProducerConnected { client, peer, memory } => {
                self.producers.connect(client, peer, memory);
            }
            Input::ProducerDisconnected(client) => self.producer_disconnected(client, cx),
            Input::SharedBufferCreated { client, buffer } => self.shared_buffer_created(client, buffer, cx),
            Input::ConsumerConnected { client, peer } => {
                self.consumers.insert(client, Consumer::new(peer));
            }
            Input::ConsumerCall { call, method: ConsumerCall::EnableTracing(request), file_attached } => {
                self.enable_tracing_call(call, request, file_attached, cx);
            }
            Input::ConsumerCall { call, method: ConsumerCall::CloneSession(request), file_attached } => {
                self.clone_session_call(call, request, file_attached, cx);
            }
            Input::ConsumerCall { call, method, file_attached: _ } => self.consumer_call(call, method, cx),
            Input::ConsumerDisconnected(client) => self.consumer_disconnected(client, cx),
            Input::RelayConnected { client, peer } => self.relay_connected(client, peer),
            Input::RelayCall { call, method } => self.relay_call(call, method, cx),
            Input::RelayDisconnected(client) => self.relay_disconnected(client),
            Input::MachineNamed { client, name } => self.machine_named(client, name, cx),
            Input::Ready(client) => self.client_is_ready(client, cx),
            Input::TimezoneOffset(minutes) => self.config.system.timezone_offset_minutes = minutes,
            Input::TimerExpired(timer) => self.timer_expired(timer, cx),
            Input::FileOpened { file, result } => self.file_opened(file, result, cx),
            Input::FileWritten { file, result } => self.file_written(file, result, cx),
            Input::PrioritySet { change, result } => self.priority_set(change, result, cx),
            Input::FileCopied { file, result } => self.file_copied(file, result, cx),
        }
        if !self.to_notify.is_empty() {
            self.send_events(cx);
        }
        self.work += cx.work;
    }

    fn timer_expired(&mut self, id: TimerId, cx: &mut Context<'_>) {
        let Some(Timer { session, purpose }) = self.timers.expire(id) else { return };
        match purpose {
            Purpose::Snapshot => self.run_snapshot_task(session, cx),
            Purpose::Duration => self.duration_is_over(session, cx),
            Purpose::StopTimeout => self.finish_stopping(session, cx),
            Purpose::SlowStart => self.record_slow_start(session, cx),
            Purpose::WriteFile => self.write_file_period(session, cx),
            Purpose::PeriodicFlush => self.periodic_flush(session, cx),
            Purpose::ClearIncrementalState => self.clear_incremental_state(session, cx),
            Purpose::TriggerTimeout => self.trigger_timeout(session, cx),
            Purpose::TriggerStop => self.trigger_stop(session, cx),
            Purpose::CloneTrigger(hit) => self.clone_trigger(session, hit),
            Purpose::DrainStall => self.drain_stalled(session, cx),
            Purpose::FlushTimeout(flush) => self.finish_flush(session, flush, false, cx),
            Purpose::Scrape => self.continue_scrape(session, cx),
        }
    }

    /// A client has taken what it was sent: it gets more of what waits for it.
    fn client_is_ready(&mut self, client: ClientId, cx: &mut Context<'_>) {
        let producer = self.producers.of_client(client);
        if let Some(producer) = producer.and_then(|producer| self.producers.get_mut(producer)) {
            producer.is_ready(cx);
        }
        self.consumer_is_ready(client, cx);
        self.continue_queries(client, cx);
        self.continue_read(client, cx);
    }
}
