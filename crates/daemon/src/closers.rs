//! Threads that close descriptors of strangers, because closing one can take as long as its sender
//! likes.
//!
//! Descriptors wait in *lanes*: one for the connections of each user, one for what these
//! connections passed. A lane closes one descriptor at a time, so that a user delays only his own.
//! A thread exists while there is something to close, and ends soon after.
//!
//! A TCP socket that lingers is interrupted by a signal after [`INTERRUPT_AFTER`]. A file of a FUSE
//! file system cannot be interrupted. Then its lane stands still: [`MAX_PASSED`] bounds what it may
//! hold, and the user's connections count until they are closed.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use esatto_ipc::sys::{ThreadId, current_thread, interrupt};
use esatto_ipc::{Admission, Disposal, Family, Peer};

use crate::census::Owner;

/// Lanes of ordinary users in which a descriptor is being closed, at the same time. Each keeps a
/// thread. Descriptors in other lanes wait for a free thread.
const MAX_THREADS: usize = 14;
/// Threads that close only what belongs to root and to the user of this process, beside
/// [`MAX_THREADS`].
const RESERVED_THREADS: usize = 2;
/// Descriptors passed by one user that wait to be closed. If there are more, a connection of this
/// user that passes another one has to wait, and after [`PATIENCE`] it is closed.
pub(crate) const MAX_PASSED: usize = 64;
/// How long a user's descriptors may be at their bound, on a machine that is only busy.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long one `close` may take before it is interrupted, again and again if need be.
pub(crate) const INTERRUPT_AFTER: Duration = Duration::from_millis(250);
/// How long a thread waits for more to do before it ends.
const IDLE: Duration = Duration::from_millis(100);
/// Closing needs no more.
const STACK_BYTES: usize = 64 << 10;

/// Handle to the threads. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Closers {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// A thread that is idle has something to do.
    ready: Condvar,
    /// Descriptors in all lanes, and those that were passed. Relaxed: the event loop changes them
    /// and asks, threads only subtract.
    open: AtomicUsize,
    passed: AtomicUsize,
    /// The user of this process.
    uid: i32,
}

/// Descriptors that wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Lane {
    owner: Owner,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Connections,
    Passed,
}

#[derive(Debug, Default)]
struct State {
    lanes: HashMap<Lane, Queue>,
    /// Lanes in which something waits and nothing is being closed: of root and ourselves, and of
    /// everybody else.
    trusted: VecDeque<Lane>,
    others: VecDeque<Lane>,
    /// Lanes of everybody else in which something is being closed.
    busy_others: usize,
    threads: usize,
    idle: usize,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<OwnedFd>,
    /// The thread that closes one of this lane, and since when.
    closing: Option<(ThreadId, Instant)>,
    /// Since when there are [`MAX_PASSED`] or more.
    full_since: Option<Instant>,
}

impl Queue {
    /// Open descriptors.
    fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.closing.is_some())
    }
}

