//! Threads that close descriptors of other processes, because closing one can block for as long as
//! its sender likes.
//!
//! Descriptors wait in *lanes*: each user has one for its connections and one for the descriptors
//! that these connections passed. A lane closes one descriptor at a time, so that a user delays
//! only itself. A thread exists while there is something to close, and ends soon after.
//!
//! After [`INTERRUPT_AFTER`], a signal interrupts the closing of a TCP socket that lingers. Nothing
//! can interrupt the closing of a file on a FUSE file system. Its lane then stands still:
//! [`MAX_PASSED`] bounds what the lane may hold, and the user's connections count until they are
//! closed. The thread is *stuck*, and another one takes its place, so that many such users delay
//! nobody else. At most [`MAX_STUCK_THREADS`] threads may be stuck. At that bound, users with a
//! stuck descriptor may pass no more.
//!
//! Any thread can close a connection in which no descriptor waits. Such connections have a lane of
//! their own, which never waits for a descriptor of another process.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use esatto_ipc::sys::{ThreadId, current_thread, interrupt};
use esatto_ipc::{Admission, Disposal, Family, Peer};
use rustix::net::{RecvFlags, recv};

use crate::user_shares::Owner;

/// Lanes of ordinary users that may close a descriptor at the same time, without the stuck ones.
/// Each keeps a thread. Descriptors in other lanes wait for a free thread.
const MAX_THREADS: usize = 14;
/// Stuck threads of ordinary users, in addition to [`MAX_THREADS`]. A thread is stuck after
/// [`STUCK_AFTER`]. Further ones keep their places among [`MAX_THREADS`].
const MAX_STUCK_THREADS: usize = 48;
/// Time that one `close` may take before its thread counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(1);
/// Threads that close only descriptors of root and of this process's user, in addition to
/// [`MAX_THREADS`].
const RESERVED_THREADS: usize = 2;
/// Descriptors passed by one user that may wait to be closed. At this bound, a connection of the
/// user that passes another one must wait, and after [`PATIENCE`] it is closed.
pub(crate) const MAX_PASSED: usize = 64;
/// Time for which a user's descriptors may be at their bound: the machine may just be busy.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time that one `close` may take before it is interrupted. It is interrupted again as often as
/// needed.
pub(crate) const INTERRUPT_AFTER: Duration = Duration::from_millis(250);
/// Time that a thread waits for more work before it ends.
const IDLE: Duration = Duration::from_millis(100);
/// Stack of a thread; closing needs no more.
const STACK_BYTES: usize = 64 << 10;

/// Handle to the threads. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Closers {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Signalled when an idle thread has work.
    ready: Condvar,
    /// Number of descriptors in all lanes, and of those among them that were passed. Relaxed: the
    /// event loop adds and reads, threads only subtract.
    open: AtomicUsize,
    passed: AtomicUsize,
    /// [`MAX_STUCK_THREADS`] threads are stuck. Relaxed: a user may learn of it a little late.
    is_exhausted: AtomicBool,
    /// The user of this process.
    uid: i32,
}

/// Descriptors that are closed one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Lane {
    owner: Owner,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// Connections in which descriptors may wait.
    Connections,
    /// Connections in which no descriptor waits.
    EmptyConnections,
    Passed,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Connections, Self::EmptyConnections, Self::Passed];
}

#[derive(Debug, Default)]
struct State {
    lanes: HashMap<Lane, Queue>,
    /// Lanes in which a descriptor waits and none is being closed: trusted lanes, lanes of ordinary
    /// users, and lanes of ordinary users who have a stuck descriptor.
    trusted: VecDeque<Lane>,
    others: VecDeque<Lane>,
    suspects: VecDeque<Lane>,
    /// Lanes of ordinary users that are closing a descriptor, without the stuck ones.
    busy_others: usize,
    /// Stuck lanes of ordinary users, at most [`MAX_STUCK_THREADS`].
    stuck: usize,
    threads: usize,
    idle: usize,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<OwnedFd>,
    /// The thread that closes a descriptor of this lane, and when it began.
    closing: Option<(ThreadId, Instant)>,
    /// That thread is stuck, and does not count.
    is_stuck: bool,
    /// Time since which the lane holds [`MAX_PASSED`] or more.
    full_since: Option<Instant>,
}

impl Queue {
    /// Number of open descriptors.
    fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.closing.is_some())
    }
}

