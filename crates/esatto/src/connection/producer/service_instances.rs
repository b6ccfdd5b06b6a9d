//! The data source instances that one service wants of this process (`docs/spec/client-library.md`
//! §6). It does no I/O.

use core::mem;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;

use esatto_instances::Ticket;
use esatto_map::Map;
use esatto_schema::DataSourceConfigReader;
use esatto_shm::FlushCallback;

use super::flushes::PendingFlushes;
pub(crate) use super::protocol::Identity;
pub(crate) use super::protocol::Tag;
use super::protocol::{Endpoint, Event};
use super::startup_instances::{Settled, StartupId, StartupRequest, Startups};
use super::triggers::PendingTriggers;
use crate::backend::Backend;
use crate::callbacks::shielded;
use crate::connection::transport::{Call, Reply};
use crate::data_source::{self, AnySource, Assignment, Done, Flush, MAX_DESCRIPTOR_BYTES};
use crate::destination::Destination;
use crate::diagnostics;
use crate::os::Waker;
use crate::record;

pub(crate) struct Producer {
    pub(super) endpoint: Endpoint,
    pub(super) backend: Backend,
    /// The number of this connection, unique in the process.
    connection: u64,
    /// The service has accepted this producer.
    accepted: bool,
    /// The service sets instances up before it starts them. Services of 2018 do not.
    sets_up: bool,
    /// The version of each data source's descriptor that the service knows.
    announced: Vec<u64>,
    /// By the service's id.
    instances: Map<u64, Active>,
    flushes: PendingFlushes,
    triggers: PendingTriggers,
    /// The service has been told of triggers on this connection.
    has_told_triggers: bool,
    /// Flushes that wait until the service has been told of triggers, and whether they are the
    /// last.
    trigger_flushes: Vec<(FlushCallback, bool)>,
    /// Functions for the time when a service has started what it wants.
    syncs: Vec<(FlushCallback, Unreached)>,
    /// `None` before the first request for startup tracing.
    startups: Option<Box<dyn Startups>>,
}

/// Treatment of a function that waits for a service, if that cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreached {
    /// It is kept, because a service may start later.
    Wait,
    /// It is dropped.
    Forget,
}

/// An instance that the service has set up and that was not refused.
struct Active {
    source: &'static dyn AnySource,
    ticket: Ticket,
    config: Arc<[u8]>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    SetUp,
    Started,
    /// The data source has been told and has not answered.
    Stopping,
}

impl Producer {
    pub(crate) fn new(identity: Identity, backend: Backend, waker: Waker) -> Self {
        Self {
            endpoint: Endpoint::new(identity, waker),
            backend,
            connection: next_connection(),
            accepted: false,
            sets_up: false,
            announced: Vec::new(),
            instances: Map::new(),
            flushes: PendingFlushes::new(),
            triggers: PendingTriggers::new(),
            has_told_triggers: false,
            trigger_flushes: Vec::new(),
            syncs: Vec::new(),
            startups: None,
        }
    }

    /// Returns the calls to make, in this order.
    pub(crate) fn take_calls(&mut self) -> Vec<Call<Tag>> {
        self.endpoint.take_calls()
    }

    /// Returns why the connection should be closed, if it should.
    pub(crate) fn take_failure(&mut self) -> Option<String> {
        self.endpoint.take_failure()
    }

