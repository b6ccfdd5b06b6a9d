//! The service: its state, and which step an input leads to.

pub(crate) mod admission;
pub(crate) mod clone_session;
pub(crate) mod commit;
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

use std::collections::{BTreeMap, BTreeSet};

use esatto_map::{Map, Set};

use crate::api::{ClientId, ConsumerCall, FileId, Input, Now, Output, Outputs, ServiceConfig, TimerClock, TimerId};
use crate::buffer::CentralBuffer;
use crate::client_text::Name;
use crate::consumer::Consumer;
use crate::context::Context;
use crate::fair_share::Pool;
use crate::ids::{BufferId, InstanceId, ProducerId, SessionId};
use crate::machines::Machines;
use crate::priority_boost::Priorities;
use crate::producer::data_sources::Registry;
use crate::producer::{Producer, ProducerConnection};
use crate::random::Random;
use crate::service::clone_session::{CloneId, PendingClone};
use crate::service::freed_sessions::Drain;
use crate::session::Session;
use crate::session::guarded_names::GuardedNames;
use crate::session::triggers::{History, Listeners};

/// The buffers of all sessions. Boxed, so that an entry that goes moves only pointers.
pub(crate) type Buffers = Map<BufferId, Box<CentralBuffer>>;

/// The tracing service; see [`api`](crate::api) for how it is driven.
#[derive(Debug)]
pub struct Service {
    pub(crate) config: ServiceConfig,
    pub(crate) random: Random,
    pub(crate) connections: Map<ClientId, ProducerConnection>,
    pub(crate) producers: Map<ProducerId, Box<Producer>>,
    pub(crate) registry: Registry,
    /// What all producers took of the bytes that descriptors can have.
    pub(crate) descriptor_bytes: Pool,
    /// What all producers took of the writers that the service remembers.
    pub(crate) writer_pool: Pool,
    /// All instances, by their producers and names.
    pub(crate) instances_of: BTreeSet<(ProducerId, Name, SessionId, InstanceId)>,
    pub(crate) consumers: Map<ClientId, Consumer>,
    pub(crate) machines: Machines,
    pub(crate) sessions: Map<SessionId, Session>,
    pub(crate) buffers: Buffers,
    /// See [`Service::limit_buffers`].
    pub(crate) max_buffer_bytes: u64,
    pub(crate) files: Map<FileId, SessionId>,
    /// Freed sessions whose files are not complete yet.
    pub(crate) drains: Map<SessionId, Drain>,
    timers: BTreeMap<TimerId, Timer>,
    /// The same by their sessions.
    timers_of: BTreeSet<(Timer, TimerId)>,
    pub(crate) last: LastIds,
    pub(crate) discarded: Discarded,
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
    /// For chunks on their way from shared memory into a buffer.
    pub(crate) scratch: Vec<u8>,
    /// See [`Service::work`].
    pub(crate) work: u64,
}

/// The numbers handed out last.
#[derive(Debug, Default)]
pub(crate) struct LastIds {
    pub(crate) producer: u16,
    pub(crate) buffer: u16,
    pub(crate) instance: u64,
    pub(crate) session: u64,
    pub(crate) flush: u64,
    pub(crate) file: u64,
    pub(crate) clone: u64,
    timer: u64,
}

/// What was refused before it came to a buffer; all sessions together.
#[derive(Debug, Default)]
pub(crate) struct Discarded {
    pub(crate) chunks: u64,
    pub(crate) patches: u64,
}

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timer {
    pub(crate) session: SessionId,
    pub(crate) purpose: Purpose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// Sync marker, stats and clocks. The first, as timers are ordered.
    Snapshot,
    /// The duration is over.
    Duration,
    /// Data sources did not acknowledge their stop.
    StopTimeout,
    /// Data sources did not start.
    SlowStart,
    WriteFile,
    PeriodicFlush,
    ClearIncrementalState,
    FlushTimeout(u64),
    /// The next memories of a session that is scraped.
    Scrape,
    /// No start trigger came.
    TriggerTimeout,
    /// The delay of a stop trigger is over.
    TriggerStop,
    /// The delay of a clone trigger is over.
    CloneTrigger(u64),
    /// The file of a freed session takes nothing.
    DrainStall,
}

impl Purpose {
    /// The least.
    const FIRST: Self = Self::Snapshot;
}

impl Service {
    /// A service without clients.
    pub fn new(config: ServiceConfig) -> Self {
        let random = Random::new(&config.seed);
        Self {
            config,
            random,
            connections: Map::new(),
            producers: Map::new(),
            registry: Registry::default(),
            descriptor_bytes: Pool::default(),
            writer_pool: Pool::default(),
            instances_of: BTreeSet::new(),
            consumers: Map::new(),
            machines: Machines::default(),
            sessions: Map::new(),
            buffers: Map::new(),
            max_buffer_bytes: u64::MAX,
            files: Map::new(),
            drains: Map::new(),
            timers: BTreeMap::new(),
            timers_of: BTreeSet::new(),
            last: LastIds::default(),
            discarded: Discarded::default(),
            is_locked_down: false,
            guarded_names: GuardedNames::default(),
            trigger_history: History::default(),
            listeners: Listeners::default(),
            priorities: Priorities::default(),
            pending_clones: Map::new(),
            to_notify: Set::new(),
            scratch: Vec::new(),
            work: 0,
        }
    }