impl Closers {
    /// Creates the handle for a service of this user. No thread starts yet.
    pub(crate) fn new(uid: i32) -> Self {
        // The signal interrupts only if it has a handler. The flag that the handler sets is not
        // used.
        if let Err(e) = signal_hook::flag::register(signal_hook::consts::SIGURG, Arc::new(AtomicBool::new(false))) {
            log::warn!("cannot handle SIGURG: {e}; a descriptor that does not close cannot be interrupted");
        }
        Self {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                ready: Condvar::new(),
                open: AtomicUsize::new(0),
                passed: AtomicUsize::new(0),
                is_exhausted: AtomicBool::new(false),
                uid,
            }),
        }
    }

    /// Returns the way in which a connection of this peer closes descriptors, if closing can block.
    pub(crate) fn disposal(&self, peer: &Peer) -> Option<Arc<dyn Disposal>> {
        // Other sockets carry no descriptors, and do not linger.
        let disposal = Disposer { closers: self.clone(), owner: Owner::of(peer) };
        (peer.family == Family::Unix).then(|| Arc::new(disposal) as _)
    }

    /// Closes a socket of this process, in which unread descriptors of other processes may wait.
    pub(crate) fn close_own(&self, fd: OwnedFd) {
        self.close(Lane { owner: Owner::Uid(self.shared.uid), kind: Kind::Connections }, fd);
    }

    /// Returns how many connections of this owner are not closed yet.
    pub(crate) fn connections_of(&self, owner: Owner) -> usize {
        let kinds = [Kind::Connections, Kind::EmptyConnections];
        kinds.into_iter().map(|kind| self.shared.count(Lane { owner, kind })).sum()
    }

    /// Returns whether there is a descriptor to close.
    pub(crate) fn is_busy(&self) -> bool {
        self.shared.open.load(Ordering::Relaxed) > 0
    }

    /// Interrupts closings that take too long, replaces stuck threads, and starts threads that
    /// could not start before.
    pub(crate) fn interrupt_and_replace(&self) {
        let state = self.shared.lock();
        let late = |queue: &Queue| queue.closing.filter(|(_, since)| since.elapsed() >= INTERRUPT_AFTER);
        for (thread, _) in state.lanes.values().filter_map(late) {
            interrupt(thread);
        }
        drop(state);
        self.replace_stuck();
    }

    /// Replaces stuck threads, one by one.
    fn replace_stuck(&self) {
        let mut state = self.shared.lock();
        let is_stuck = |(lane, queue): (&Lane, &Queue)| {
            let is_late = queue.closing.is_some_and(|(_, since)| since.elapsed() >= STUCK_AFTER);
            (is_late && !queue.is_stuck && !self.shared.is_trusted(*lane)).then_some(*lane)
        };
        let stuck: Vec<Lane> = state.lanes.iter().filter_map(is_stuck).collect();
        for lane in stuck {
            if state.stuck == MAX_STUCK_THREADS {
                if !self.shared.is_exhausted.swap(true, Ordering::Relaxed) {
                    log::error!(
                        "{MAX_STUCK_THREADS} descriptors of clients do not close: their users may pass no more, and \
                         what others pass may be closed late"
                    );
                }
                break;
            }
            log::warn!("a descriptor of {} does not close; others of this user wait for it", lane.owner);
            state.set_stuck(lane);
            // Each stuck thread is replaced by a free one or a new one.
            self.provide_thread(state);
            state = self.shared.lock();
        }
        self.provide_thread(state);
    }

    fn close(&self, lane: Lane, fd: OwnedFd) {
        self.shared.open.fetch_add(1, Ordering::Relaxed);
        if lane.kind == Kind::Passed {
            self.shared.passed.fetch_add(1, Ordering::Relaxed);
        }
        let mut state = self.shared.lock();
        let queue = state.lanes.entry(lane).or_default();
        queue.waiting.push_back(fd);
        if queue.len() >= MAX_PASSED && queue.full_since.is_none() {
            queue.full_since = Some(Instant::now());
        }
        if queue.len() == 1 {
            self.shared.make_ready(&mut state, lane);
        }
        self.provide_thread(state);
    }

    /// Wakes or starts a thread if there is work for one.
    fn provide_thread(&self, mut state: MutexGuard<'_, State>) {
        if !state.has_work() {
            return;
        }
        if state.idle > 0 {
            return self.shared.ready.notify_one();
        }
        if state.threads >= MAX_THREADS + RESERVED_THREADS + state.stuck {
            return;
        }
        state.threads += 1;
        drop(state);
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new().name("closer".to_owned()).stack_size(STACK_BYTES);
        if let Err(e) = thread.spawn(move || shared.work()) {
            self.shared.lock().threads -= 1;
            log::error!("cannot start a thread that closes descriptors: {e}; they stay open for now");
        }
    }
}

