//! First stage: two threads walk directories, and a third sends the found files down the pipe.

use core::sync::atomic::{AtomicU64, Ordering};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use esatto::{Flow, counter, instant, slice};

use super::categories::{DISK, PIPES, QUEUES, SCAN};
use super::parcel::Parcel;
use super::queue::Queue;
use super::{MAX_FILE_BYTES, tracks};

const WALKERS: usize = 2;
/// Paths that may wait for the pipe.
const QUEUE_LIMIT: usize = 64;

/// Walks `roots` until `deadline` or the end, and sends one parcel per regular file of a readable
/// size.
pub(crate) fn run(roots: &[PathBuf], deadline: Instant, max_files: u64, out: impl Write + Send) -> io::Result<u64> {
    let frontier = Frontier::new(roots);
    let queue = Queue::new(QUEUE_LIMIT);
    let found = AtomicU64::new(0);
    let walk = || {
        while let Some(directory) = frontier.take() {
            if Instant::now() < deadline && found.load(Ordering::Relaxed) < max_files {
                list(&directory, &frontier, &queue, &found);
            }
            frontier.done();
        }
    };
    thread::scope(|scope| {
        let sender = super::named(scope, "pipe-out", || send(&queue, out))?;
        let walkers =
            (0..WALKERS).map(|n| super::named(scope, &format!("walk-{n}"), walk)).collect::<io::Result<Vec<_>>>()?;
        for walker in walkers {
            super::joined(walker);
        }
        queue.close();
        super::joined(sender)
    })?;
    instant!(SCAN, "scan finished", files = found.load(Ordering::Relaxed));
    Ok(found.into_inner())
}

/// Lists one directory: sub-directories go to the frontier, files into the queue.
fn list(directory: &Path, frontier: &Frontier, queue: &Queue<Parcel>, found: &AtomicU64) {
    let _list = slice!(SCAN, "list directory", path = &*directory.to_string_lossy());
    let Ok(entries) = ({
        let _open = slice!(DISK, "open directory");
        directory.read_dir()
    }) else {
        instant!(SCAN, "unreadable directory", path = &*directory.to_string_lossy());
        return;
    };
    for entry in entries.flatten() {
        // Links are skipped, so that no walk is endless: the type is that of the entry itself.
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            frontier.add(entry.path());
        } else if kind.is_file() {
            let size_bytes = {
                let _stat = slice!(DISK, "stat");
                entry.metadata().map_or(0, |meta| meta.len())
            };
            if size_bytes == 0 || size_bytes > MAX_FILE_BYTES as u64 {
                continue;
            }
            let id = found.fetch_add(1, Ordering::Relaxed) + 1;
            let _found = slice!(SCAN, "found", file = id, bytes = size_bytes, |e| e.flow(Flow::global(id)));
            let parcel = Parcel { id, size_bytes, path: entry.path(), ..Parcel::default() };
            let pushed = {
                // This takes long if the next stages are slow, because then the queue is full.
                let _wait = slice!(QUEUES, "wait for room");
                queue.push(parcel)
            };
            match pushed {
                Some(depth) => counter!(QUEUES, &tracks::TO_SEND, depth),
                None => return,
            }
        }
    }
}

fn send(queue: &Queue<Parcel>, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    while let Some((parcel, depth)) = queue.pop() {
        counter!(QUEUES, &tracks::TO_SEND, depth);
        let _send = slice!(PIPES, "send", file = parcel.id, |e| e.flow(Flow::global(parcel.id)));
        let sent = parcel.write_to(&mut out).and_then(|()| if depth == 0 { out.flush() } else { Ok(()) });
        if let Err(e) = sent {
            // The next stage has ended, so the walkers can end.
            queue.close();
            return Err(e);
        }
    }
    out.flush()
}

/// Directories still to be listed, shared by the walkers.
#[derive(Debug)]
struct Frontier {
    state: Mutex<FrontierState>,
    changed: Condvar,
}

#[derive(Debug)]
struct FrontierState {
    waiting: Vec<PathBuf>,
    /// Directories that a walker is listing: it may still add others.
    in_work: usize,
}

impl Frontier {
    fn new(roots: &[PathBuf]) -> Self {
        let waiting = roots.iter().rev().cloned().collect();
        Self { state: Mutex::new(FrontierState { waiting, in_work: 0 }), changed: Condvar::new() }
    }

    /// Takes the next directory; `None` when all are listed.
    fn take(&self) -> Option<PathBuf> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(path) = state.waiting.pop() {
                state.in_work += 1;
                return Some(path);
            }
            if state.in_work == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn add(&self, path: PathBuf) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).waiting.push(path);
        self.changed.notify_one();
    }

    fn done(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).in_work -= 1;
        self.changed.notify_all();
    }
}
