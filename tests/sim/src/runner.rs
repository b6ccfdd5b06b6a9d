//! Runs of many seeds on several threads.

use std::cell::RefCell;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::rpc::{self, RpcTally};
use crate::run::run;
use crate::state::State;
use crate::world::Tally;

/// Findings after which no further seed begins.
const ENOUGH: usize = 10;

/// Interval between progress lines.
const PROGRESS: Duration = Duration::from_secs(20);

/// A simulated world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorldKind {
    /// The tracing service.
    #[default]
    Service,
    /// The RPC library.
    Rpc,
}

/// The counts of a run, or their sums.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tallies {
    /// Of the service's world.
    pub service: Tally,
    /// Of the RPC library's.
    pub rpc: RpcTally,
}

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The seed that found it.
    pub seed: u64,
    /// The invariant, and the place of the check.
    pub what: String,
}

/// The outcome of many seeds.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Number of seeds that ran to their end or to a finding.
    pub seeds: u64,
    /// Sums over all seeds without a finding.
    pub tally: Tallies,
    /// The findings, in the order of the seeds.
    pub findings: Vec<Finding>,
}

std::thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs one seed while the planted bug of this name is awake; no bug has the empty name.
///
/// # Errors
///
/// The invariant that does not hold.
pub fn try_seed(world: WorldKind, seed: u64, planted: &str, is_traced: bool) -> Result<Tallies, Finding> {
    esatto_planted::wake(planted);
    let result = panic::catch_unwind(AssertUnwindSafe(|| match world {
        WorldKind::Service => Tallies { service: run(seed, is_traced), ..Tallies::default() },
        WorldKind::Rpc => Tallies { rpc: rpc::run(seed, is_traced), ..Tallies::default() },
    }));
    esatto_planted::wake("");
    result.map_err(|_| Finding { seed, what: PANIC.with(|text| core::mem::take(&mut *text.borrow_mut())) })
}

/// Keeps the messages of panics, in the whole process, instead of printing them.
pub fn catch_panics() {
    panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without words");
        let place = info.location().map(|at| format!(" ({}:{})", at.file(), at.line())).unwrap_or_default();
        // The first message counts. Later ones may come from cleaning up.
        PANIC.with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.is_empty() {
                *kept = format!("{text}{place}");
            }
        });
    }));
}

/// Runs seeds on `jobs` threads. With `stop_at_first`, ends at the first finding. Skips the seeds
/// that `state` contains, and adds all others to it.
pub fn run_seeds(
    world: WorldKind,
    seeds: Range<u64>,
    jobs: usize,
    planted: &str,
    stop_at_first: bool,
    state: Option<&mut State>,
) -> Outcome {
    let state = Mutex::new(state);
    let next = AtomicU64::new(seeds.start);
    let found = AtomicUsize::new(0);
    let outcome = Mutex::new(Outcome::default());
    let told = Mutex::new(Instant::now());
    let enough = if stop_at_first { 1 } else { ENOUGH };
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while found.load(Ordering::Relaxed) < enough {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let is_done = |state: &Option<&mut State>| state.as_ref().is_some_and(|state| state.is_done(seed));
                    if is_done(&state.lock().expect("nobody panics with it")) {
                        continue;
                    }
                    let result = try_seed(world, seed, planted, false);
                    if let Some(state) = state.lock().expect("nobody panics with it").as_mut() {
                        state.add(seed, result.as_ref().err());
                    }
                    let mut outcome = outcome.lock().expect("nobody panics with it");
                    outcome.seeds += 1;
                    match result {
                        Ok(tally) => outcome.tally.add(&tally),
                        Err(finding) => {
                            found.fetch_add(1, Ordering::Relaxed);
                            outcome.findings.push(finding);
                        }
                    }
                    let mut told = told.lock().expect("nobody panics with it");
                    if planted.is_empty() && told.elapsed() > PROGRESS {
                        *told = Instant::now();
                        save(&state);
                        println!("{} seeds, up to {seed}: {}", outcome.seeds, outcome.tally.of(world));
                    }
                }
            });
        }
    });
    save(&state);
    let mut outcome = outcome.into_inner().expect("nobody panics with it");
    outcome.findings.sort_by_key(|finding| finding.seed);
    outcome
}

fn save(state: &Mutex<Option<&mut State>>) {
    if let Some(Err(error)) = state.lock().expect("nobody panics with it").as_ref().map(|state| state.save()) {
        eprintln!("{error}");
    }
}

impl WorldKind {
    /// Returns the world with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "service" | "" => Some(Self::Service),
            "rpc" => Some(Self::Rpc),
            _ => None,
        }
    }

    /// Returns the option of the command that chooses it.
    #[must_use]
    pub fn option(self) -> &'static str {
        match self {
            Self::Service => "",
            Self::Rpc => " --world rpc",
        }
    }
}

impl Tallies {
    /// Returns the counts of one world, for people.
    #[must_use]
    pub fn of(&self, world: WorldKind) -> String {
        match world {
            WorldKind::Service => self.service.to_string(),
            WorldKind::Rpc => self.rpc.to_string(),
        }
    }

    fn add(&mut self, other: &Self) {
        self.service.add(&other.service);
        self.rpc.add(&other.rpc);
    }
}

impl RpcTally {
    fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.connections += other.connections;
        self.calls += other.calls;
        self.replies += other.replies;
        self.bytes += other.bytes;
        self.hook_events += other.hook_events;
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
    }
}

impl core::fmt::Display for RpcTally {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "{} steps, {} connections, {} calls, {} replies, {} KiB, {} events of hooks, {} KiB held at most",
            self.steps,
            self.connections,
            self.calls,
            self.replies,
            self.bytes >> 10,
            self.hook_events,
            self.peak_bytes >> 10
        )
    }
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.inputs += other.inputs;
        self.producers += other.producers;
        self.sessions += other.sessions;
        self.clones += other.clones;
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.losses += other.losses;
        self.long_scrapes += other.long_scrapes;
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
    }
}

impl core::fmt::Display for Tally {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "{} inputs, {} producers, {} sessions ({} clones), {} packets ({} MiB) compared, {} losses marked, {} long scrapes, {} KiB held at most",
            self.inputs,
            self.producers,
            self.sessions,
            self.clones,
            self.packets,
            self.bytes >> 20,
            self.losses,
            self.long_scrapes,
            self.peak_bytes >> 10
        )
    }
}