impl State {
    /// Returns whether there is work for a free thread.
    fn has_work(&self) -> bool {
        let is_somebody_waiting = !self.others.is_empty() || !self.suspects.is_empty();
        !self.trusted.is_empty() || (is_somebody_waiting && self.busy_others < MAX_THREADS)
    }

    /// Marks a lane as stuck, so that it no longer counts. Other lanes of its owner come after the
    /// lanes of all other owners.
    fn set_stuck(&mut self, lane: Lane) {
        let Some(queue) = self.lanes.get_mut(&lane) else { return };
        queue.is_stuck = true;
        self.stuck += 1;
        self.busy_others -= 1;
        let is_of_owner = |other: &Lane| other.owner == lane.owner;
        let (of_owner, others) = self.others.drain(..).partition::<VecDeque<Lane>, _>(is_of_owner);
        self.others = others;
        self.suspects.extend(of_owner);
    }

    fn has_stuck(&self, owner: Owner) -> bool {
        let is_stuck = |kind| self.lanes.get(&Lane { owner, kind }).is_some_and(|queue| queue.is_stuck);
        Kind::ALL.into_iter().any(is_stuck)
    }

    fn next_lane(&mut self) -> Option<Lane> {
        let lane = self.trusted.pop_front();
        if lane.is_some() || self.busy_others == MAX_THREADS {
            return lane;
        }
        let lane = self.others.pop_front().or_else(|| self.suspects.pop_front())?;
        self.busy_others += 1;
        Some(lane)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a lane never waits for a descriptor of another user.
    fn is_trusted(&self, lane: Lane) -> bool {
        lane.owner == Owner::Uid(0) || lane.owner == Owner::Uid(self.uid) || lane.kind == Kind::EmptyConnections
    }

    fn make_ready(&self, state: &mut State, lane: Lane) {
        let ready = match self.is_trusted(lane) {
            true => &mut state.trusted,
            false if state.has_stuck(lane.owner) => &mut state.suspects,
            false => &mut state.others,
        };
        ready.push_back(lane);
    }

    fn count(&self, lane: Lane) -> usize {
        self.lock().lanes.get(&lane).map_or(0, Queue::len)
    }

    /// Body of a thread.
    fn work(&self) {
        let thread = current_thread();
        let mut state = self.lock();
        loop {
            if let Some(lane) = state.next_lane() {
                state = self.close_one(state, lane, thread);
                continue;
            }
            state.idle += 1;
            let (woken, timeout) = self.ready.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && !state.has_work() {
                state.threads -= 1;
                return;
            }
        }
    }

    /// Closes the oldest descriptor of a lane, which must be ready.
    fn close_one<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        lane: Lane,
        thread: ThreadId,
    ) -> MutexGuard<'s, State> {
        let fd = state.lanes.get_mut(&lane).and_then(|queue| {
            queue.closing = Some((thread, Instant::now()));
            queue.waiting.pop_front()
        });
        drop(state);
        drop(fd);
        self.open.fetch_sub(1, Ordering::Relaxed);
        if lane.kind == Kind::Passed {
            self.passed.fetch_sub(1, Ordering::Relaxed);
        }
        let mut state = self.lock();
        let was_stuck = state.lanes.get_mut(&lane).is_some_and(|queue| core::mem::take(&mut queue.is_stuck));
        if was_stuck {
            state.stuck -= 1;
            self.is_exhausted.store(false, Ordering::Relaxed);
        } else if !self.is_trusted(lane) {
            state.busy_others -= 1;
        }
        let is_empty = state.lanes.get_mut(&lane).is_none_or(|queue| {
            queue.closing = None;
            if queue.len() < MAX_PASSED {
                queue.full_since = None;
            }
            queue.waiting.is_empty()
        });
        if is_empty {
            state.lanes.remove(&lane);
        } else {
            self.make_ready(&mut state, lane);
        }
        state
    }
}

/// Takes the descriptors of one user's connections, to close them.
#[derive(Debug)]
struct Disposer {
    closers: Closers,
    owner: Owner,
}

impl Disposal for Disposer {
    fn close_passed(&self, fd: OwnedFd) {
        self.closers.close(Lane { owner: self.owner, kind: Kind::Passed }, fd);
    }

