//! The loop: waits for sockets, timers and wake-ups, and looks after each in turn.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use esatto_ipc::{Error as IpcError, ForeignFd, Listener, Port};
use esatto_service::{CallId, ClientId, Input, Outputs, Service, TimerId};
use esatto_shm::faults;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};

use crate::census::{Census, Owner, fullest_first};
use crate::client::{CallContext, Client};
use crate::clocks;
use crate::closers::{Closers, INTERRUPT_AFTER};
use crate::error::Error;
use crate::facts;
use crate::files::{FileEvent, Files};
use crate::manager::Manager;
use crate::ports::Role;
use crate::priority::Priority;
use crate::stats::Counters;
use crate::timers::Timers;
use crate::wake::Wake;
use crate::watchdog::Watchdog;

/// Connections accepted per wake-up of a listener.
const ACCEPTS_PER_WAKE_UP: usize = 64;
/// Calls of one connection handled before it is the turn of others. They may be as cheap as a number or move megabytes.
const CALLS_PER_TURN: usize = 64;
/// Work that calls of one connection may cause before it is the turn of others, as
/// [`Service::work`] counts it: a MiB that is copied, or 16 Ki entries of tables that are visited.
/// The call that goes beyond it is the last of the turn.
const MAX_WORK_PER_TURN: u64 = 16 << 10;
/// Work that what a process leaves behind at its end may cause before others get their turn. All of
/// its shared memory, committed when it ended, is 512 Ki.
const MAX_WORK_PER_HANG_UP: u64 = 1 << 20;
/// Work of all connections that end, in one round of the loop. Protects others from very many that
/// end at the same time: each of them may leave much behind, and its shared memory is looked at. The
/// same for all connections that have something left to do. The connection that goes beyond it is
/// the last of the round.
const MAX_WORK_PER_ROUND: u64 = 1 << 20;
/// Calls that a process may leave behind at its end and that are handled before others get their
/// turn: what the kernel holds of one connection, as commits.
const CALLS_PER_HANG_UP: usize = 8192;
/// Turns of [`CALLS_PER_TURN`] calls that connections at their end may take in one round of the
/// loop, whatever work the calls are.
const HANG_UP_TURNS_PER_ROUND: usize = 256;
/// Events taken from the kernel at a time.
const EVENTS_PER_WAKE_UP: usize = 128;
/// How long a listener rests when no connection can be accepted, for want of descriptors most likely.
const ACCEPT_PAUSE_NS: u64 = 500_000_000;
/// How long news for the service manager wait for more.
const STATUS_DELAY_NS: u64 = 1_000_000_000;
/// How long the end of a daemon waits for trace files to take their last bytes.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// What the kernel calls an event of the wake-up descriptor, of the timer, of the wish to stop, and of the first listener
/// and client.
const WAKE: u64 = 0;
const BOOT_TIMER: u64 = 1;
const STOP: u64 = 2;
const FIRST_LISTENER: u64 = 3;
const FIRST_CLIENT: u64 = 1 << 16;

/// A descriptor that came with a call, until the call is handled.
#[derive(Debug)]
pub(crate) struct AttachedFile {
    pub(crate) call: CallId,
    pub(crate) fd: ForeignFd,
    /// For whom it is counted if it becomes a trace file.
    pub(crate) owner: Owner,
}

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum TimerKey {
    Service(TimerId),
    /// A listener may try again.
    Accept(usize),
    /// The service manager wants a sign of life.
    Alive,
    /// The service manager is told how many are connected.
    Status,
    /// Descriptors wait to be closed: something may hold them up.
    Closing,
}

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) listener: Listener,
    pub(crate) role: Role,
    pub(crate) ports: Arc<[Port]>,
}

/// The service and everything around it.
#[derive(Debug)]
pub(crate) struct EventLoop {
    epoll: OwnedFd,
    pub(crate) service: Service,
    pub(crate) outputs: Outputs,
    doors: Vec<Door>,
    pub(crate) clients: HashMap<ClientId, Client>,
    pub(crate) census: Census,
    closers: Closers,
    /// Clients whose queues or interests may have changed.
    dirty: VecDeque<ClientId>,
    /// Clients whose other end is closed, and that are not dealt with yet.
    hung_up: VecDeque<ClientId>,
    /// Clients that pass descriptors and have to wait until others of their users are closed.
    held_up: Vec<ClientId>,
    next_client: u64,
    pub(crate) monotonic: Timers<TimerKey>,
    /// Timers that count suspend, which the timeout of epoll does not.
    pub(crate) boottime: Timers<TimerKey>,
    boot_timer: OwnedFd,
    boot_timer_at: Option<u64>,
    pub(crate) files: Files,
    pub(crate) priority: Priority,
    pub(crate) attached: Option<AttachedFile>,
    wake: Arc<Wake>,
    pub(crate) counters: Arc<Counters>,
    manager: Manager,
    watchdog: Watchdog,
    /// Faults in the memory of clients, as far as they were looked into.
    faults: u32,
    /// Whoever writes here wants the end.
    stop: Option<OwnedFd>,
}

