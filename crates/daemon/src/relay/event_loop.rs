//! The event loop of a relay: waits for sockets, deadlines and wake-ups, and moves bytes.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use esatto_ipc::frame::{PeerIdentity, encode};
use esatto_ipc::{Address, Error as IpcError, Listener, Peer, Stream};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use super::byte_pipe::MAX_WAITING;
use super::connect::begin_to_connect;
use super::connection_pair::{DRAIN_TIMEOUT_NS, Ends, Pair, Standing};
use super::control_connection::{Control, News};
use super::handshake::Distrust;
use super::name_resolver::Resolver;
use super::options::RelayOptions;
use crate::clocks;
use crate::closers::{Closers, INTERRUPT_AFTER};
use crate::error::Error;
use crate::system_facts;
use crate::timers::Timers;
use crate::user_shares::{Owner, UserShares};
use crate::wakeup::Wakeup;

/// Local connections of all users together; more are closed at once. One user has a share of them
/// ([`UserShares`]), except root and the relay's own user. Each connection may hold twice
/// [`MAX_WAITING`] bytes, and takes three descriptors, one of which came with a call.
const MAX_PAIRS: usize = 1024;
/// Connections accepted per wake-up.
const ACCEPTS_PER_WAKE_UP: usize = 64;
/// Events taken from the kernel at a time.
const EVENTS_PER_WAKE_UP: usize = 128;
/// Time for which the listener rests when it cannot accept a connection. The usual cause is a lack
/// of descriptors.
const ACCEPT_PAUSE_NS: u64 = 500_000_000;
/// Time that the service may take to accept a connection, and to prove the shared secret.
const CONNECT_TIMEOUT_NS: u64 = 10_000_000_000;

/// Tokens of epoll events: the wake-up descriptor, the descriptor that requests the end, the
/// listener, the control connection, and the local end of the first pair. Its remote end has the
/// next number, and the next pair follows.
const WAKE: u64 = 0;
const STOP: u64 = 1;
const LISTENER: u64 = 2;
const CONTROL: u64 = 3;
const FIRST_PAIR: u64 = 4;

/// Purpose of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Deadline {
    /// The listener tries again to accept connections.
    Accept,
    /// This pair must be connected, or drained, before the deadline.
    Pair(u64),
    /// Descriptors wait to be closed, and closing may block.
    Closing,
}

/// A relay that runs.
#[derive(Debug)]
pub(crate) struct RelayLoop {
    epoll: OwnedFd,
    listener: Listener,
    options: RelayOptions,
    service: Resolver,
    control: Control,
    /// The control connection's socket is in the epoll set.
    is_control_watched: bool,
    /// Pairs by the token of their local end.
    pairs: HashMap<u64, Pair>,
    next_pair: u64,
    deadlines: Timers<Deadline>,
    shares: UserShares,
    closers: Closers,
    /// Some pairs wait until descriptors are closed.
    are_held_up: bool,
    wake: Arc<Wakeup>,
    stop: Option<OwnedFd>,
    scratch: Vec<u8>,
    /// The last attempt to reach the service failed.
    is_unreachable: bool,
}

