//! Tells the user that a disk does not take the data. A write waits inside of the kernel, so
//! another thread speaks: one for all files.

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use esatto_trace::escape::Line;

use crate::console::say;

/// Length of a write after which the user wants to know the reason.
const NOTICEABLE: Duration = Duration::from_secs(3);

static WRITES: Mutex<Writes> = Mutex::new(Writes { ongoing: Vec::new(), next: 0, has_thread: false, is_idle: false });
/// Wakes the thread if it is idle.
static BEGUN: Condvar = Condvar::new();

#[derive(Debug)]
struct Writes {
    ongoing: Vec<Write>,
    next: u64,
    has_thread: bool,
    /// The thread waits for the next write.
    is_idle: bool,
}

#[derive(Debug)]
struct Write {
    number: u64,
    file: PathBuf,
    begun: Instant,
    is_told: bool,
}

/// A write, until this is dropped.
#[derive(Debug)]
pub(super) struct Watched(u64);

/// Notes that a write begins.
pub(super) fn watch(file: &Path) -> Watched {
    let mut writes = lock();
    let number = writes.next;
    writes.next += 1;
    writes.ongoing.push(Write { number, file: file.to_owned(), begun: Instant::now(), is_told: false });
    if !writes.has_thread {
        // Without the thread, the user learns it later.
        let thread = thread::Builder::new().name("slow-disk".to_owned()).spawn(run);
        writes.has_thread = thread.is_ok();
    } else if writes.is_idle {
        // Further writes do not wake the thread, so it costs nothing while the disk is quick.
        writes.is_idle = false;
        BEGUN.notify_one();
    }
    Watched(number)
}

impl Drop for Watched {
    fn drop(&mut self) {
        lock().ongoing.retain(|write| write.number != self.0);
    }
}

fn lock() -> MutexGuard<'static, Writes> {
    WRITES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run() {
    loop {
        thread::sleep(NOTICEABLE);
        // Nothing is held while a line is printed: a terminal can hang, too.
        for (file, seconds) in late_writes() {
            say!(
                "Waiting for the disk of {}: a write has not ended for {seconds} s. Nothing is lost by that while \
                 the buffers have room.",
                Line(file.display())
            );
        }
    }
}

/// Returns the writes that take long and have not been told. Waits if there is no write at all.
fn late_writes() -> Vec<(PathBuf, u64)> {
    let mut writes = lock();
    while writes.ongoing.is_empty() {
        writes.is_idle = true;
        writes = BEGUN.wait(writes).unwrap_or_else(PoisonError::into_inner);
    }
    writes.is_idle = false;
    let mut late = Vec::new();
    for write in writes.ongoing.iter_mut().filter(|write| !write.is_told) {
        let elapsed = write.begun.elapsed();
        if elapsed >= NOTICEABLE {
            write.is_told = true;
            late.push((write.file.clone(), elapsed.as_secs()));
        }
    }
    late
}