impl EventLoop {
    pub(crate) fn new(
        service: Service,
        doors: Vec<Door>,
        census: Census,
        closers: Closers,
        wake: Arc<Wake>,
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
        for (door, token) in doors.iter().zip(FIRST_LISTENER..FIRST_CLIENT) {
            watch(door.listener.as_fd(), token)?;
        }
        Ok(Self {
            epoll,
            service,
            outputs: Outputs::new(),
            doors,
            clients: HashMap::new(),
            census,
            closers,
            dirty: VecDeque::new(),
            hung_up: VecDeque::new(),
            held_up: Vec::new(),
            next_client: FIRST_CLIENT,
            monotonic: Timers::new(),
            boottime: Timers::new(),
            boot_timer,
            boot_timer_at: None,
            files: Files::new(facts::uid(), Arc::clone(&wake), Arc::clone(&counters)),
            priority: Priority::default(),
            attached: None,
            wake,
            counters,
            manager: Manager::default(),
            watchdog: Watchdog::default(),
            faults: faults::survived(),
            stop: None,
        })
    }

    /// Ends the loop as soon as there is something to read.
    pub(crate) fn stop_when_readable(&mut self, fd: OwnedFd) -> Result<(), Error> {
        epoll::add(&self.epoll, &fd, EventData::new_u64(STOP), EventFlags::IN)
            .map_err(Error::system("watch a descriptor"))?;
        self.stop = Some(fd);
        Ok(())
    }

    /// Tells the service manager how it goes.
    pub(crate) fn report_to(&mut self, manager: Manager) {
        self.manager = manager;
        self.say_alive();
    }