impl RelayLoop {
    pub(crate) fn new(listener: Listener, options: RelayOptions, wake: Arc<Wakeup>) -> Result<Self, Error> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(Error::system("create an epoll instance"))?;
        for (fd, token) in [(wake.as_fd(), WAKE), (listener.as_fd(), LISTENER)] {
            epoll::add(&epoll, fd, EventData::new_u64(token), EventFlags::IN)
                .map_err(Error::system("watch a descriptor"))?;
        }
        let closers = Closers::new(system_facts::uid());
        Ok(Self {
            epoll,
            listener,
            service: Resolver::new(options.service.clone(), Arc::clone(&wake)),
            control: Control::new(&options, closers.clone())?,
            options,
            is_control_watched: false,
            pairs: HashMap::new(),
            next_pair: FIRST_PAIR,
            deadlines: Timers::new(),
            shares: UserShares::new(
                UserShares::max_connections(system_facts::max_descriptors()).min(MAX_PAIRS),
                system_facts::uid(),
                usize::MAX,
            ),
            closers,
            are_held_up: false,
            wake,
            stop: None,
            scratch: vec![0; MAX_WAITING],
            is_unreachable: false,
        })
    }

    /// Returns the address at which producers connect.
    pub(crate) fn address(&self) -> &Address {
        self.listener.address()
    }

    /// Ends the loop as soon as the descriptor is readable.
    pub(crate) fn stop_when_readable(&mut self, fd: OwnedFd) -> Result<(), Error> {
        epoll::add(&self.epoll, &fd, EventData::new_u64(STOP), EventFlags::IN)
            .map_err(Error::system("watch a descriptor"))?;
        self.stop = Some(fd);
        Ok(())
    }

    /// Runs until the end is requested. Then it removes the socket file and closes all connections.
    pub(crate) fn run(mut self) -> Result<(), Error> {
        let mut events = Vec::with_capacity(EVENTS_PER_WAKE_UP);
        while !self.wake.should_stop() {
            self.meet_deadlines();
            self.watch_control();
            self.look_after_closers();
            self.wait(&mut events)?;
            for event in events.drain(..) {
                self.dispatch(event);
            }
        }
        self.listener.unlink();
        self.closers.close_own(self.listener.into());
        Ok(())
    }

    /// Sets a timer while there is a descriptor to close, or a pair to read once one is closed.
    fn look_after_closers(&mut self) {
        if (self.closers.is_busy() || self.are_held_up) && !self.deadlines.is_set(Deadline::Closing) {
            let after_ns = u64::try_from(INTERRUPT_AFTER.as_nanos()).unwrap_or(u64::MAX);
            self.deadlines.set(Deadline::Closing, now_ns().saturating_add(after_ns));
        }
    }

    fn wait(&mut self, events: &mut Vec<Event>) -> Result<(), Error> {
        let next_ns = self.deadlines.next_ns().unwrap_or(u64::MAX).min(self.control.deadline_ns());
        let timeout = timespec(next_ns.saturating_sub(now_ns()));
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(Error::system("wait for events")(e)),
        }
    }

    fn dispatch(&mut self, event: Event) {
        match event.data.u64() {
            WAKE => {
                self.wake.reset();
                self.service.take_result();
            }
            STOP => self.wake.stop(),
            LISTENER => self.accept(),
            CONTROL => {
                self.forget_control();
                let news = self.control.on_socket(now_ns());
                self.follow_up(news);
            }
            end => self.on_pair(end & !1),
        }
    }

    fn meet_deadlines(&mut self) {
        let now_ns = now_ns();
        while let Some(deadline) = self.deadlines.pop_expired(now_ns) {
            match deadline {
                Deadline::Accept => self.watch_listener(EventFlags::IN),
                Deadline::Closing => {
                    self.closers.interrupt_and_replace();
                    self.resume_pairs();
                }
                Deadline::Pair(pair) => self.close(pair, Some(&IpcError::Timeout)),
            }
        }
        if now_ns >= self.control.deadline_ns() {
            self.forget_control();
            let news = self.control.on_deadline(self.service.address(), now_ns);
            self.follow_up(news);
        }
    }

    /// Resumes pairs that waited until descriptors were closed.
    fn resume_pairs(&mut self) {
        if !core::mem::take(&mut self.are_held_up) {
            return;
        }
        let held_up: Vec<u64> =
            self.pairs.iter().filter(|(_, pair)| pair.is_held_up()).map(|(&number, _)| number).collect();
        for number in held_up {
            if let Some(pair) = self.pairs.get_mut(&number) {
                pair.resume();
            }
            self.on_pair(number);
        }
    }

    fn follow_up(&mut self, news: News) {
        match news {
            News::Nothing => {}
            News::Disconnected => self.service.look_again(),
        }
    }

    /// Removes the control connection from the epoll set before any other step. The step may hand
    /// the socket to another thread, which closes it later.
    fn forget_control(&mut self) {
        if !core::mem::take(&mut self.is_control_watched) {
            return;
        }
        if let Some((fd, _)) = self.control.socket() {
            let _ = epoll::delete(&self.epoll, fd);
        }
    }

    /// Sets the events to wait for on the control connection.
    fn watch_control(&mut self) {
        let Some((fd, flags)) = self.control.socket().filter(|_| !self.is_control_watched) else { return };
        match epoll::add(&self.epoll, fd, EventData::new_u64(CONTROL), flags) {
            Ok(()) => self.is_control_watched = true,
            // The connection also has a deadline.
            Err(e) => log::error!("cannot watch the control connection: {e}"),
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS_PER_WAKE_UP {
            match self.listener.accept() {
                Ok(Some(stream)) => self.begin(stream),
                Ok(None) => return,
                Err(e) => {
                    log::error!("cannot accept connections on {}: {e}; trying again soon", self.listener.address());
                    self.watch_listener(EventFlags::empty());
                    self.deadlines.set(Deadline::Accept, now_ns().saturating_add(ACCEPT_PAUSE_NS));
                    return;
                }
            }
        }
    }

    /// Accepts a producer, and connects to the service on its behalf.
    fn begin(&mut self, mut local: Stream) {
        let peer = Peer::of(&local);
        if let Some(disposal) = self.closers.disposal(&peer) {
            local.set_disposal(disposal);
        }
        let owner = Owner::of(&peer);
        if let Err(full) = self.shares.admit(owner, self.closers.connections_of(owner)) {
            return log::warn!("a connection of {owner} is refused: {full}");
        }
        if !self.pair_up(local, owner) {
            self.shares.leave(owner, 0, 0);
        }
    }

    /// Begins to connect to the service for a producer. Returns false if that is not possible.
    fn pair_up(&mut self, local: Stream, owner: Owner) -> bool {
        // The producer sees its connection close, and tries again later.
        let Some(service) = self.service.address() else { return false };
        let connecting = match begin_to_connect(service, &self.closers) {
            Ok(connecting) => connecting,
            Err(e) => {
                self.tell_unreachable(&e.into());
                return false;
            }
        };
        let Some(greeting) = self.greeting_for(&local) else { return false };
        let number = self.next_pair;
        self.next_pair += 2;
        self.pairs.insert(number, Pair::new(local, owner, connecting, greeting));
        self.deadlines.set(Deadline::Pair(number), now_ns().saturating_add(CONNECT_TIMEOUT_NS));
        self.watch_pair(number);
        log::debug!("connection {number} is opened");
        true
    }

    /// Returns the frame that tells the service which process sent the bytes after it.
    fn greeting_for(&self, local: &Stream) -> Option<Vec<u8>> {
        let credentials = local.peer_credentials();
        let identity = PeerIdentity {
            pid: credentials.and_then(|peer| peer.pid),
            // If the kernel does not name the user, send -1 (no user), not 0 (root).
            uid: Some(credentials.map_or(-1, |peer| peer.uid as i32)),
            machine_id_hint: &self.options.machine_id_hint,
            machine_name: &self.options.machine_name,
        };
        let mut greeting = Vec::new();
        let written = encode::set_peer_identity(&mut greeting, &identity);
        written.map_err(|e| log::error!("cannot encode the identity of a producer: {e}")).is_ok().then_some(greeting)
    }

    /// Handles an event at one end of a pair.
    fn on_pair(&mut self, number: u64) {
        // A pair that was closed earlier in this round may still have an event.
        let Some(pair) = self.pairs.get_mut(&number) else { return };
        if pair.is_connecting() {
            // If the connection fails, another thread closes the socket later.
            if let Some(fd) = pair.fds().remote {
                let _ = epoll::delete(&self.epoll, fd);
            }
            pair.watched.remote = EventFlags::empty();
            if let Err(e) = pair.continue_connecting(self.options.secret.as_ref()) {
                self.tell_unreachable(&e);
                return self.close(number, None);
            }
            if pair.is_connecting() {
                return self.watch_pair(number);
            }
            self.deadlines.cancel(Deadline::Pair(number));
            if core::mem::replace(&mut self.is_unreachable, false) {
                log::info!("The service can be used again");
            }
        }
        let Some(pair) = self.pairs.get_mut(&number) else { return };
        let result = pair.pump(&mut self.scratch);
        self.are_held_up |= pair.is_held_up();
        match result {
            Ok(Standing::Open) => self.watch_pair(number),
            Ok(Standing::Draining) => {
                if !self.deadlines.is_set(Deadline::Pair(number)) {
                    self.deadlines.set(Deadline::Pair(number), now_ns().saturating_add(DRAIN_TIMEOUT_NS));
                }
                self.watch_pair(number);
            }
            Ok(Standing::Over) => self.close(number, None),
            Err(e) => self.close(number, Some(&e)),
        }
    }

    /// Sets the events to wait for at both ends of a pair.
    fn watch_pair(&mut self, number: u64) {
        let Some(pair) = self.pairs.get_mut(&number) else { return };
        let (wanted, fds) = (pair.wanted(), pair.fds());
        let results = [
            watch(&self.epoll, fds.local, number, pair.watched.local, wanted.local),
            watch(&self.epoll, fds.remote, number + 1, pair.watched.remote, wanted.remote),
        ];
        pair.watched = Ends { local: wanted.local, remote: wanted.remote };
        if let Some(e) = results.into_iter().find_map(Result::err) {
            self.close(number, Some(&e.into()));
        }
    }

    fn watch_listener(&self, flags: EventFlags) {
        if let Err(e) = epoll::modify(&self.epoll, &self.listener, EventData::new_u64(LISTENER), flags) {
            log::error!("cannot watch {}: {e}", self.listener.address());
        }
    }

    /// Closes both ends of a pair.
    fn close(&mut self, number: u64, error: Option<&IpcError>) {
        let Some(pair) = self.pairs.remove(&number) else { return };
        // Another thread closes the sockets later. Until then the loop must get no more events of
        // them.
        let fds = pair.fds();
        for fd in [fds.local, fds.remote].into_iter().flatten() {
            // This fails for an end that is not watched.
            let _ = epoll::delete(&self.epoll, fd);
        }
        self.shares.leave(pair.owner, 0, 0);
        self.deadlines.cancel(Deadline::Pair(number));
        let (up, down) = pair.forwarded();
        match error {
            None => log::debug!("connection {number} is closed, {up} bytes went up and {down} down"),
            Some(e) => log::warn!("connection {number} is closed: {e}; {up} bytes went up and {down} down"),
        }
    }

    /// Logs a warning once while producers are turned away.
    fn tell_unreachable(&mut self, error: &Distrust) {
        if core::mem::replace(&mut self.is_unreachable, true) {
            log::debug!("closed the connection of a producer, because the service cannot be used: {error}");
        } else {
            log::warn!("closing connections of producers, because the service cannot be used: {error}");
        }
    }
}

/// Changes the events that the kernel waits for. A descriptor without wanted events leaves the set:
/// otherwise the kernel would report its hang-up again and again.
fn watch(
    epoll: &OwnedFd,
    fd: Option<BorrowedFd<'_>>,
    token: u64,
    watched: EventFlags,
    wanted: EventFlags,
) -> rustix::io::Result<()> {
    let Some(fd) = fd.filter(|_| watched != wanted) else { return Ok(()) };
    let data = EventData::new_u64(token);
    match (watched.is_empty(), wanted.is_empty()) {
        (true, _) => epoll::add(epoll, fd, data, wanted),
        (false, true) => epoll::delete(epoll, fd),
        (false, false) => epoll::modify(epoll, fd, data, wanted),
    }
}

fn now_ns() -> u64 {
    clocks::now().monotonic_ns
}

fn timespec(ns: u64) -> Timespec {
    // Both parts fit: 2^64 ns are 585 years.
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}
