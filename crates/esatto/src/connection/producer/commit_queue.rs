//! Where the arbiter leaves its commits, on whatever thread, until the control thread sends them.

use core::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use esatto_protozero::HeapBuffer;
use esatto_shm::{CommitRequest, CommitSink, FlushCallback};

use super::losses;
use crate::connection::wakeups;
use crate::diagnostics;
use crate::os::Waker;

/// Something to tell the service.
pub(crate) enum Outgoing {
    /// Encoded `CommitDataRequest`, and what to run when the service has handled it.
    Commit {
        args: Vec<u8>,
        callbacks: Vec<FlushCallback>,
    },
    RegisterWriter {
        writer_id: u16,
        target_buffer: u16,
    },
    UnregisterWriter {
        writer_id: u16,
    },
}

/// Made on the control thread, used by all.
pub(crate) struct Sink {
    waker: Waker,
    control_thread: ThreadId,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    outgoing: Vec<Outgoing>,
    buffer: HeapBuffer,
    /// When the arbiter wants its pending commits sent.
    due: Option<Instant>,
}

impl Sink {
    pub(crate) fn new(waker: Waker) -> Self {
        Self { waker, control_thread: thread::current().id(), queue: Mutex::default() }
    }

    pub(crate) fn take(&self) -> Vec<Outgoing> {
        mem::take(&mut self.lock().outgoing)
    }

    /// When the arbiter wants its pending commits sent, if it has some.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.lock().due
    }

    /// Whether that moment has come; from then on the arbiter is to be asked.
    pub(crate) fn take_due(&self, now: Instant) -> bool {
        self.lock().due.take_if(|due| *due <= now).is_some()
    }

    fn push(&self, outgoing: Outgoing) {
        self.lock().outgoing.push(outgoing);
        self.waker.wake();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommitSink for Sink {
    fn commit(&self, request: CommitRequest) {
        wakeups::note_commit();
        let mut queue = self.lock();
        queue.buffer.clear();
        request.write_to(&mut queue.buffer.message());
        let args = queue.buffer.to_vec();
        queue.outgoing.push(Outgoing::Commit { args, callbacks: request.callbacks });
    }

    fn register_writer(&self, writer_id: u16, target_buffer: u16) {
        self.push(Outgoing::RegisterWriter { writer_id, target_buffer });
    }

    fn unregister_writer(&self, writer_id: u16) {
        self.push(Outgoing::UnregisterWriter { writer_id });
    }

    fn wake(&self) {
        self.lock().due = Some(Instant::now());
        self.waker.wake();
    }

    fn wake_after(&self, delay: Duration) {
        let mut queue = self.lock();
        if queue.due.is_none() {
            queue.due = Some(Instant::now() + delay);
            drop(queue);
            // So that it waits no longer than that. While it collects it sees that by itself.
            if !wakeups::is_collecting() {
                self.waker.wake();
            }
        }
    }

    fn on_scarce(&self, exhausted: bool) {
        wakeups::note_scarcity(exhausted);
        self.waker.wake();
    }

    fn on_writer_refused(&self) {
        losses::note_sequence();
        diagnostics::say_once(
            "more sequences than a connection can have (32767): threads that begin to trace lose their events".into(),
        );
    }

    fn on_chunk_lost(&self) {
        losses::note_chunk();
    }

    fn is_connection_thread(&self) -> bool {
        thread::current().id() == self.control_thread
    }
}

impl core::fmt::Debug for Sink {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sink").finish_non_exhaustive()
    }
}