    /// Runs until the wish to stop comes, then ends all sessions in good order.
    pub(crate) fn run(mut self) -> Result<(), Error> {
        let mut events = Vec::with_capacity(EVENTS_PER_WAKE_UP);
        while !self.wake.should_stop() {
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

    /// Whether all is as it should be, after a turn that began then.
    fn watch(&mut self, begin: Duration) {
        let now = monotonic();
        self.watchdog.turned(begin, now);
        if self.watchdog.is_due(now) {
            self.watchdog.look(now, self.service.buffer_bytes().saturating_add(self.census.max_held_bytes() as u64));
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

    /// Puts a client whose other end is closed on the list.
    fn note_hang_up(&mut self, event: &Event) {
        let (token, flags) = (event.data.u64(), event.flags);
        if token >= FIRST_CLIENT && flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            self.hang_up_soon(ClientId(token));
        }
    }

    fn hang_up_soon(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(&id) {
            if !core::mem::replace(&mut client.has_hung_up, true) {
                self.hung_up.push_back(id);
            }
        }
    }

    /// Deals with clients whose other end is closed, before all others: see [`hang_up`](Self::hang_up).
    /// Those that are left when the work of a round is done are the first in the next round.
    fn look_after_hang_ups(&mut self) {
        let budget = Budget::new(&self.service);
        let mut turns = 0;
        for _ in 0..self.hung_up.len() {
            if budget.is_used_up(&self.service) || turns >= HANG_UP_TURNS_PER_ROUND {
                return;
            }
            let Some(id) = self.hung_up.pop_front() else { return };
            turns += self.hang_up(id);
            if self.clients.contains_key(&id) {
                self.hung_up.push_back(id);
            }
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
                // How often does not matter: what has expired is looked up.
                let _ = rustix::io::read(&self.boot_timer, &mut expirations);
                self.boot_timer_at = None;
            }
            STOP => self.wake.stop(),
            FIRST_LISTENER..FIRST_CLIENT => {
                // The token is an index that fitted below FIRST_CLIENT.
                self.accept(usize::try_from(token - FIRST_LISTENER).unwrap_or(usize::MAX));
            }
            _ => self.on_socket(ClientId(token), flags),
        }
    }

    /// Tells the service what became of its files. It answers with the next batch, and a fast file
    /// takes that at once. So this stops when enough was done, and goes on in the next round.
    fn look_after_files(&mut self) {
        let begun = self.service.work();
        while let Some(event) = self.files.next_event() {
            self.feed_file_event(event);
            if self.service.work() - begun > MAX_WORK_PER_TURN {
                return self.wake.wake();
            }
        }
    }

    /// Something happened on the socket of a client.
    fn on_socket(&mut self, id: ClientId, flags: EventFlags) {
        // A client closed earlier in this round may still have an event.
        let Some(client) = self.clients.get_mut(&id) else { return };
        if client.has_hung_up {
            return;
        }
        if flags.contains(EventFlags::OUT) {
            if let Err(e) = client.connection.flush_writes() {
                return self.write_failed(id, &e);
            }
        }
        if flags.contains(EventFlags::IN) {
            if let Err(e) = client.connection.on_readable() {
                return self.close(id, Some(&e));
            }
            if client.connection.is_held_up() {
                self.held_up.push(id);
            }
        }
        self.handle_frames(id);
        self.mark_dirty(id);
    }

    fn write_failed(&mut self, id: ClientId, error: &IpcError) {
        let IpcError::Disconnected = error else { return self.close(id, Some(error)) };
        // The other end may only not read any more. What it has sent is handled, and it must not go
        // on: ends of connections are dealt with before all others.
        if let Some(client) = self.clients.get(&id) {
            client.connection.stream().shutdown_read();
        }
        self.hang_up_soon(id);
    }

    /// The other end is closed. What was sent before is handled all the same: the last commits of a process that ends
    /// come like this. All of it at once, because whoever knows that the process has ended (its parent, a
    /// consumer that flushes) counts on the service to know it, too.
    ///
    /// That holds for all that a process leaves behind in good faith. One that leaves more behind
    /// than [`CALLS_PER_HANG_UP`] calls or [`MAX_WORK_PER_HANG_UP`] is dealt with in several turns,
    /// and others are served meanwhile.
    ///
    /// Returns how many turns it took.
    fn hang_up(&mut self, id: ClientId) -> usize {
        let begun = self.service.work();
        for turn in 1..=CALLS_PER_HANG_UP / CALLS_PER_TURN {
            let Some(client) = self.clients.get_mut(&id) else { return turn };
            // It left at most what the kernel holds for us.
            if client.connection.has_work() {
                self.handle_frames(id);
                if self.service.work() - begun > MAX_WORK_PER_HANG_UP {
                    return turn;
                }
                continue;
            }
            let before = client.connection.decoder().buffered();
            let result = client.connection.on_readable();
            let nothing_new = client.connection.decoder().buffered() == before;
            if result.is_err() || (nothing_new && !client.connection.has_work()) {
                self.close(id, result.err().as_ref());
                return turn;
            }
        }
        // The other calls come in the next round. What it is owed is of no use to it.
        CALLS_PER_HANG_UP / CALLS_PER_TURN
    }

    /// Handles frames of a client that have arrived, and leaves the rest for its next turn.
    fn handle_frames(&mut self, id: ClientId) {
        let begun = self.service.work();
        for _ in 0..CALLS_PER_TURN {
            let Some(client) = self.clients.get_mut(&id) else { return };
            let mut context = CallContext {
                service: &mut self.service,
                outputs: &mut self.outputs,
                attached: &mut self.attached,
                census: &mut self.census,
                counters: &self.counters,
            };
            let handled = client.handle_frame(&mut context);
            self.carry_out();
            self.attached = None;
            match handled {
                Ok(true) if self.service.work() - begun > MAX_WORK_PER_TURN => return,
                Ok(true) => {}
                Ok(false) => return,
                Err(e) => return self.close(id, Some(&e)),
            }
        }
    }

    /// Writes out what is queued, asks the service for more where there is room, and tells the kernel what to
    /// wait for.
    fn look_after_clients(&mut self) {
        // Each once: one that always has work must not keep the others, and the timers, waiting.
        // Those that are left when the work of a round is done are the first in the next round.
        let budget = Budget::new(&self.service);
        for _ in 0..self.dirty.len() {
            if budget.is_used_up(&self.service) {
                break;
            }
            let Some(id) = self.dirty.pop_front() else { return };
            let Some(client) = self.clients.get_mut(&id) else { continue };
            client.is_dirty = false;
            if let Err(e) = client.connection.flush_writes() {
                self.write_failed(id, &e);
                continue;
            }
            let held = client.connection.held();
            self.census.count_held(client.owner, client.held_counted, held);
            client.held_counted = held;
            if client.is_ready() {
                client.awaits_ready = false;
                self.feed(Input::Ready(id));
                self.mark_dirty(id);
                continue;
            }
            if client.connection.has_work() {
                // Its replies are read again: the requests that waited for that are handled now.
                self.handle_frames(id);
                self.mark_dirty(id);
                continue;
            }
            if client.connection.is_closed() {
                self.close(id, None);
                continue;
            }
            client.connection.rest();
            let wanted = client.wanted_interest();
            if wanted != client.interest {
                client.interest = wanted;
                let data = EventData::new_u64(id.0);
                if let Err(e) = epoll::modify(&self.epoll, &client.connection, data, wanted) {
                    self.close(id, Some(&IpcError::from(e)));
                }
            }
        }
        self.drop_hoarders();
    }

    /// Comes back as long as there is something to close, or to read when it is closed.
    fn look_after_closers(&mut self) {
        let is_needed = self.closers.is_busy() || !self.held_up.is_empty();
        if is_needed && !self.monotonic.is_set(TimerKey::Closing) {
            let after_ns = u64::try_from(INTERRUPT_AFTER.as_nanos()).unwrap_or(u64::MAX);
            self.monotonic.set(TimerKey::Closing, clocks::monotonic_ns().saturating_add(after_ns));
        }
    }

    /// Clients that waited until descriptors are closed are read again.
    fn resume_reading(&mut self) {
        for id in core::mem::take(&mut self.held_up) {
            if let Some(client) = self.clients.get_mut(&id) {
                client.connection.resume_reading();
                self.mark_dirty(id);
            }
        }
    }

    /// Gives up connections of the one for whom most is held, until not too much is: of the process
    /// for which most is held the fullest. Clients are looked at once for each such owner, not for
    /// each connection that goes.
    fn drop_hoarders(&mut self) {
        while let Some((owner, limit)) = self.census.overdrawn() {
            let of_owner = self.clients.values().filter(|client| client.owner == owner);
            let held = of_owner.map(|client| (client.id, client.pid(), client.held_counted));
            let fullest = fullest_first(held);
            if fullest.is_empty() {
                return;
            }
            for id in fullest {
                let held = self.clients.get(&id).map_or(0, |client| client.held_counted);
                log::warn!(
                    "more than {limit} bytes are held for {owner}, or for all clients and most of them for {owner}"
                );
                self.close(id, Some(&IpcError::HoldsTooMuch { held, limit }));
                if self.census.overdrawn().is_none_or(|(next, _)| next != owner) {
                    break;
                }
            }
        }
    }

    pub(crate) fn mark_dirty(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(&id) {
            if !core::mem::replace(&mut client.is_dirty, true) {
                self.dirty.push_back(id);
            }
        }
    }

    /// Hands an event to the service and does what it wants.
    pub(crate) fn feed(&mut self, input: Input<'_>) {
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
        // Very many flushes of one client may end at the same time, at a high cost each. Those left
        // over have still expired in the next turn.
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
                TimerKey::Accept(door) => self.watch_door(door, EventFlags::IN),
                TimerKey::Alive => self.say_alive(),
                TimerKey::Closing => {
                    self.closers.hurry();
                    self.resume_reading();
                }
                TimerKey::Status => self.manager.status(&self.status()),
            }
        }
    }

