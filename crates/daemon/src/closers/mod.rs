//! Threads that close descriptors of other processes, because closing one can block for as long as
//! its sender likes.
//!
//! Descriptors wait in *lanes*: each user has one for its connections and one for the descriptors
//! that these connections passed. A lane closes one descriptor at a time, so that a user delays
//! only itself. A thread exists while there are descriptors to close, and ends soon after.
//!
//! After [`INTERRUPT_AFTER`], a signal interrupts the closing of a TCP socket that lingers. Nothing
//! can interrupt the closing of a file on a FUSE file system. Its lane then stands still:
//! [`MAX_PASSED`] bounds what the lane may hold, and the user's connections count until they are
//! closed. The thread is *stuck*, and another one takes its place. So many users of this kind do
//! not delay others. At most [`MAX_STUCK_THREADS`] threads may be stuck. At that bound, users with
//! a stuck descriptor may pass no more.
//!
//! Any thread can close a connection in which no descriptor waits. These connections have a
//! separate lane, which never waits for a descriptor of another process.

mod disposer;
mod lanes;
#[cfg(test)]
mod tests;

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use esatto_ipc::sys::{ThreadId, current_thread, interrupt};
use esatto_ipc::{Disposal, Family, Peer};

use crate::user_shares::Owner;
use disposer::Disposer;
use lanes::{Kind, Lane, Lanes, MAX_THREADS, Queue};

