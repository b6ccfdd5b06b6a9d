//! The event loop: waits for sockets, timers and wake-ups, and handles each in turn.
//!
//! [`client_turns`] bounds the work of one client per turn, [`outputs`] carries out what the
//! service asks for, [`unproved`] bounds clients that must prove a shared secret, and [`shutdown`]
//! ends the daemon.

mod client_turns;
mod outputs;
mod shutdown;
mod unproved;

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use esatto_ipc::Listener;
use esatto_service::{ClientId, Input, Outputs, Service, TimerId};
use esatto_shm::faults;
use esatto_trace_files::FileEvent;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};

use crate::client::{AttachedFile, Client};
use crate::clocks;
use crate::closers::{Closers, INTERRUPT_AFTER};
use crate::error::Error;
use crate::metrics_file;
use crate::metrics_file::{METRICS_PERIOD_NS, MetricsFile};
use crate::shared_secret::{Refusal, SharedSecret};
use crate::socket_role::{Ports, Role};
use crate::stats::Counters;
use crate::system_facts;
use crate::timers::Timers;
use crate::trace_files::TraceFiles;
use crate::usage_watchdog::Watchdog;
use crate::user_shares::UserShares;
use crate::wakeup::Wakeup;
use esatto_daemon_program::{ServiceManager, ThreadPriority};

use self::shutdown::Stopping;
use self::unproved::Unproved;

/// Connections accepted per wake-up of a listener.
const ACCEPTS_PER_WAKE_UP: usize = 64;
/// Events taken from the kernel at a time.
const EVENTS_PER_WAKE_UP: usize = 128;
/// Time for which a listener rests when it cannot accept a connection. The usual cause is a lack of
/// descriptors.
const ACCEPT_PAUSE_NS: u64 = 500_000_000;
/// Time for which a status for the service manager waits for further changes.
const STATUS_DELAY_NS: u64 = 1_000_000_000;

/// Work that calls of one connection may cause in one turn, as [`Service::work`] counts it. It is a
/// MiB that is copied, or 16 Ki entries of tables that are visited. The call that exceeds it is the
/// last of the turn.
const MAX_WORK_PER_TURN: u64 = 16 << 10;

/// Tokens of epoll events: the wake-up descriptor, the timer, the descriptor that requests the end,
/// the first listener and the first client.
const WAKE: u64 = 0;
const BOOT_TIMER: u64 = 1;
const STOP: u64 = 2;
const FIRST_LISTENER: u64 = 3;
const FIRST_CLIENT: u64 = 1 << 16;

/// Purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum TimerKey {
    Service(TimerId),
    /// A listener tries again to accept connections.
    Accept(usize),
    /// The service manager expects a sign of life.
    Alive,
    /// Tells the service manager how many clients are connected.
    Status,
    /// Descriptors wait to be closed, and closing may block.
    Closing,
    /// An end in order may have taken too long.
    StopCheck,
    /// The client must have proved the shared secret.
    Proof(ClientId),
    /// The file for metrics gets new numbers.
    Metrics,
}

/// A listening socket.
#[derive(Debug)]
pub(crate) struct ListeningSocket {
    pub(crate) listener: Listener,
    pub(crate) role: Role,
    pub(crate) ports: Ports,
    /// Secret that clients must prove.
    pub(crate) secret: Option<SharedSecret>,
}

/// The service, its connections and everything else that the loop owns.
#[derive(Debug)]
pub(crate) struct EventLoop {
    epoll: OwnedFd,
    service: Service,
    outputs: Outputs,
    listening: Vec<ListeningSocket>,
    clients: HashMap<ClientId, Client>,
    shares: UserShares,
    closers: Closers,
    /// Clients whose queues or events may have changed.
    dirty: VecDeque<ClientId>,
    /// Clients whose peer has closed the connection, and that are not handled yet.
    hung_up: VecDeque<ClientId>,
    /// Clients that pass a descriptor and must wait until earlier ones of their user are closed.
    held_up: Vec<ClientId>,
    unproved: Unproved,
    next_client: u64,
    monotonic: Timers<TimerKey>,
    /// Timers that count suspended time, which the timeout of epoll does not.
    boottime: Timers<TimerKey>,
    boot_timer: OwnedFd,
    boot_timer_at: Option<u64>,
    files: TraceFiles,
    priority: ThreadPriority,
    attached: Option<AttachedFile>,
    wake: Arc<Wakeup>,
    counters: Arc<Counters>,
    manager: ServiceManager,
    watchdog: Watchdog,
    /// Number of handled faults in the memory of clients.
    faults: u32,
    metrics: Option<MetricsFile>,
    /// Each byte that it holds is a request to end.
    stop: Option<OwnedFd>,
    /// The sessions are being stopped; the loop ends when they are over.
    stopping: Option<Stopping>,
}