    fn close_connection(&self, fd: OwnedFd) {
        // The connection is shut down, so nothing more arrives. This only looks at it and receives
        // nothing.
        let nothing_waits =
            recv(&fd, &mut [0; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT).is_ok_and(|(_, n)| n == 0);
        let kind = if nothing_waits { Kind::EmptyConnections } else { Kind::Connections };
        self.closers.close(Lane { owner: self.owner, kind }, fd);
    }

    fn admission(&self) -> Admission {
        let shared = &self.closers.shared;
        // There is nearly always nothing to count.
        let is_exhausted = shared.is_exhausted.load(Ordering::Relaxed);
        if shared.passed.load(Ordering::Relaxed) < MAX_PASSED && !is_exhausted {
            return Admission::Granted;
        }
        let state = shared.lock();
        if is_exhausted && state.has_stuck(self.owner) {
            return Admission::Denied;
        }
        let lane = Lane { owner: self.owner, kind: Kind::Passed };
        match state.lanes.get(&lane).and_then(|queue| queue.full_since) {
            None => Admission::Granted,
            Some(since) if since.elapsed() < PATIENCE => Admission::Later,
            Some(_) => Admission::Denied,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Write as _};
    use std::net::{TcpListener, TcpStream};

    const ALICE: Owner = Owner::Uid(1000);
    const BOB: Owner = Owner::Uid(1001);
    const OURS: Owner = Owner::Uid(77);

    /// Returns a socket whose `close` blocks until the other end is closed.
    fn lingering() -> (OwnedFd, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        rustix::net::sockopt::set_socket_linger(&socket, Some(Duration::from_secs(3600))).unwrap();
        socket.set_nonblocking(true).unwrap();
        while socket.write(&[0; 65536]).map_err(|e| assert_eq!(e.kind(), ErrorKind::WouldBlock)).is_ok() {}
        (socket.into(), listener.accept().unwrap().0)
    }

    /// Returns a descriptor, and a check whether it was closed.
    fn tracer() -> (OwnedFd, impl Fn() -> bool) {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        (write, move || rustix::io::read(&read, &mut [0; 1]) == Ok(0))
    }

    fn disposer(closers: &Closers, owner: Owner) -> Disposer {
        Disposer { closers: closers.clone(), owner }
    }

    fn wait_until(what: &str, check: impl Fn() -> bool) {
        let begin = Instant::now();
        while !check() {
            assert!(begin.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_user_whose_descriptors_do_not_close_delays_nobody_else() {
        let closers = Closers::new(77);
        let mut other_ends = Vec::new();
        // One user more than there are threads.
        for uid in 0..=MAX_THREADS as i32 {
            let (fd, other_end) = lingering();
            other_ends.push(other_end);
            disposer(&closers, Owner::Uid(2000 + uid)).close_passed(fd);
        }
        wait_until("all threads are busy", || closers.shared.lock().busy_others == MAX_THREADS);
        let (fd, is_closed) = tracer();
        disposer(&closers, OURS).close_connection(fd);
        wait_until("what is ours is closed", is_closed);
        assert_eq!(closers.shared.open.load(Ordering::Relaxed), MAX_THREADS + 1, "the others still are not");
        // The threads interrupt what does not end by itself.
        wait_until("all are closed", || {
            closers.interrupt_and_replace();
            !closers.is_busy()
        });
        wait_until("the threads end", || closers.shared.lock().threads == 0);
        drop(other_ends);
    }

    #[test]
    fn many_users_whose_descriptors_never_close_delay_nobody_else() {
        let closers = Closers::new(77);
        let mut other_ends = Vec::new();
        // This test interrupts none of these.
        let mut block = |uid| {
            let (fd, other_end) = lingering();
            other_ends.push(other_end);
            disposer(&closers, Owner::Uid(uid)).close_passed(fd);
        };
        (0..2 * MAX_THREADS as i32).for_each(|uid| block(2000 + uid));
        wait_until("all threads are busy", || closers.shared.lock().busy_others == MAX_THREADS);
        let (fd, is_closed) = tracer();
        let alice = disposer(&closers, ALICE);
        alice.close_passed(fd);
        wait_until("what others passed is closed", || {
            closers.replace_stuck();
            is_closed()
        });
        // More than can be replaced: all threads but the last are stuck.
        let all = (MAX_STUCK_THREADS + MAX_THREADS - 1) as i32;
        (2 * MAX_THREADS as i32..all).for_each(|uid| block(2000 + uid));
        wait_until("no more can be replaced", || {
            closers.replace_stuck();
            closers.shared.is_exhausted.load(Ordering::Relaxed)
        });
        let attacker = disposer(&closers, Owner::Uid(2000));
        assert_eq!((attacker.admission(), alice.admission()), (Admission::Denied, Admission::Granted));
        wait_until("all have a thread", || closers.shared.lock().busy_others == MAX_THREADS - 1);
        assert!(closers.shared.lock().threads <= MAX_STUCK_THREADS + MAX_THREADS + RESERVED_THREADS);
        for _ in 0..3 {
            let (fd, is_closed) = tracer();
            alice.close_passed(fd);
            wait_until("the last thread closes it", is_closed);
        }
        drop(other_ends);
        wait_until("all are closed", || !closers.is_busy());
        assert_eq!(attacker.admission(), Admission::Granted);
        let state = closers.shared.lock();
        assert_eq!((state.stuck, state.busy_others, state.lanes.len()), (0, 0, 0));
    }

    #[test]
    fn a_user_with_a_stuck_descriptor_comes_last() {
        let closers = Closers::new(77);
        let shared = &closers.shared;
        let mut state = shared.lock();
        let lane = |owner, kind| Lane { owner, kind };
        let (stuck, waits) = (lane(ALICE, Kind::Passed), lane(ALICE, Kind::Connections));
        state.lanes.insert(stuck, Queue::default());
        state.busy_others = 1;
        shared.make_ready(&mut state, waits);
        state.set_stuck(stuck);
        shared.make_ready(&mut state, lane(BOB, Kind::Passed));
        assert_eq!((state.next_lane(), state.next_lane()), (Some(lane(BOB, Kind::Passed)), Some(waits)));
        shared.make_ready(&mut state, waits);
        shared.make_ready(&mut state, lane(BOB, Kind::Passed));
        assert_eq!((state.next_lane(), state.next_lane()), (Some(lane(BOB, Kind::Passed)), Some(waits)));
    }

    #[test]
    fn an_empty_connection_waits_for_no_other_user() {
        let closers = Closers::new(77);
        let mut other_ends = Vec::new();
        for uid in 0..MAX_THREADS as i32 {
            let (fd, other_end) = lingering();
            other_ends.push(other_end);
            disposer(&closers, Owner::Uid(2000 + uid)).close_passed(fd);
        }
        wait_until("all threads are busy", || closers.shared.lock().busy_others == MAX_THREADS);
        let alice = disposer(&closers, ALICE);
        for holds_something in [false, true] {
            let (mut ours, theirs) = esatto_ipc::Stream::pair().unwrap();
            ours.set_disposal(Arc::new(disposer(&closers, ALICE)));
            if holds_something {
                theirs.send(b"x", None).unwrap();
            }
            drop(ours);
            let is_waiting = || alice.closers.connections_of(ALICE) == 1;
            match holds_something {
                false => wait_until("it is closed", || !is_waiting()),
                true => assert!(is_waiting(), "it may hold descriptors"),
            }
        }
        drop(other_ends);
        wait_until("all is closed", || !closers.is_busy());
    }

    #[test]
    fn the_unit_has_room_for_all_threads() {
        let unit = include_str!("../../../packaging/systemd/traced.service");
        let tasks_max = unit.lines().find_map(|line| line.strip_prefix("TasksMax=")).unwrap();
        let closing = MAX_THREADS + RESERVED_THREADS + MAX_STUCK_THREADS;
        assert!(tasks_max.parse::<usize>().unwrap() > crate::trace_files::MAX_FILES + closing, "{tasks_max}");
    }

    #[test]
    fn connections_do_not_wait_for_passed_descriptors() {
        let closers = Closers::new(77);
        let alice = disposer(&closers, ALICE);
        let (fd, other_end) = lingering();
        alice.close_passed(fd);
        let (fd, is_closed) = tracer();
        alice.close_connection(fd);
        wait_until("the connection is closed", is_closed);
        drop(other_end);
        wait_until("all is closed", || !closers.is_busy());
    }

    #[test]
    fn a_user_with_too_many_open_descriptors_may_pass_no_more() {
        let closers = Closers::new(77);
        let (alice, bob) = (disposer(&closers, ALICE), disposer(&closers, BOB));
        let (fd, other_end) = lingering();
        alice.close_passed(fd);
        for _ in 1..MAX_PASSED {
            assert_eq!(alice.admission(), Admission::Granted);
            alice.close_passed(tracer().0);
        }
        assert_eq!((alice.admission(), bob.admission()), (Admission::Later, Admission::Granted));
        wait_until("patience ends", || alice.admission() == Admission::Denied);
        assert_eq!(bob.admission(), Admission::Granted);
        assert_eq!(closers.connections_of(ALICE), 0);
        drop(other_end);
        wait_until("all is closed", || !closers.is_busy());
        assert_eq!(alice.admission(), Admission::Granted);
        assert!(closers.shared.lock().lanes.is_empty(), "nothing is kept");
    }
}
