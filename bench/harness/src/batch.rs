//! Timing in batches.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::operation::Operation;

/// Something to measure.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name in the results.
    pub name: &'static str,
    /// Operations per batch.
    pub ops: u64,
    /// Trace events that one operation records.
    pub events: u64,
    /// Prepares, calls [`Batch::time`] once, and tidies up.
    pub run: fn(&mut Batch),
}

impl Case {
    /// A library's way of doing an operation.
    #[must_use]
    pub const fn new(operation: Operation, run: fn(&mut Batch)) -> Self {
        Self { name: operation.name(), ops: operation.per_batch(), events: operation.events(), run }
    }
}

/// How often and how densely to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Timed batches of each case.
    pub batches: usize,
    /// Between batches.
    pub pause: Duration,
}

/// Batches before the timed ones.
const WARM_UP: usize = 5;

/// One batch: so many operations in a row.
#[derive(Debug)]
pub struct Batch {
    ops: u64,
    wall: Duration,
    cpu: Duration,
}

impl Batch {
    /// A batch of so many operations.
    #[must_use]
    pub const fn of(ops: u64) -> Self {
        Self { ops, wall: Duration::ZERO, cpu: Duration::ZERO }
    }

    /// Does the operations and takes the time. It does not include the work of a case before and
    /// after.
    #[inline(always)]
    pub fn time(&mut self, mut operation: impl FnMut(u64)) {
        let cpu = thread_cpu_time();
        let wall = Instant::now();
        for i in 0..self.ops {
            operation(i);
        }
        self.wall = wall.elapsed();
        self.cpu = thread_cpu_time().saturating_sub(cpu);
    }

    /// Adds CPU time that another thread spent on the operations.
    pub fn add_cpu(&mut self, time: Duration) {
        self.cpu += time;
    }
}

/// ns per operation of each batch.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// By the wall clock.
    pub wall: Vec<f64>,
    /// By the clock of the thread's own CPU time.
    pub cpu: Vec<f64>,
}

impl Samples {
    pub(crate) fn add(&mut self, batch: &Batch) {
        let per_operation = |time: Duration| time.as_nanos() as f64 / batch.ops as f64;
        self.wall.push(per_operation(batch.wall));
        self.cpu.push(per_operation(batch.cpu));
    }

    /// How many operations `plan` asks for on each thread, warm-up included.
    #[must_use]
    pub fn operations(case: &Case, plan: Plan) -> u64 {
        case.ops * (plan.batches + WARM_UP) as u64
    }
}

/// Measures a case on so many threads at the same time, each on its own CPU if there are enough,
/// from the last one. Returns the batches of all threads in one list.
#[must_use]
pub fn sample(case: &Case, plan: Plan, threads: usize) -> Samples {
    let start = Start::of(threads);
    let measure = |index| {
        pin(index);
        let mut samples = Samples::default();
        for number in 0..plan.batches + WARM_UP {
            start.wait();
            let mut batch = Batch::of(case.ops);
            (case.run)(&mut batch);
            if number >= WARM_UP {
                samples.add(&batch);
            }
            std::thread::sleep(plan.pause);
        }
        samples
    };
    on_threads(threads, measure)
}

/// Measures so many operations of a case in a row on each thread: one long batch.
#[must_use]
pub fn sample_flood(case: &Case, ops: u64, threads: usize) -> Samples {
    let start = Start::of(threads);
    on_threads(threads, |index| {
        pin(index);
        let mut samples = Samples::default();
        start.wait();
        let mut batch = Batch::of(ops);
        (case.run)(&mut batch);
        samples.add(&batch);
        samples
    })
}

fn on_threads(threads: usize, measure: impl Fn(usize) -> Samples + Sync) -> Samples {
    let measure = &measure;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|index| scope.spawn(move || measure(index))).collect();
        let mut all = Samples::default();
        for thread in threads {
            let samples = thread.join().expect("a case does not panic");
            all.wall.extend(samples.wall);
            all.cpu.extend(samples.cpu);
        }
        all
    })
}

/// Lets threads begin at the same time: a batch is shorter than it takes to wake a thread, so that
/// they spin.
#[derive(Debug)]
struct Start {
    threads: usize,
    arrived: AtomicUsize,
}

impl Start {
    /// Rounds until a thread gives way to others, which may be the one that it waits for.
    const SPINS: u32 = 2000;

    const fn of(threads: usize) -> Self {
        Self { threads, arrived: AtomicUsize::new(0) }
    }

    fn wait(&self) {
        let before = self.arrived.fetch_add(1, Ordering::AcqRel);
        let all = (before / self.threads + 1) * self.threads;
        let mut spins = 0;
        while self.arrived.load(Ordering::Acquire) < all {
            spins += 1;
            if spins % Self::SPINS == 0 {
                std::thread::yield_now();
            }
            spin_loop();
        }
    }
}

/// Keeps this thread on one CPU, counted from the last. Without effect where that is not allowed.
pub fn pin(index: usize) {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut set = CpuSet::new();
    set.set(cpus - 1 - index % cpus);
    let _ = sched_setaffinity(None, &set);
}

/// CPU time that this thread has taken. Asking costs some hundred nanoseconds.
#[must_use]
pub fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