    /// Arms the kernel's timer for the next deadline on the clock that counts suspend.
    fn set_boot_timer(&mut self) {
        let next = self.boottime.next_ns();
        if next == self.boot_timer_at {
            return;
        }
        // All zero disarms.
        let it_value = next.map_or(Timespec { tv_sec: 0, tv_nsec: 0 }, |at_ns| timespec(at_ns.max(1)));
        let setting = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        match rustix::time::timerfd_settime(&self.boot_timer, TimerfdTimerFlags::ABSTIME, &setting) {
            Ok(_) => self.boot_timer_at = next,
            Err(e) => log::error!("cannot arm a timer: {e}"),
        }
    }

    fn accept(&mut self, index: usize) {
        for _ in 0..ACCEPTS_PER_WAKE_UP {
            let Some(door) = self.doors.get(index) else { return };
            match door.listener.accept() {
                Ok(Some(stream)) => {
                    let (id, ports) = (ClientId(self.next_client), Arc::clone(&door.ports));
                    let client = Client::new(id, door.role, stream, ports, &self.closers);
                    self.next_client += 1;
                    match self.census.admit(client.owner, self.closers.connections_of(client.owner)) {
                        Ok(()) => self.welcome(client),
                        Err(full) => {
                            self.counters.connections_refused.add_one();
                            log::warn!("{} is refused: {full}", client.name());
                        }
                    }
                }
                Ok(None) => return,
                Err(e) => {
                    log::error!("cannot accept connections on {}: {e}; trying again soon", door.listener.address());
                    self.watch_door(index, EventFlags::empty());
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
            self.census.leave(client.owner, 0, 0);
            log::error!("{} is refused: cannot watch its socket: {e}", client.name());
            return;
        }
        match role {
            Role::Producer => self.counters.producers_accepted.add_one(),
            Role::Consumer => self.counters.consumers_accepted.add_one(),
        }
        log::debug!("{} connected", client.name());
        self.clients.insert(id, client);
        self.status_changed();
    }

    fn watch_door(&self, index: usize, flags: EventFlags) {
        let Some(door) = self.doors.get(index) else { return };
        // Indices of listeners are below FIRST_CLIENT.
        let data = EventData::new_u64(FIRST_LISTENER + index as u64);
        if let Err(e) = epoll::modify(&self.epoll, &door.listener, data, flags) {
            log::error!("cannot watch {}: {e}", door.listener.address());
        }
    }

    /// Closes a connection and tells the service. Without an error, the peer closed it.
    pub(crate) fn close(&mut self, id: ClientId, error: Option<&IpcError>) {
        let Some(client) = self.clients.remove(&id) else { return };
        match error {
            None => log::debug!("{} disconnected", client.name()),
            Some(e) => {
                match e {
                    IpcError::PeerNotReading { .. } | IpcError::HoldsTooMuch { .. } => {
                        self.counters.stalled_peers.add_one()
                    }
                    IpcError::FrameTooLarge { .. } | IpcError::TooManyDescriptors => {
                        self.counters.protocol_errors.add_one();
                    }
                    _ => {}
                }
                log::warn!("{} is disconnected: {e}", client.name());
            }
        }
        self.census.leave(client.owner, client.held_counted, client.memory_counted);
        self.status_changed();
        let farewells = client.farewells();
        // It is closed elsewhere and later. Until then the loop must hear no more of it.
        if let Err(e) = epoll::delete(&self.epoll, &client.connection) {
            log::error!("cannot stop to watch {}: {e}", client.name());
        }
        drop(client);
        for input in farewells {
            self.feed(input);
        }
    }

    /// Disconnects the clients in whose memory there was a fault.
    fn close_where_memory_was_lost(&mut self) {
        let faults = faults::survived();
        if core::mem::replace(&mut self.faults, faults) == faults {
            return;
        }
        let lost: Vec<ClientId> =
            self.clients.values().filter(|client| client.has_lost_memory()).map(|client| client.id).collect();
        for id in lost {
            self.counters.memory_lost.add_one();
            if let Some(client) = self.clients.get(&id) {
                log::warn!("{} is disconnected: {}", client.name(), esatto_shm::Lost);
            }
            self.close(id, None);
        }
    }

    /// Says that the loop turns, and when it has to be said again.
    fn say_alive(&mut self) {
        let Some(interval) = self.manager.alive_every() else { return };
        self.manager.alive();
        let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        self.monotonic.set(TimerKey::Alive, clocks::monotonic_ns().saturating_add(interval_ns));
    }

    /// Lets the service manager know soon, and not for each of many.
    fn status_changed(&mut self) {
        if self.manager.listens() && !self.monotonic.is_set(TimerKey::Status) {
            self.monotonic.set(TimerKey::Status, clocks::monotonic_ns().saturating_add(STATUS_DELAY_NS));
        }
    }

    fn status(&self) -> String {
        let producers = self.clients.values().filter(|client| client.role == Role::Producer).count();
        format!("{producers} producers and {} consumers are connected", self.clients.len() - producers)
    }

    /// Nobody can connect any more, every session ends, and what streams into a file is completed.
    fn end(&mut self) {
        self.manager.stopping();
        for door in self.doors.drain(..) {
            door.listener.unlink();
            self.closers.close_own(door.listener.into());
        }
        let (consumers, producers): (Vec<_>, Vec<_>) =
            self.clients.values().map(|client| (client.role, client.id)).partition(|(role, _)| *role == Role::Consumer);
        for (_, id) in consumers.into_iter().chain(producers) {
            self.close(id, None);
        }
        let deadline = Instant::now() + FINAL_WRITE_TIMEOUT;
        while let Some(event) = self.files.wait_event(deadline) {
            self.feed_file_event(event);
        }
    }
}

/// The work that is left in a round.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// [`Service::work`] at its end.
    end: u64,
}

impl Budget {
    fn new(service: &Service) -> Self {
        Self { end: service.work() + MAX_WORK_PER_ROUND }
    }

    fn is_used_up(self, service: &Service) -> bool {
        service.work() > self.end
    }
}

fn monotonic() -> Duration {
    Duration::from_nanos(clocks::monotonic_ns())
}

fn timespec(ns: u64) -> Timespec {
    // Both parts fit: 2^64 ns are 585 years.
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}