    /// Returns when to pump again, if nothing happens before.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        [self.endpoint.deadline(), self.startups.as_ref().and_then(|startups| startups.deadline())]
            .into_iter()
            .flatten()
            .min()
    }

    /// Handles the establishment of the connection.
    pub(crate) fn connected(&mut self) {
        self.endpoint.connected();
    }

    /// Handles an attempt to connect that failed.
    pub(crate) fn not_connected(&mut self) {
        self.trigger_flushes.clear();
        self.forget_syncs();
    }

    /// Handles the service's refusal, which ends all waits for it: a later attempt will hardly
    /// succeed.
    pub(crate) fn refused(&mut self) {
        self.syncs.clear();
    }

    /// Handles the end of the connection, which ends all instances.
    pub(crate) fn disconnected(&mut self) {
        self.give_up_startups(|startups| startups.abort(None));
        for (_, mut active) in mem::take(&mut self.instances) {
            active.stop();
        }
        self.flushes.clear();
        self.trigger_flushes.clear();
        self.forget_syncs();
        self.announced.clear();
        self.accepted = false;
        self.has_told_triggers = false;
        self.sets_up = false;
        self.connection = next_connection();
        self.endpoint.disconnected();
    }

    fn forget_syncs(&mut self) {
        self.syncs.retain(|(_, unreached)| *unreached == Unreached::Wait);
    }

    pub(crate) fn reply(&mut self, tag: &mut Tag, reply: Reply<'_>) {
        self.endpoint.reply(tag, reply);
        for event in self.endpoint.take_events() {
            self.event(event);
        }
    }

    /// Sends the chunks that threads have queued since the last call, and the changes since then.
    pub(crate) fn pump(&mut self, is_congested: bool, now: Instant) {
        if self.flushes.take_new() {
            self.acknowledge_flushes();
        }
        self.endpoint.pump(is_congested, now);
        self.announce();
    }

    /// Gives up startup tracing whose time is over. Also called without a connection.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.give_up_startups(|startups| startups.expire(now));
    }

    /// Begins startup tracing, if there is memory.
    pub(crate) fn start_up(&mut self, request: StartupRequest) {
        match self.endpoint.arbiter() {
            Some(arbiter) => {
                let startups = self.startups.get_or_insert_with(request.keeper);
                startups.begin(request, arbiter, self.endpoint.pid(), &self.backend);
            }
            None => request.done.complete(Ok(StartupRequest::answer(0))),
        }
    }

    /// Ends startup tracing.
    pub(crate) fn abort_startup(&mut self, id: StartupId) {
        self.give_up_startups(|startups| startups.abort(Some(id)));
    }

    /// Ends all startup tracing.
    pub(crate) fn abort_startups(&mut self) {
        self.give_up_startups(|startups| startups.abort(None));
    }

    /// Returns whether there is startup tracing that no session has adopted.
    pub(crate) fn has_startups(&self) -> bool {
        self.startups.as_ref().is_some_and(|startups| !startups.is_empty())
    }

    /// Ends the instances that a session had set up but not started, together with their startup
    /// tracing.
    fn give_up_startups(&mut self, give_up: impl FnOnce(&mut dyn Startups) -> Vec<Ticket>) {
        if let Some(startups) = &mut self.startups {
            let taken = give_up(&mut **startups);
            self.instances.retain(|_, active| !taken.contains(&active.ticket));
        }
    }

    /// Commits everything that is complete, and runs `done` when the service has it, and has the
    /// triggers that were activated before. Without either, or if the connection breaks, `done` is
    /// dropped. While `is_connecting`, triggers wait for the service. `is_last` tells that the
    /// process or tracing ends.
    pub(crate) fn flush(&mut self, done: FlushCallback, is_last: bool, is_connecting: bool) {
        if is_connecting && !self.accepted && self.triggers.wait_for_service(Instant::now()) {
            self.trigger_flushes.push((done, is_last));
        } else if self.has_told_triggers && self.endpoint.arbiter().is_none() {
            // There is nothing to commit, but the process may end before the calls are sent.
            self.endpoint.sync(done);
        } else {
            self.endpoint.flush(done, is_last);
        }
    }

    /// Registers all data sources, and runs `done` when the service has started the instances that
    /// it wants at present. If there is no service, `unreached` says whether to wait for one. If
    /// the connection breaks, `done` is dropped.
    ///
    /// A service answers a registration with the commands to set up and start. It answers the
    /// `Sync` after them, because it handles calls in order (`docs/spec/wire-protocol.md`, Sync).
    pub(crate) fn sync(&mut self, done: FlushCallback, unreached: Unreached) {
        if self.accepted {
            self.announce();
            self.endpoint.sync(done);
        } else {
            self.syncs.push((done, unreached));
        }
    }

    /// Activates triggers at once, or when the service is connected, unless that is after `until`.
    pub(crate) fn activate_triggers(&mut self, names: Vec<String>, until: Instant) {
        if self.accepted {
            self.has_told_triggers = true;
            self.endpoint.activate_triggers(&names);
            return;
        }
        self.triggers.push(names, until);
    }

    /// Handles the end of an instance, which may belong to another producer.
    pub(crate) fn ended(&mut self, ticket: Ticket) {
        if let Some(Settled { reservation, told }) = self.startups.as_mut().and_then(|startups| startups.ended(ticket))
        {
            if let Some(arbiter) = self.endpoint.arbiter() {
                arbiter.abort_reservation(reservation);
            }
            if let Some(told) = told {
                shielded(told);
            }
            return;
        }
        let id = self.instances.iter().find(|(_, active)| active.ticket == ticket).map(|(&id, _)| id);
        if let Some(id) = id {
            self.instances.remove(&id);
            // Includes the chunks of sleeping threads.
            record::flush_all();
            self.endpoint.commit();
            self.endpoint.notify_stopped(id);
        }
    }

    /// Handles a data source's answer to a flush request, which may belong to another producer.
    pub(crate) fn flushed(&mut self, connection: u64, request: u64) {
        if connection != self.connection {
            return;
        }
        if self.flushes.answered(request) {
            self.acknowledge_flushes();
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Connected => {
                self.accepted = true;
                self.announce();
                for (done, _) in mem::take(&mut self.syncs) {
                    self.endpoint.sync(done);
                }
                for names in self.triggers.take(Instant::now()) {
                    self.has_told_triggers = true;
                    self.endpoint.activate_triggers(&names);
                }
                for (done, is_last) in mem::take(&mut self.trigger_flushes) {
                    self.flush(done, is_last, false);
                }
            }
            Event::Setup { id, config } => {
                self.sets_up = true;
                self.setup(id, config);
            }
            Event::Start { id, config } => self.start(id, config),
            Event::Stop { id } => self.stop(id),
            Event::Flush { ids, request, flags } => self.service_flush(&ids, request, flags),
            Event::ClearIncrementalState { ids } => {
                for active in ids.iter().filter_map(|id| self.instances.get(id)) {
                    active.source.clear_incremental_state(active.ticket);
                }
            }
        }
    }

    /// Registers data sources that the service does not know, and updates those that have changed.
    fn announce(&mut self) {
        if !self.accepted {
            return;
        }
        for (index, source) in data_source::registered().into_iter().enumerate() {
            let version = source.version();
            let known = self.announced.get_mut(index);
            let is_new = known.is_none();
            match known {
                None => self.announced.push(version),
                Some(known) if *known != version => *known = version,
                Some(_) => continue,
            }
            let descriptor = source.descriptor();
            if descriptor.len() > MAX_DESCRIPTOR_BYTES {
                let what = if is_new { "is not recorded" } else { "keeps its descriptor" };
                diagnostics::say_once(format!(
                    "the data source {:?} {what}: its new descriptor has {} bytes, and a service takes at most \
                     {MAX_DESCRIPTOR_BYTES}",
                    source.name(),
                    descriptor.len(),
                ));
            } else if is_new {
                self.endpoint.register(&descriptor);
            } else {
                self.endpoint.update(&descriptor);
            }
        }
    }

    /// Unregisters all data sources, before a connection that is replaced ends. Otherwise the
    /// service would report a program that has ended before a session reached it.
    pub(crate) fn withdraw(&mut self) {
        // The service handles the registrations after the request for the connection, which it may
        // not have answered yet.
        self.accepted = true;
        self.announce();
        for source in data_source::registered() {
            self.endpoint.unregister(source.name());
        }
    }

    fn setup(&mut self, id: u64, config: Vec<u8>) {
        if id == 0 || self.instances.contains_key(&id) {
            return;
        }
        let config: Arc<[u8]> = config.into();
        let startups = self.startups.as_mut().filter(|_| buffer_of(&config).is_some());
        let adopted = startups.and_then(|startups| startups.adopt(&config));
        let Some((source, ticket)) = adopted.or_else(|| self.make(&config)) else { return };
        self.instances.insert(id, Active { source, ticket, config, phase: Phase::SetUp });
    }

    /// Makes an instance for a config. If it is refused, its start and its end are answered and
    /// nothing else happens.
    fn make(&self, config: &Arc<[u8]>) -> Option<(&'static dyn AnySource, Ticket)> {
        let reader = DataSourceConfigReader::new(config);
        let source = self.source_for(reader.name()?, config)?;
        let buffer = buffer_of(config)?;
        let arbiter = self.endpoint.arbiter()?;
        let in_service = || Destination::buffer(Arc::clone(arbiter), buffer, source.policy(config));
        let destination = Destination::of_config(config, in_service).with_pid(self.endpoint.pid().clone());
        let assignment =
            Assignment { config: Arc::clone(config), destination, backend: self.backend.clone(), startup: false };
        Some((source, source.setup(assignment)?))
    }

    /// Returns the data source with a name. If several share the name: the first that does not
    /// serve the same config already.
    fn source_for(&self, name: &[u8], config: &[u8]) -> Option<&'static dyn AnySource> {
        let serves = |source: &'static dyn AnySource| {
            self.instances.values().any(|active| is_same(active.source, source) && *active.config == *config)
        };
        let sources = data_source::registered();
        let mut named = sources.into_iter().filter(|source| source.name().as_bytes() == name);
        let first = named.next()?;
        if serves(first) { named.find(|source| !serves(*source)).or(Some(first)) } else { Some(first) }
    }

    fn start(&mut self, id: u64, config: Vec<u8>) {
        if !self.sets_up {
            self.setup(id, config);
        }
        if let Some(active) = self.instances.get_mut(&id).filter(|active| active.phase == Phase::SetUp) {
            active.phase = Phase::Started;
            let settled = self.startups.as_mut().and_then(|startups| startups.started(active.ticket));
            match (settled, buffer_of(&active.config), self.endpoint.arbiter()) {
                (Some(Settled { reservation, told }), Some(buffer), Some(arbiter)) => {
                    // It already records. Now its buffer is known.
                    arbiter.bind_reservation(reservation, buffer);
                    active.source.adopt(active.ticket, buffer, active.source.policy(&active.config));
                    if let Some(told) = told {
                        shielded(told);
                    }
                }
                _ => active.source.start(active.ticket),
            }
        }
        self.endpoint.notify_started(id);
    }

    fn stop(&mut self, id: u64) {
        match self.instances.get_mut(&id) {
            Some(active) => active.stop(),
            // The service also waits for refused instances.
            None => self.endpoint.notify_stopped(id),
        }
    }

    fn service_flush(&mut self, ids: &[u64], request: u64, flags: u64) {
        // Each instance once, even if it is named more often.
        let mut ids = ids.to_vec();
        esatto_map::sort(&mut ids);
        let asked: Vec<_> = self
            .instances
            .iter()
            .filter(|(id, active)| ids.binary_search(id).is_ok() && active.phase != Phase::SetUp)
            .map(|(_, active)| (active.source, active.ticket))
            .collect();
        self.flushes.add(request, asked.len());
        for (source, ticket) in asked {
            source.flush(ticket, Flush::new(ticket.slot, flags, Done::flushed(self.connection, request)));
        }
    }

    /// Acknowledges the newest request for which nothing is waited for any more, if the same holds
    /// for all earlier ones.
    fn acknowledge_flushes(&mut self) {
        if let Some(request) = self.flushes.take_complete() {
            // The service scrapes the chunks of threads that are in a trace point right now.
            record::flush_all();
            self.endpoint.acknowledge_flush(request);
        }
    }
}

impl Active {
    /// Asks the instance to end, once.
    fn stop(&mut self) {
        if mem::replace(&mut self.phase, Phase::Stopping) != Phase::Stopping {
            self.source.stop(self.ticket, Done::stopped(self.source, self.ticket));
        }
    }
}

/// Returns the buffer that a config names, if the number is valid.
fn buffer_of(config: &[u8]) -> Option<u16> {
    DataSourceConfigReader::new(config)
        .target_buffer()
        .and_then(|buffer| u16::try_from(buffer).ok())
        .filter(|&b| b != 0)
}

fn is_same(one: &'static dyn AnySource, other: &'static dyn AnySource) -> bool {
    core::ptr::addr_eq(one, other)
}

fn next_connection() -> u64 {
    static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
    CONNECTIONS.fetch_add(1, Ordering::Relaxed)
}
