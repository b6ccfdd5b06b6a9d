//! State that the library reaches through its callbacks: the streams, the clock, and the records of
//! the calls.
//!
//! Callbacks, wakers and streams must be `Send`, so they hold numbers only, and find the state of
//! their thread. Nothing borrows it while the library runs.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use esatto_ipc::simulated;

use super::calls::Record;
use super::descriptors::Descriptor;
use super::hook_record::HookRecord;
use super::net::Wires;
use crate::alloc;
use crate::rng::Rng;

/// Time at the beginning of a seed, so that there are times before it.
const START_NS: u64 = 1_000_000_000;

pub(super) struct Shared {
    /// Number of the run. Streams and wakers of an earlier one do nothing.
    pub(super) run: u64,
    pub(super) now_ns: u64,
    /// For streams and handlers. The world has a generator of its own.
    pub(super) rng: Rng,
    pub(super) is_traced: bool,
    /// Connections, by number.
    pub(super) wires: Vec<Wires>,
    /// Calls, by number.
    pub(super) calls: Vec<Record>,
    pub(super) descriptors: Vec<Descriptor>,
    pub(super) hooks: HookRecord,
    /// Wakers that were called, by number.
    pub(super) woken: BTreeSet<u64>,
    wakers: u64,
    /// Times at which something is woken: the timers of futures.
    pub(super) timers: BTreeMap<(u64, u64), Waker>,
    last_timer: u64,
    /// Grows when something happens that is no input or output.
    pub(super) progress: u64,
}

std::thread_local! {
    static SHARED: RefCell<Shared> = RefCell::new(Shared::new(0, 0, false));
}

impl Shared {
    fn new(run: u64, seed: u64, is_traced: bool) -> Self {
        Self {
            run,
            now_ns: START_NS,
            rng: Rng::new(seed ^ 0x7270_6373_696d),
            is_traced,
            wires: Vec::new(),
            calls: Vec::new(),
            descriptors: Vec::new(),
            hooks: HookRecord::default(),
            woken: BTreeSet::new(),
            wakers: 0,
            timers: BTreeMap::new(),
            last_timer: 0,
            progress: 0,
        }
    }

    /// Wakes at a time.
    pub(super) fn add_timer(&mut self, at_ns: u64, waker: Waker) {
        self.last_timer += 1;
        self.timers.insert((at_ns, self.last_timer), waker);
    }
}

/// Runs a function on the state of this thread. The function must not call the library.
pub(super) fn with<T>(run: impl FnOnce(&mut Shared) -> T) -> T {
    alloc::uncounted(|| SHARED.with_borrow_mut(run))
}

/// Begins a run.
pub(super) fn begin(seed: u64, is_traced: bool) {
    let run = with(|shared| shared.run + 1);
    let old = alloc::uncounted(|| SHARED.replace(Shared::new(run, seed, is_traced)));
    // Dropping it may call streams of the earlier run.
    drop(old);
    set_now(START_NS);
}

/// Ends a run. Real time counts again.
pub(super) fn end() {
    begin(0, false);
    simulated::set_now(None);
}

pub(super) fn set_now(now_ns: u64) {
    with(|shared| shared.now_ns = now_ns);
    simulated::set_now(Some(instant(now_ns)));
}

pub(super) fn now_ns() -> u64 {
    with(|shared| shared.now_ns)
}

fn base() -> Instant {
    static BASE: OnceLock<Instant> = OnceLock::new();
    *BASE.get_or_init(Instant::now)
}

fn instant(now_ns: u64) -> Instant {
    base() + Duration::from_nanos(now_ns)
}

/// Returns the simulated time of an instant.
pub(super) fn nanoseconds(at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(base()).as_nanos()).unwrap_or(u64::MAX)
}

/// Waker that notes its call.
struct Note {
    run: u64,
    number: u64,
}

/// Makes a waker, and returns its number in [`Shared::woken`].
pub(super) fn new_waker() -> (u64, Waker) {
    with(|shared| {
        shared.wakers += 1;
        let (run, number) = (shared.run, shared.wakers);
        (number, Waker::from(Arc::new(Note { run, number })))
    })
}

/// Returns true if the waker was called since the last time.
pub(super) fn take_woken(number: u64) -> bool {
    with(|shared| shared.woken.remove(&number))
}

pub(super) fn is_woken(number: u64) -> bool {
    with(|shared| shared.woken.contains(&number))
}

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        with(|shared| {
            if shared.run == self.run {
                shared.woken.insert(self.number);
            }
        });
    }
}

/// Prints an event of a traced run.
macro_rules! tell {
    ($($text:tt)*) => {
        if $crate::rpc::shared::with(|shared| shared.is_traced) {
            println!("{:>14} {}", $crate::rpc::shared::now_ns(), format_args!($($text)*));
        }
    };
}

pub(super) use tell;
