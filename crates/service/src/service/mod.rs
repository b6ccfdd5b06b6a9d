//! The service: its state, and the step that each input starts.

mod back_pressure;
mod clone_session;
mod consumer_port;
mod data_source_setup;
mod enable_tracing;
mod exclusive_sessions;
mod file_writing;
mod flush_requests;
mod freed_sessions;
mod incremental_state;
mod metrics;
mod missed_producers;
mod open_session;
mod producer_end;
mod producer_port;
mod read_buffers;
mod relay_end;
mod scrape_steps;
mod session_stats;
mod slow_data_sources;
mod snapshots;
mod start_stop;
mod stop_sessions;
mod trigger_activation;

pub use metrics::Metrics;

use crate::api::{ClientId, ConsumerCall, Input, Now, Outputs, ProducerCall, ServiceConfig, TimerId};
use crate::buffer::table::Buffers;
use crate::consumer::Consumers;
use crate::consumer::departed::DepartedProducers;
use crate::consumer::state_query::ServiceState;
use crate::context::Context;
use crate::machines::Machines;
use crate::observer::{Observer, Step};
use crate::priority_boost::Priorities;
use crate::producer::Producers;
use crate::producer::data_sources::Reserved;
use crate::random::Random;
use crate::session::activity::Activity;
use crate::session::table::Sessions;
use crate::timers::{Purpose, Timer, Timers};

/// The tracing service. [`api`](crate::api) explains how to drive it.
#[derive(Debug)]
pub struct Service {
    pub(crate) config: ServiceConfig,
    random: Random,
    pub(crate) producers: Producers,
    pub(crate) consumers: Consumers,
    machines: Machines,
    pub(crate) sessions: Sessions,
    pub(crate) buffers: Buffers,
    pub(crate) timers: Timers,
    priorities: Priorities,
    activity: Activity,
    /// The owner is about to end: longest time that a session waits for its stop.
    stops_within_ms: Option<u32>,
    pub(crate) departed: DepartedProducers,
    /// See [`Service::share_by_default`]; 0: 256 KiB.
    default_memory_bytes: usize,
    /// See [`Service::keep_unwritten`].
    keeps_unwritten: bool,
    /// See [`Service::work`].
    work: u64,
    pub(crate) observer: Observer,
}

impl Service {
    /// Creates a service without clients.
    pub fn new(config: ServiceConfig) -> Self {
        Self {
            random: Random::new(&config.seed),
            producers: Producers::default(),
            consumers: Consumers::default(),
            machines: Machines::default(),
            sessions: Sessions::new(config.uid),
            buffers: Buffers::default(),
            timers: Timers::default(),
            priorities: Priorities::default(),
            activity: Activity::default(),
            stops_within_ms: None,
            departed: DepartedProducers::default(),
            default_memory_bytes: 0,
            keeps_unwritten: false,
            work: 0,
            observer: Observer::default(),
            config,
        }
    }

    /// Limits the bytes of the buffers of all sessions and clones together. Without this call there
    /// is no limit.
    ///
    /// A user gets at most half of the bytes that other users leave; root and the service's own
    /// user get all of them. The service refuses further buffers with an error that tells how much
    /// is left.
    pub fn limit_buffers(&mut self, bytes: u64) {
        self.buffers.max_bytes = bytes;
    }

    /// Lets QueryServiceState tell a consumer also of producers that disconnected since its session
    /// began, with their data sources, up to this many bytes for all sessions. Older producers make
    /// room for newer ones, and are counted. Without this call it tells of none.
    ///
    /// So a consumer knows what a short-lived program offered.
    pub fn remember_departed_producers(&mut self, max_bytes: usize) {
        self.departed.max_bytes = max_bytes;
    }

    /// Sets the bytes of shared memory for producers that wish for no size, and for which a
    /// session's config names none. It is a multiple of 32 KiB, at most 32 MiB. Without this call
    /// it is 256 KiB, as in Perfetto (`docs/spec/service.md` §2).
    pub fn share_by_default(&mut self, bytes: usize) {
        self.default_memory_bytes = bytes;
    }

    /// Lets only this process of the service's machine offer data sources of these names. What
    /// other producers of the machine register under them is ignored, so that a session gets the
    /// data once.
    pub fn reserve_data_sources(&mut self, names: &[String], process: i32) {
        let names = names.iter().map(|name| name.clone().into_bytes()).collect();
        self.producers.data_sources.reserved = Reserved { names, process };
    }

