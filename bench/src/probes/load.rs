//! Work that the probes observe.

use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io::{read, write};
use rustix::pipe::pipe;

/// Makes `rounds` round trips between two threads that are pinned to one CPU, counted from the
/// last: two switches each.
pub(super) fn ping_pong(cpu: usize, rounds: usize) -> Result<(), String> {
    let (there, back) = (pipe().map_err(text)?, pipe().map_err(text)?);
    let (ping, echo) = ((back.0, there.1), (there.0, back.1));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            bench_harness::pin(cpu);
            while pass(&echo) {}
        });
        let pinger = scope.spawn(move || {
            bench_harness::pin(cpu);
            let mut done = 0;
            while done < rounds && write(&ping.1, &[0]).is_ok() && read(&ping.0, &mut [0; 1]) == Ok(1) {
                done += 1;
            }
            done
        });
        match pinger.join() {
            Ok(done) if done == rounds => Ok(()),
            _ => Err("the ping-pong has failed".to_owned()),
        }
    })
}

/// Reads a byte and writes one. Returns false at the end.
fn pass((from, to): &(OwnedFd, OwnedFd)) -> bool {
    matches!(read(from, &mut [0; 1]), Ok(1)) && matches!(write(to, &[0]), Ok(1))
}

/// A ping-pong on each CPU, as fast as it can, for some time.
pub(super) fn ping_pong_everywhere(time: Duration) -> Result<(), String> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = (0..cpus).map(|cpu| Background::start(move || ping_pong(cpu, 1000))).collect::<Vec<_>>();
    std::thread::sleep(time);
    threads.into_iter().try_for_each(Background::stop)
}

/// Work that is done again and again on a thread of its own. It ends with its owner.
#[derive(Debug)]
pub(super) struct Background {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), String>>>,
}

impl Background {
    pub(super) fn start(work: impl Fn() -> Result<(), String> + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = stop.clone();
        let thread = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                work()?;
            }
            Ok(())
        });
        Self { stop, thread: Some(thread) }
    }

    /// A thread that goes to sleep some 10,000 times per second.
    pub(super) fn naps() -> Self {
        Self::start(|| {
            std::thread::sleep(Duration::from_micros(50));
            Ok(())
        })
    }

    pub(super) fn stop(mut self) -> Result<(), String> {
        self.end()
    }

    fn end(&mut self) -> Result<(), String> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err("a thread of the load has panicked".to_owned()))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Processes that sleep. They end with their owner.
#[derive(Debug)]
pub(super) struct Sleepers(Vec<Child>);

impl Sleepers {
    pub(super) fn start(count: usize) -> Result<Self, String> {
        let mut this = Self(Vec::new());
        for _ in 0..count {
            let child = Command::new("sleep").arg("100000").stdin(Stdio::null()).stdout(Stdio::null()).spawn();
            this.0.push(child.map_err(|error| format!("sleep: {error}"))?);
        }
        Ok(this)
    }

    /// The process that was started last.
    pub(super) fn last(&self) -> u32 {
        self.0.last().map_or(0, Child::id)
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
        }
        for child in &mut self.0 {
            let _ = child.wait();
        }
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
