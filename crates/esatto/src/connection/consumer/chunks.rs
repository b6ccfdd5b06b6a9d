//! Reads a trace as it arrives, in bounded memory.

use core::fmt;
use core::future::poll_fn;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::connection::pending_operation::FORKED;
use crate::control_thread;
use crate::error::Error;
use crate::os::fork::Generation;

/// Bytes that may wait for a reader. With more, nothing is read from the service until half of them
/// are gone. The bound is this high because Perfetto's `traced` waits at most 10 s for a full
/// socket and then ends the connection (`docs/spec/wire-protocol.md` §13).
const MAX_WAITING_BYTES: usize = 16 << 20;

/// The trace of a [`Session`](crate::Session) in pieces of whole packets, as they arrive: made by
/// [`Session::chunks`](crate::Session::chunks).
///
/// Concatenated, they make up a trace file. At most 16 MiB wait for the reader, however large the
/// trace is. After an error, and at the end of the trace, there are no more. Reading begins with
/// the request for the first chunk. Dropping it after that discards the rest.
///
/// ```
/// esatto::categories! { static APP = "app"; }
///
/// let _tracing = esatto::Tracing::builder().in_process().categories(CATEGORIES).start()?;
/// let session = esatto::Session::start(esatto::Backend::InProcess, esatto::track_events(1024))?;
/// esatto::instant!(APP, "hello");
/// session.stop_recording().wait()?;
/// let mut bytes = 0;
/// for chunk in session.chunks() {
///     bytes += chunk?.len();
/// }
/// # assert!(bytes > 100);
/// # Ok::<(), esatto::Error>(())
/// ```
pub struct Chunks {
    queue: Arc<Queue>,
    /// Begins to read, when the first chunk is requested.
    begin: Option<Box<dyn FnOnce() + Send>>,
    made_in: Generation,
}

impl Chunks {
    pub(crate) fn new(begin: impl FnOnce(ChunkSender) + Send + 'static) -> Self {
        let queue = Arc::new(Queue { state: Mutex::default(), changed: Condvar::new() });
        let sender = ChunkSender(Arc::clone(&queue));
        Self { queue, begin: Some(Box::new(move || begin(sender))), made_in: Generation::current() }
    }

    fn begin(&mut self) {
        if let Some(begin) = self.begin.take() {
            begin();
        }
    }

    /// Returns the next chunk, for tasks: `while let Some(chunk) = chunks.next_chunk().await { …
    /// }`.
    pub async fn next_chunk(&mut self) -> Option<Result<Vec<u8>, Error>> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// Polls for the next chunk, for implementations of streams.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        if self.leave_to_parent() {
            return Poll::Ready(Some(Err(Error::disconnected(FORKED))));
        }
        self.begin();
        let mut state = self.queue.lock();
        match state.take() {
            Some(next) => Poll::Ready(self.taken(state, next)),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Writes all of it into a file, a socket, a compressor or any other writer. Returns the number
    /// of bytes.
    ///
    /// # Errors
    ///
    /// If the service goes away, or the writer fails.
    pub fn write_to(self, mut writer: impl Write) -> Result<u64, Error> {
        let mut bytes = 0;
        for chunk in self {
            let chunk = chunk?;
            writer.write_all(&chunk).map_err(|error| Error::file("cannot write the trace", error))?;
            bytes += chunk.len() as u64;
        }
        writer.flush().map_err(|error| Error::file("cannot write the trace", error))?;
        Ok(bytes)
    }

    /// Empties the queue in the child of a fork, where nothing fills it and its lock may be held
    /// for ever.
    fn leave_to_parent(&mut self) -> bool {
        let forked = self.made_in.is_past();
        if forked {
            *self = Self { queue: Arc::new(Queue::ended()), begin: None, made_in: Generation::current() };
        }
        forked
    }

    fn refuse(&mut self) -> Option<Result<Vec<u8>, Error>> {
        self.begin = None;
        let mut state = self.queue.lock();
        state.abandon();
        match state.end.replace(Ok(())) {
            Some(Ok(())) => None,
            Some(Err(_)) | None => Some(Err(Error::would_deadlock())),
        }
    }

    fn taken(&self, mut state: MutexGuard<'_, QueueState>, next: Next) -> Option<Result<Vec<u8>, Error>> {
        let chunk = match next {
            Next::Chunk(chunk) => chunk,
            Next::End(Ok(())) => return None,
            Next::End(Err(error)) => return Some(Err(error)),
        };
        let resume = state.is_full && state.bytes <= MAX_WAITING_BYTES / 2;
        state.is_full &= !resume;
        drop(state);
        if resume {
            control_thread::wake();
        }
        Some(Ok(chunk))
    }
}