    /// Returns the bytes of all central buffers that sessions have asked for, filled or not.
    pub fn buffer_bytes(&self) -> u64 {
        self.buffers.bytes()
    }

    /// Calls `observe` at each step from now on, in builds with debug assertions. Other builds
    /// ignore the call, so that steps cost nothing.
    pub fn observe(&mut self, observe: impl Fn(Step) + Send + 'static) {
        self.observer = Observer::new(observe);
    }

    /// Returns the work that this service has done so far. It only grows.
    ///
    /// The unit means the same on every machine: a table entry that was visited or moved counts
    /// one, and so do 64 copied bytes.
    ///
    /// An event loop reads it before and after an input. When a client has used up its share of a
    /// turn, the loop continues with the next client.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Handles an input, and appends the resulting tasks to `out`.
    pub fn handle(&mut self, now: &Now, input: Input<'_>, out: &mut Outputs) {
        let cx = &mut Context {
            now,
            out,
            work: 1,
            #[cfg(feature = "regex")]
            steps_left: Vec::new(),
        };
        match input {
            Input::ProducerCall { call, method: ProducerCall::InitializeConnection(request), offered } => {
                self.initialize_connection(call, request, offered, cx);
            }
            Input::ProducerCall { call, method, offered: _ } => self.producer_call(call, method, cx),
            Input::ProducerConnected { client, peer, memory } => {
                self.producers.connect(client, peer, memory);
            }
            Input::ProducerDisconnected(client) => self.producer_disconnected(client, cx),
            Input::SharedBufferCreated { client, buffer } => self.shared_buffer_created(client, buffer, cx),
            Input::ConsumerConnected { client, peer } => {
                self.consumers.connect(client, peer);
            }
            Input::ConsumerCall { call, method: ConsumerCall::EnableTracing(request), file_attached } => {
                self.enable_tracing_call(call, request, file_attached, cx);
            }
            Input::ConsumerCall { call, method: ConsumerCall::CloneSession(request), file_attached } => {
                self.clone_session_call(call, request, file_attached, cx);
            }
            Input::ConsumerCall { call, method, file_attached: _ } => self.consumer_call(call, method, cx),
            Input::ConsumerDisconnected(client) => self.consumer_disconnected(client, cx),
            Input::StopSessions { timeout_ms } => self.stop_sessions(timeout_ms, cx),
            Input::RelayConnected { client, peer } => self.machines.connect(client, peer),
            Input::RelayCall { call, method } => self.machines.call(call, method, cx),
            Input::RelayDisconnected(client) => self.relay_disconnected(client, cx),
            Input::MachineNamed { client, name } => {
                if self.machines.name_machine(client, name, cx) {
                    self.producers.name_machine(client, name);
                }
            }
            Input::Ready(client) => self.client_is_ready(client, cx),
            Input::TimezoneOffset(minutes) => self.config.system.timezone_offset_minutes = minutes,
            Input::TimerExpired(timer) => self.timer_expired(timer, cx),
            Input::FileOpened { file, result } => self.file_opened(file, result, cx),
            Input::FileWritten { file, result } => self.file_written(file, result, cx),
            Input::FilesGivenUp => self.give_up_drains(cx),
            Input::PrioritySet { change, result } => self.priority_set(change, result, cx),
            Input::FileCopied { file, result } => self.file_copied(file, result, cx),
        }
        if self.consumers.has_events() {
            self.consumers.send_events(cx);
        }
        self.work += cx.work;
    }

    fn timer_expired(&mut self, id: TimerId, cx: &mut Context<'_>) {
        let Some(Timer { session, purpose }) = self.timers.expire(id) else { return };
        match purpose {
            Purpose::Snapshot => self.periodic_snapshot(session, cx),
            Purpose::Duration => self.duration_is_over(session, cx),
            Purpose::StopTimeout => self.stop_timed_out(session, cx),
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

    /// Sends more to a client that has taken the earlier bytes.
    fn client_is_ready(&mut self, client: ClientId, cx: &mut Context<'_>) {
        let producer = self.producers.of_client(client);
        if let Some(producer) = producer.and_then(|producer| self.producers.get_mut(producer)) {
            producer.is_ready(cx);
        }
        self.consumers.is_ready(client, cx);
        if let Some(consumer) = self.consumers.get_mut(client) {
            let state = ServiceState {
                version: &self.config.version,
                uid: self.config.uid,
                producers: &self.producers,
                sessions: &self.sessions,
                departed: &self.departed,
            };
            consumer.continue_queries(client, &state, cx);
        }
        self.continue_read(client, cx);
    }
}
