//! Timing in batches.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Something to measure.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name in the results.
    pub name: &'static str,
    /// Operations per batch.
    pub ops: u64,
    /// Trace events that one operation records.
    pub events: u64,
    /// Does so many operations. A loop in the measured program, so that the operation is inlined as it would be in a program.
    pub run: fn(u64),
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

/// ns per operation of each batch.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// By the wall clock.
    pub wall: Vec<f64>,
    /// By the clock of the thread's own CPU time.
    pub cpu: Vec<f64>,
}

impl Samples {
    fn batch(&mut self, case: &Case) {
        let cpu = thread_cpu_time();
        let wall = Instant::now();
        (case.run)(case.ops);
        let wall = wall.elapsed();
        let cpu = thread_cpu_time().saturating_sub(cpu);
        self.wall.push(wall.as_nanos() as f64 / case.ops as f64);
        self.cpu.push(cpu.as_nanos() as f64 / case.ops as f64);
    }

    /// The batches that count.
    fn without_warm_up(mut self) -> Self {
        self.wall.drain(..WARM_UP);
        self.cpu.drain(..WARM_UP);
        self
    }

    /// How many operations `plan` asks for, warm-up included.
    #[must_use]
    pub fn operations(case: &Case, plan: Plan) -> u64 {
        case.ops * (plan.batches + WARM_UP) as u64
    }
}

/// Measures a case on a thread of its own, on the last CPU.
#[must_use]
pub fn sample(case: &Case, plan: Plan) -> Samples {
    on_thread(case, plan, 0, &Barrier::new(1))
}

/// Measures a case on two threads at the same time, on the last two CPUs; both threads' batches in one list.
#[must_use]
pub fn sample_pair(case: &Case, plan: Plan) -> Samples {
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| on_thread(case, plan, 1, &barrier));
        let mut all = on_thread(case, plan, 0, &barrier);
        let other = other.join().expect("the other thread does not panic");
        all.wall.extend(other.wall);
        all.cpu.extend(other.cpu);
        all
    })
}

fn on_thread(case: &Case, plan: Plan, index: usize, barrier: &Barrier) -> Samples {
    let measure = || {
        pin(index);
        let mut samples = Samples::default();
        for _ in 0..plan.batches + WARM_UP {
            barrier.wait();
            samples.batch(case);
            std::thread::sleep(plan.pause);
        }
        samples.without_warm_up()
    };
    std::thread::scope(|scope| scope.spawn(measure).join().expect("a case does not panic"))
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