    /// Limits the bytes of the buffers of all sessions and clones together, which have no limit
    /// otherwise. A user gets at most half of what the others leave; root and the service's own
    /// user get all of it. What goes beyond is refused with an error that says how much is left.
    pub fn limit_buffers(&mut self, bytes: u64) {
        self.max_buffer_bytes = bytes;
    }

    /// Bytes of all central buffers that sessions have asked for, filled or not.
    pub fn buffer_bytes(&self) -> u64 {
        self.buffers.values().map(|buffer| buffer.size_bytes() as u64).sum()
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
                self.connections.insert(client, ProducerConnection::new(peer, memory));
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

    /// Timers that are armed.
    pub(crate) fn timer_count(&self) -> usize {
        self.timers.len()
    }

    /// The same, as the sessions know them.
    pub(crate) fn timers_by_session(&self) -> usize {
        self.timers_of.len()
    }

    fn timer_expired(&mut self, id: TimerId, cx: &mut Context<'_>) {
        let Some(timer) = self.timers.remove(&id) else { return };
        self.timers_of.remove(&(timer, id));
        let Timer { session, purpose } = timer;
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

    /// Arms a timer that fires after so many milliseconds.
    pub(crate) fn set_timer(
        &mut self,
        session: SessionId,
        purpose: Purpose,
        clock: TimerClock,
        delay_ms: u32,
        cx: &mut Context<'_>,
    ) {
        let at_ns = clock_of(cx.now, clock).saturating_add(u64::from(delay_ms) * 1_000_000);
        self.set_timer_at(session, purpose, clock, at_ns, cx);
    }

    /// Arms a timer that fires at the next multiple of the period, at least a millisecond from now.
    pub(crate) fn set_periodic_timer(
        &mut self,
        session: SessionId,
        purpose: Purpose,
        clock: TimerClock,
        period_ms: u32,
        cx: &mut Context<'_>,
    ) {
        let now_ms = clock_of(cx.now, clock) / 1_000_000;
        let period_ms = u64::from(period_ms.max(1));
        let at_ms = now_ms.saturating_add(period_ms - now_ms % period_ms);
        self.set_timer_at(session, purpose, clock, at_ms.saturating_mul(1_000_000), cx);
    }

    fn set_timer_at(
        &mut self,
        session: SessionId,
        purpose: Purpose,
        clock: TimerClock,
        at_ns: u64,
        cx: &mut Context<'_>,
    ) {
        self.last.timer += 1;
        let timer = TimerId(self.last.timer);
        self.timers.insert(timer, Timer { session, purpose });
        self.timers_of.insert((Timer { session, purpose }, timer));
        cx.push(Output::SetTimer { timer, clock, at_ns });
    }

    /// Disarms the timers of a session that match.
    pub(crate) fn cancel_timers(
        &mut self,
        session: SessionId,
        matches: impl Fn(Purpose) -> bool,
        cx: &mut Context<'_>,
    ) {
        let from = (Timer { session, purpose: Purpose::FIRST }, TimerId(0));
        let of_session = self.timers_of.range(from..).take_while(|(timer, _)| timer.session == session);
        let cancelled: Vec<_> = of_session.filter(|(timer, _)| matches(timer.purpose)).copied().collect();
        cx.charge(cancelled.len());
        for (timer, id) in cancelled {
            self.forget_timer(timer, id, cx);
        }
    }

    /// Disarms the timers of a session that have one purpose.
    pub(crate) fn cancel_timer(&mut self, session: SessionId, purpose: Purpose, cx: &mut Context<'_>) {
        let timer = Timer { session, purpose };
        let range = (timer, TimerId(0))..=(timer, TimerId(u64::MAX));
        while let Some(&(timer, id)) = self.timers_of.range(range.clone()).next() {
            self.forget_timer(timer, id, cx);
        }
    }

    fn forget_timer(&mut self, timer: Timer, id: TimerId, cx: &mut Context<'_>) {
        self.timers_of.remove(&(timer, id));
        self.timers.remove(&id);
        cx.push(Output::CancelTimer(id));
    }

    /// A client has taken what it was sent: it gets more of what waits for it.
    fn client_is_ready(&mut self, client: ClientId, cx: &mut Context<'_>) {
        let producer = self.connections.get(&client).and_then(|connection| connection.producer);
        if let Some(producer) = producer.and_then(|producer| self.producers.get_mut(&producer)) {
            producer.is_ready(cx);
        }
        self.consumer_is_ready(client, cx);
        self.continue_queries(client, cx);
        self.continue_read(client, cx);
    }
}

fn clock_of(now: &Now, clock: TimerClock) -> u64 {
    match clock {
        TimerClock::Monotonic => now.monotonic_ns,
        TimerClock::Boottime => now.boottime_ns,
    }
}