impl EventLoop {
    pub(crate) fn new(
        service: Service,
        listening: Vec<ListeningSocket>,
        shares: UserShares,
        closers: Closers,
        wake: Arc<Wakeup>,
        counters: Arc<Counters>,
    ) -> Result<Self, Error> {
        faults::install();
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(Error::system("create an epoll instance"))?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let boot_timer =
            rustix::time::timerfd_create(TimerfdClockId::Boottime, flags).map_err(Error::system("create a timer"))?;
        let watch = |fd: rustix::fd::BorrowedFd<'_>, token: u64| {
            epoll::add(&epoll, fd, EventData::new_u64(token), EventFlags::IN)
                .map_err(Error::system("watch a descriptor"))
        };
        watch(wake.as_fd(), WAKE)?;
        watch(boot_timer.as_fd(), BOOT_TIMER)?;
        for (socket, token) in listening.iter().zip(FIRST_LISTENER..FIRST_CLIENT) {
            watch(socket.listener.as_fd(), token)?;
        }
        Ok(Self {
            epoll,
            service,
            outputs: Outputs::new(),
            listening,
            clients: HashMap::new(),
            shares,
            closers,
            dirty: VecDeque::new(),
            hung_up: VecDeque::new(),
            held_up: Vec::new(),
            unproved: Unproved::default(),
            next_client: FIRST_CLIENT,
            monotonic: Timers::new(),
            boottime: Timers::new(),
            boot_timer,
            boot_timer_at: None,
            files: TraceFiles::new(system_facts::uid(), Arc::clone(&wake), Arc::clone(&counters)),
            priority: ThreadPriority::default(),
            attached: None,
            wake,
            counters,
            manager: ServiceManager::default(),
            watchdog: Watchdog::default(),
            faults: faults::survived(),
            metrics: None,
            stop: None,
            stopping: None,
        })
    }

    /// Stops all sessions when the descriptor is readable, and then ends the loop.
    pub(crate) fn stop_when_readable(&mut self, fd: OwnedFd) -> Result<(), Error> {
        epoll::add(&self.epoll, &fd, EventData::new_u64(STOP), EventFlags::IN)
            .map_err(Error::system("watch a descriptor"))?;
        self.stop = Some(fd);
        Ok(())
    }

    /// Reports the state of the daemon to the service manager.
    pub(crate) fn report_to(&mut self, manager: ServiceManager) {
        self.manager = manager;
        self.say_alive();
    }

    /// Writes counts into a file from now on.
    pub(crate) fn write_metrics(&mut self, file: MetricsFile) {
        self.metrics = Some(file);
        self.set_metrics_timer();
    }

    fn publish_metrics(&mut self) {
        let text = self.metrics_text();
        if let Some(metrics) = &self.metrics {
            metrics.publish(text);
        }
        self.set_metrics_timer();
    }

    fn set_metrics_timer(&mut self) {
        self.monotonic.set(TimerKey::Metrics, clocks::monotonic_ns().saturating_add(METRICS_PERIOD_NS));
    }

    fn metrics_text(&self) -> String {
        let consumers = self.clients.values().filter(|client| client.role == Role::Consumer).count();
        metrics_file::text(&self.service.metrics(), &self.counters.snapshot(), consumers)
    }

    /// Runs until the end is requested, then ends all sessions in order.
    pub(crate) fn run(mut self) -> Result<(), Error> {
        let mut events = Vec::with_capacity(EVENTS_PER_WAKE_UP);
        while !self.wake.should_stop() && !self.has_stopped() {
            self.wait(&mut events)?;
            self.counters.rounds.add_one();
            let begin = monotonic();
            for event in &events {
                self.note_hang_up(event);
            }
            self.look_after_hang_ups();
            for event in events.drain(..) {
                self.dispatch(event);
            }
            self.expire_timers();
            self.close_where_memory_was_lost();
            self.look_after_clients();
            self.look_after_closers();
            self.watch(begin);
        }
        self.end();
        Ok(())
    }

    /// Checks time and memory after a turn that began at `begin`.
    fn watch(&mut self, begin: Duration) {
        let now = monotonic();
        self.watchdog.turned(begin, now);
        if self.watchdog.is_due(now) {
            self.watchdog.look(now, self.service.buffer_bytes().saturating_add(self.shares.max_held_bytes() as u64));
        }
    }

    fn wait(&mut self, events: &mut Vec<Event>) -> Result<(), Error> {
        self.set_boot_timer();
        let now_ns = clocks::monotonic_ns();
        let timeout = if self.dirty.is_empty() && self.hung_up.is_empty() {
            self.monotonic.next_ns().map(|at_ns| timespec(at_ns.saturating_sub(now_ns)))
        } else {
            Some(timespec(0))
        };
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(Error::system("wait for events")(e)),
        }
    }

    fn dispatch(&mut self, event: Event) {
        let (token, flags) = (event.data.u64(), event.flags);
        match token {
            WAKE => {
                self.wake.reset();
                self.look_after_files();
            }
            BOOT_TIMER => {
                let mut expirations = [0; 8];
                // The number does not matter, because expired timers are looked up.
                let _ = rustix::io::read(&self.boot_timer, &mut expirations);
                self.boot_timer_at = None;
            }
            STOP => self.on_stop_signal(),
            FIRST_LISTENER..FIRST_CLIENT => {
                // The token is an index that was below FIRST_CLIENT.
                self.accept(usize::try_from(token - FIRST_LISTENER).unwrap_or(usize::MAX));
            }
            _ => self.on_socket(ClientId(token), flags),
        }
    }

    /// Reports the results of file operations to the service.
    ///
    /// The service answers with the next batch, which a fast file takes at once. So this stops
    /// after enough work, and continues in the next round.
    fn look_after_files(&mut self) {
        let begun = self.service.work();
        while let Some(event) = self.files.next_event() {
            self.feed_file_event(event);
            if self.service.work() - begun > MAX_WORK_PER_TURN {
                return self.wake.wake();
            }
        }
    }

    /// Sets a timer while there is a descriptor to close, or a client to read once one is closed.
    fn look_after_closers(&mut self) {
        let is_needed = self.closers.is_busy() || !self.held_up.is_empty();
        if is_needed && !self.monotonic.is_set(TimerKey::Closing) {
            let after_ns = u64::try_from(INTERRUPT_AFTER.as_nanos()).unwrap_or(u64::MAX);
            self.monotonic.set(TimerKey::Closing, clocks::monotonic_ns().saturating_add(after_ns));
        }
    }

    /// Hands an input to the service and carries out its outputs.
    fn feed(&mut self, input: Input<'_>) {
        self.service.handle(&clocks::now(), input, &mut self.outputs);
        self.carry_out();
    }

    fn feed_file_event(&mut self, event: FileEvent) {
        match event {
            FileEvent::Opened(file, result) => self.feed(Input::FileOpened { file, result }),
            FileEvent::Written(file, result, bytes) => {
                self.outputs.recycle(bytes);
                self.feed(Input::FileWritten { file, result });
            }
            FileEvent::Copied(file, result) => self.feed(Input::FileCopied { file, result }),
            FileEvent::Closed(_) => {}
        }
    }

    fn expire_timers(&mut self) {
        let (now, begun) = (clocks::now(), self.service.work());
        let mut is_boottime_first = false;
        // Many flushes of one client may end at the same time, and each may be expensive. Timers
        // that remain are still expired in the next turn.
        while self.service.work() - begun <= MAX_WORK_PER_TURN {
            is_boottime_first = !is_boottime_first;
            let (monotonic, boottime) = (&mut self.monotonic, &mut self.boottime);
            let key = match is_boottime_first {
                true => boottime.pop_expired(now.boottime_ns).or_else(|| monotonic.pop_expired(now.monotonic_ns)),
                false => monotonic.pop_expired(now.monotonic_ns).or_else(|| boottime.pop_expired(now.boottime_ns)),
            };
            let Some(key) = key else { return };
            match key {
                TimerKey::Service(timer) => self.feed(Input::TimerExpired(timer)),
                TimerKey::Accept(index) => self.watch_listening_socket(index, EventFlags::IN),
                TimerKey::Alive => self.say_alive(),
                TimerKey::Closing => {
                    self.closers.interrupt_and_replace();
                    self.resume_reading();
                }
                TimerKey::Metrics => self.publish_metrics(),
                TimerKey::StopCheck => self.check_stop(),
                TimerKey::Status => self.manager.status(&self.status()),
                TimerKey::Proof(id) => self.refuse(id, &Refusal::TooSlow),
            }
        }
    }

    /// Arms the kernel's timer for the next deadline on the clock that counts suspended time.
    fn set_boot_timer(&mut self) {
        let next = self.boottime.next_ns();
        if next == self.boot_timer_at {
            return;
        }
        // All zero disarms the timer.
        let it_value = next.map_or(Timespec { tv_sec: 0, tv_nsec: 0 }, |at_ns| timespec(at_ns.max(1)));
        let setting = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        match rustix::time::timerfd_settime(&self.boot_timer, TimerfdTimerFlags::ABSTIME, &setting) {
            Ok(_) => self.boot_timer_at = next,
            Err(e) => log::error!("cannot arm a timer: {e}"),
        }
    }

    fn accept(&mut self, index: usize) {
        for _ in 0..ACCEPTS_PER_WAKE_UP {
            let Some(socket) = self.listening.get(index) else { return };
            match socket.listener.accept() {
                Ok(Some(stream)) => {
                    let (id, ports, secret) =
                        (ClientId(self.next_client), Arc::clone(&socket.ports), socket.secret.clone());
                    let client = Client::new(id, socket.role, stream, ports, secret, &self.closers);
                    self.next_client += 1;
                    match self.shares.admit(client.owner, self.closers.connections_of(client.owner)) {
                        Ok(()) => self.welcome(client),
                        Err(full) => {
                            self.counters.connections_refused.add_one();
                            log::warn!("{} is refused: {full}", client.name());
                        }
                    }
                }
                Ok(None) => return,
                Err(e) => {
                    log::error!("cannot accept connections on {}: {e}; trying again soon", socket.listener.address());
                    self.watch_listening_socket(index, EventFlags::empty());
                    let at_ns = clocks::monotonic_ns().saturating_add(ACCEPT_PAUSE_NS);
                    self.monotonic.set(TimerKey::Accept(index), at_ns);
                    return;
                }
            }
        }
    }

    fn welcome(&mut self, mut client: Client) {
        let (id, role) = (client.id, client.role);
        client.interest = EventFlags::IN;
        if let Err(e) = epoll::add(&self.epoll, &client.connection, EventData::new_u64(id.0), client.interest) {
            self.counters.connections_refused.add_one();
            self.shares.leave(client.owner, 0, 0);
            log::error!("{} is refused: cannot watch its socket: {e}", client.name());
            return;
        }
        match role {
            Role::Producer => self.counters.producers_accepted.add_one(),
            Role::Consumer => self.counters.consumers_accepted.add_one(),
        }
        log::debug!("{} connected", client.name());
        let is_unproved = client.is_unproved();
        self.clients.insert(id, client);
        if is_unproved {
            self.await_proof(id);
        }
        self.status_changed();
    }

    fn watch_listening_socket(&self, index: usize, flags: EventFlags) {
        let Some(socket) = self.listening.get(index) else { return };
        // Indices of listeners are below FIRST_CLIENT.
        let data = EventData::new_u64(FIRST_LISTENER + index as u64);
        if let Err(e) = epoll::modify(&self.epoll, &socket.listener, data, flags) {
            log::error!("cannot watch {}: {e}", socket.listener.address());
        }
    }

    /// Reports that the loop turns, and sets the timer for the next report.
    fn say_alive(&mut self) {
        let Some(interval) = self.manager.alive_every() else { return };
        self.manager.alive();
        let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        self.monotonic.set(TimerKey::Alive, clocks::monotonic_ns().saturating_add(interval_ns));
    }

    /// Schedules a report to the service manager, one for several changes.
    fn status_changed(&mut self) {
        if self.manager.listens() && !self.monotonic.is_set(TimerKey::Status) {
            self.monotonic.set(TimerKey::Status, clocks::monotonic_ns().saturating_add(STATUS_DELAY_NS));
        }
    }

    fn status(&self) -> String {
        let producers = self.clients.values().filter(|client| client.role == Role::Producer).count();
        format!("{producers} producers and {} consumers are connected", self.clients.len() - producers)
    }
}

/// Removes the files of sockets that an earlier end has not closed: the daemon could not start, or
/// could not wait for events.
impl Drop for EventLoop {
    fn drop(&mut self) {
        for socket in &self.listening {
            socket.listener.unlink();
        }
    }
}

fn monotonic() -> Duration {
    Duration::from_nanos(clocks::monotonic_ns())
}

fn timespec(ns: u64) -> Timespec {
    // Both parts fit: 2^64 ns are 585 years.
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}