impl Closers {
    /// Threads for a service of this user. None is started yet.
    pub(crate) fn new(uid: i32) -> Self {
        // A handler makes the signal interrupt; whether it has run does not matter.
        if let Err(e) = signal_hook::flag::register(signal_hook::consts::SIGURG, Arc::new(AtomicBool::new(false))) {
            log::warn!("cannot handle SIGURG: {e}; descriptors that do not close cannot be interrupted");
        }
        Self {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                ready: Condvar::new(),
                open: AtomicUsize::new(0),
                passed: AtomicUsize::new(0),
                uid,
            }),
        }
    }

    /// Closes what is owed to this peer, if that can block.
    pub(crate) fn disposal(&self, peer: &Peer) -> Option<Arc<dyn Disposal>> {
        // Other sockets carry no descriptors, and do not linger.
        let disposal = Disposer { closers: self.clone(), owner: Owner::of(peer) };
        (peer.family == Family::Unix).then(|| Arc::new(disposal) as _)
    }

    /// Closes a socket of ours, with what strangers have sent to it and nobody has received.
    pub(crate) fn close_own(&self, fd: OwnedFd) {
        self.close(Lane { owner: Owner::Uid(self.shared.uid), kind: Kind::Connections }, fd);
    }

    /// Connections of this owner that are not closed yet.
    pub(crate) fn connections_of(&self, owner: Owner) -> usize {
        self.shared.count(Lane { owner, kind: Kind::Connections })
    }

    /// Whether there is anything to close.
    pub(crate) fn is_busy(&self) -> bool {
        self.shared.open.load(Ordering::Relaxed) > 0
    }

    /// Interrupts what takes too long, and makes up for threads that could not be started.
    pub(crate) fn hurry(&self) {
        let state = self.shared.lock();
        let late = |queue: &Queue| queue.closing.filter(|(_, since)| since.elapsed() >= INTERRUPT_AFTER);
        for (thread, _) in state.lanes.values().filter_map(late) {
            interrupt(thread);
        }
        self.staff(state);
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
        self.staff(state);
    }

    /// Sees to it that somebody does what is to be done.
    fn staff(&self, mut state: MutexGuard<'_, State>) {
        if !state.has_work() {
            return;
        }
        if state.idle > 0 {
            return self.shared.ready.notify_one();
        }
        if state.threads == MAX_THREADS + RESERVED_THREADS {
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
    /// Whether a thread that is free could do something.
    fn has_work(&self) -> bool {
        !self.trusted.is_empty() || (!self.others.is_empty() && self.busy_others < MAX_THREADS)
    }

    fn next_lane(&mut self) -> Option<Lane> {
        let lane = self.trusted.pop_front();
        if lane.is_some() || self.busy_others == MAX_THREADS {
            return lane;
        }
        let lane = self.others.pop_front()?;
        self.busy_others += 1;
        Some(lane)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_trusted(&self, lane: Lane) -> bool {
        lane.owner == Owner::Uid(0) || lane.owner == Owner::Uid(self.uid)
    }

    fn make_ready(&self, state: &mut State, lane: Lane) {
        let ready = if self.is_trusted(lane) { &mut state.trusted } else { &mut state.others };
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

    /// Closes the oldest of a lane, which must be ready.
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
        if !self.is_trusted(lane) {
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

/// What a connection of one user hands its descriptors to.
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
        self.closers.close(Lane { owner: self.owner, kind: Kind::Connections }, fd);
    }

    fn admission(&self) -> Admission {
        let shared = &self.closers.shared;
        // Nearly always there is nothing to count.
        if shared.passed.load(Ordering::Relaxed) < MAX_PASSED {
            return Admission::Granted;
        }
        let lane = Lane { owner: self.owner, kind: Kind::Passed };
        match shared.lock().lanes.get(&lane).and_then(|queue| queue.full_since) {
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

    /// A socket whose `close` blocks until the other end goes away.
    fn lingering() -> (OwnedFd, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        rustix::net::sockopt::set_socket_linger(&socket, Some(Duration::from_secs(3600))).unwrap();
        socket.set_nonblocking(true).unwrap();
        while socket.write(&[0; 65536]).map_err(|e| assert_eq!(e.kind(), ErrorKind::WouldBlock)).is_ok() {}
        (socket.into(), listener.accept().unwrap().0)
    }

    /// A descriptor, and whether it was closed.
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
        // As many users as there are threads, and one more.
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
        // What does not end by itself is ended.
        wait_until("all are closed", || {
            closers.hurry();
            !closers.is_busy()
        });
        wait_until("the threads end", || closers.shared.lock().threads == 0);
        drop(other_ends);
    }

    #[test]
    fn the_connections_of_a_user_do_not_wait_for_what_was_passed() {
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
    fn who_has_passed_too_much_that_does_not_close_may_pass_no_more() {
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