/// Stuck threads of ordinary users, in addition to [`MAX_THREADS`]. A thread is stuck after
/// [`STUCK_AFTER`]. Further ones keep their places among [`MAX_THREADS`].
const MAX_STUCK_THREADS: usize = 48;
/// Time that one `close` may take before its thread counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(1);
/// Threads that close only descriptors of root and of this process's user, in addition to
/// [`MAX_THREADS`].
const RESERVED_THREADS: usize = 2;
/// Descriptors passed by one user that may wait to be closed. At this bound, a connection of the
/// user that passes another one must wait, and after [`PATIENCE`](disposer::PATIENCE) it is closed.
pub(crate) const MAX_PASSED: usize = 64;
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
    lanes: Mutex<Lanes>,
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
                lanes: Mutex::default(),
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
        let lanes = self.shared.lock();
        let late = |queue: &Queue| queue.closing.filter(|(_, since)| since.elapsed() >= INTERRUPT_AFTER);
        for (thread, _) in lanes.queues.values().filter_map(late) {
            interrupt(thread);
        }
        drop(lanes);
        self.replace_stuck();
    }

    /// Replaces stuck threads, one by one.
    fn replace_stuck(&self) {
        let mut lanes = self.shared.lock();
        let is_stuck = |(lane, queue): (&Lane, &Queue)| {
            let is_late = queue.closing.is_some_and(|(_, since)| since.elapsed() >= STUCK_AFTER);
            (is_late && !queue.is_stuck && !self.shared.is_trusted(*lane)).then_some(*lane)
        };
        let stuck: Vec<Lane> = lanes.queues.iter().filter_map(is_stuck).collect();
        for lane in stuck {
            if lanes.stuck == MAX_STUCK_THREADS {
                if !self.shared.is_exhausted.swap(true, Ordering::Relaxed) {
                    log::error!(
                        "{MAX_STUCK_THREADS} descriptors of clients do not close: their users may pass no more, and \
                         descriptors of other users may be closed late"
                    );
                }
                break;
            }
            log::warn!("a descriptor of {} does not close; other descriptors of this user wait for it", lane.owner);
            lanes.set_stuck(lane);
            // Each stuck thread is replaced by a free one or a new one.
            self.shared.provide_thread(lanes);
            lanes = self.shared.lock();
        }
        self.shared.provide_thread(lanes);
    }

    fn close(&self, lane: Lane, fd: OwnedFd) {
        self.shared.open.fetch_add(1, Ordering::Relaxed);
        if lane.kind == Kind::Passed {
            self.shared.passed.fetch_add(1, Ordering::Relaxed);
        }
        let mut lanes = self.shared.lock();
        let queue = lanes.queues.entry(lane).or_default();
        queue.waiting.push_back(fd);
        if queue.len() >= MAX_PASSED && queue.full_since.is_none() {
            queue.full_since = Some(Instant::now());
        }
        if queue.len() == 1 {
            self.shared.make_ready(&mut lanes, lane);
        }
        self.shared.provide_thread(lanes);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a lane never waits for a descriptor of another user.
    fn is_trusted(&self, lane: Lane) -> bool {
        lane.owner == Owner::Uid(0) || lane.owner == Owner::Uid(self.uid) || lane.kind == Kind::EmptyConnections
    }

    fn make_ready(&self, lanes: &mut Lanes, lane: Lane) {
        let ready = match self.is_trusted(lane) {
            true => &mut lanes.trusted,
            false if lanes.has_stuck(lane.owner) => &mut lanes.suspects,
            false => &mut lanes.others,
        };
        ready.push_back(lane);
    }

    fn count(&self, lane: Lane) -> usize {
        self.lock().queues.get(&lane).map_or(0, Queue::len)
    }

    /// Wakes or starts a thread if there is work for one. That thread does the same before it
    /// closes anything: of several wake-ups that one idle thread gets, it notices only one.
    fn provide_thread(self: &Arc<Self>, mut lanes: MutexGuard<'_, Lanes>) {
        if !lanes.has_work() {
            return;
        }
        if lanes.idle > 0 {
            return self.ready.notify_one();
        }
        if lanes.threads >= MAX_THREADS + RESERVED_THREADS + lanes.stuck {
            return;
        }
        lanes.threads += 1;
        drop(lanes);
        let shared = Arc::clone(self);
        let thread = thread::Builder::new().name("closer".to_owned()).stack_size(STACK_BYTES);
        if let Err(e) = thread.spawn(move || shared.work()) {
            self.lock().threads -= 1;
            log::error!("cannot start a thread that closes descriptors: {e}; they stay open for now");
        }
    }

    /// Body of a thread.
    fn work(self: &Arc<Self>) {
        let thread = current_thread();
        let mut lanes = self.lock();
        loop {
            if let Some(lane) = lanes.next_lane() {
                lanes = self.close_one(lanes, lane, thread);
                continue;
            }
            lanes.idle += 1;
            let (woken, timeout) = self.ready.wait_timeout(lanes, IDLE).unwrap_or_else(PoisonError::into_inner);
            lanes = woken;
            lanes.idle -= 1;
            if timeout.timed_out() && !lanes.has_work() {
                lanes.threads -= 1;
                return;
            }
        }
    }

    /// Closes the oldest descriptor of a lane, which must be ready.
    fn close_one<'s>(
        self: &'s Arc<Self>,
        mut lanes: MutexGuard<'s, Lanes>,
        lane: Lane,
        thread: ThreadId,
    ) -> MutexGuard<'s, Lanes> {
        let fd = lanes.queues.get_mut(&lane).and_then(|queue| {
            queue.closing = Some((thread, Instant::now()));
            queue.waiting.pop_front()
        });
        self.provide_thread(lanes);
        drop(fd);
        self.open.fetch_sub(1, Ordering::Relaxed);
        if lane.kind == Kind::Passed {
            self.passed.fetch_sub(1, Ordering::Relaxed);
        }
        let mut lanes = self.lock();
        let was_stuck = lanes.queues.get_mut(&lane).is_some_and(|queue| core::mem::take(&mut queue.is_stuck));
        if was_stuck {
            lanes.stuck -= 1;
            self.is_exhausted.store(false, Ordering::Relaxed);
        } else if !self.is_trusted(lane) {
            lanes.busy_others -= 1;
        }
        let is_empty = lanes.queues.get_mut(&lane).is_none_or(|queue| {
            queue.closing = None;
            if queue.len() < MAX_PASSED {
                queue.full_since = None;
            }
            queue.waiting.is_empty()
        });
        if is_empty {
            lanes.queues.remove(&lane);
        } else {
            self.make_ready(&mut lanes, lane);
        }
        lanes
    }
}