impl Iterator for Chunks {
    type Item = Result<Vec<u8>, Error>;

    /// Waits for the next chunk. Must not be called in a callback, whose thread does the reading.
    fn next(&mut self) -> Option<Self::Item> {
        if control_thread::is_current() {
            return self.refuse();
        }
        if self.leave_to_parent() {
            return Some(Err(Error::disconnected(FORKED)));
        }
        self.begin();
        let mut state = self.queue.lock();
        loop {
            if let Some(next) = state.take() {
                return self.taken(state, next);
            }
            state = self.queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        if self.made_in.is_past() {
            return;
        }
        self.queue.lock().abandon();
        control_thread::wake();
    }
}

impl fmt::Debug for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunks").field("waiting_bytes", &self.queue.lock().bytes).finish_non_exhaustive()
    }
}

/// The control thread's end of [`Chunks`].
pub(crate) struct ChunkSender(Arc<Queue>);

/// The queue between the control thread and the reader.
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    chunks: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Nothing more is taken until the reader has caught up.
    is_full: bool,
    /// The reader has been dropped.
    is_abandoned: bool,
    end: Option<Result<(), Error>>,
    waker: Option<Waker>,
}

enum Next {
    Chunk(Vec<u8>),
    End(Result<(), Error>),
}

impl ChunkSender {
    /// Returns whether the reader has to catch up before more is read.
    pub(crate) fn is_full(&self) -> bool {
        self.0.lock().is_full
    }

    /// Returns whether the reader has been dropped.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.0.lock().is_abandoned
    }

    pub(crate) fn push(&self, chunk: Vec<u8>) {
        let mut state = self.0.lock();
        if state.is_abandoned {
            return;
        }
        state.bytes += chunk.len();
        state.is_full = state.bytes >= MAX_WAITING_BYTES;
        state.chunks.push_back(chunk);
        self.0.notify(state);
    }

    pub(crate) fn end(&self, result: Result<(), Error>) {
        let mut state = self.0.lock();
        state.end.get_or_insert(result);
        self.0.notify(state);
    }
}

impl Drop for ChunkSender {
    /// Ends the queue, so that no reader waits for ever.
    fn drop(&mut self) {
        self.end(Err(Error::disconnected("the session was closed")));
    }
}

impl Queue {
    /// Makes a queue that has ended.
    fn ended() -> Self {
        Self { state: Mutex::new(QueueState { end: Some(Ok(())), ..Default::default() }), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self, mut state: MutexGuard<'_, QueueState>) {
        let waker = state.waker.take();
        drop(state);
        self.changed.notify_all();
        if let Some(waker) = waker {
            crate::callbacks::shielded(|| waker.wake());
        }
    }
}

impl QueueState {
    fn abandon(&mut self) {
        self.is_abandoned = true;
        self.is_full = false;
        self.chunks.clear();
        self.bytes = 0;
    }

    fn take(&mut self) -> Option<Next> {
        if let Some(chunk) = self.chunks.pop_front() {
            self.bytes -= chunk.len();
            return Some(Next::Chunk(chunk));
        }
        // After an error, the end is an ordinary one.
        self.end.as_mut().map(|end| Next::End(core::mem::replace(end, Ok(()))))
    }
}
