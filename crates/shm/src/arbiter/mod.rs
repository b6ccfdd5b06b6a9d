//! [`Arbiter`]: the producer's side of a region, which gives chunks to writers and collects
//! finished ones (`docs/spec/shared-memory.md` §8–§15).
//!
//! There is one arbiter per connection. Writers use it only at chunk boundaries, where they take
//! one short lock. The compare-exchanges on the page words would suffice for correctness. The lock
//! protects the search position and the queue. The thread that owns the connection polls the calls
//! to make:
//!
//! ```text
//! writer thread                                     connection's thread
//!   chunk full → queue it ── Notify::wake ─────────► Arbiter::poll_outgoing → CommitData
//! ```

mod loss_marks;
mod notify;
mod scarcity;
mod stall;
mod writer_ids;

use core::{fmt, time::Duration};
use std::{
    collections::VecDeque,
    sync::{Arc, PoisonError},
};

use esatto_map::Map;

pub(crate) use self::loss_marks::LossMark;
pub use self::notify::Notify;
use self::{
    loss_marks::LossMarks,
    stall::{MAX_STALL_BUDGET, StallBudget},
    writer_ids::WriterIds,
};
use crate::{
    abi::{ChunkHeader, PageLayout, PageSize, PageWord},
    chunk_states::{Chunk, Smb, state::BeingWritten},
    commit::{
        Batch, CommitQueue, Finished, FinishedChunk, FlushCallback, Outgoing, PatchList, Reservations, Target, Urgency,
        copy_unfinished,
    },
    error::Error,
    memory::SharedMemory,
    sync::{AtomicBool, Mutex, MutexGuard, Ordering},
};

/// Number of pages that a dropping writer searches for each packet. The bound keeps dropping cheap
/// in a large buffer. The search continues where it stopped, so that it reaches each page in turn.
const PROBES_WHILE_DROPPING: u32 = 64;

/// Behaviour of a writer that needs a chunk when none is free (§12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExhaustedPolicy {
    /// Drops packets until a chunk is free.
    #[default]
    Drop,
    /// Waits up to 29 seconds, or until the [stall budget](Arbiter::stall_budget) is used up. Then
    /// drops without waiting again until a chunk is free.
    StallThenDrop,
}

/// Options of an arbiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Number of chunks in a page. Programs use [`PageLayout::Div1`]; tests of a service use the
    /// other layouts.
    pub layout: PageLayout,
    /// Time that the first finished chunk may wait for others (§10).
    pub batch_delay: Duration,
    /// Pending chunks are sent without that delay when they fill one of this many parts of the
    /// memory. Not 0.
    pub batch_parts: usize,
    /// Writes length fields in place as long as their chunk was not sent (§11). Set this only if
    /// the service said that it supports it. It is useful only with a delay.
    pub direct_patching: bool,
    /// The memory is not shared: commits carry the bytes of each chunk (§17).
    pub emulation: bool,
    /// With `emulation`: the arbiter sends unfinished chunks before it acknowledges a flush, as a
    /// service would scrape them.
    pub self_scraping: bool,
    /// Time that writers may still wait for this service, as an earlier connection to it
    /// [left](Arbiter::stall_budget) it.
    pub stall_budget: Duration,
    /// The thread of the connection also runs the service. It never waits for a chunk, because
    /// nothing frees one meanwhile.
    pub serves_itself: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            layout: PageLayout::Div1,
            batch_delay: Duration::ZERO,
            batch_parts: 2,
            direct_patching: false,
            emulation: false,
            self_scraping: false,
            stall_budget: MAX_STALL_BUDGET,
            serves_itself: false,
        }
    }
}

/// Gives the chunks of one region to the writers of one connection.
pub struct Arbiter {
    smb: Smb<SharedMemory>,
    notify: Arc<dyn Notify>,
    options: Options,
    shutdown: AtomicBool,
    state: Mutex<State>,
}

struct State {
    /// Page at which the search for a free chunk begins.
    next_page: u32,
    /// Number of chunks that writers hold.
    held: u32,
    stall_budget: StallBudget,
    ids: WriterIds,
    /// Buffer of each registered writer.
    registered: Map<u16, u16>,
    reservations: Reservations,
    pending: CommitQueue,
    /// Calls that were taken from `pending` and not polled yet.
    outgoing: VecDeque<Outgoing>,
    marks: LossMarks,
}

impl Arbiter {
    /// Makes an arbiter for a region. Chunks that are in use stay in use.
    ///
    /// # Errors
    /// [`Error::Size`] if the region has not a single page.
    pub fn new(region: SharedMemory, page_size: PageSize, notify: Arc<dyn Notify>) -> Result<Arc<Self>, Error> {
        Self::with_options(region, page_size, notify, Options::default())
    }

    /// Like [`Arbiter::new`], with explicit options.
    ///
    /// # Errors
    /// [`Error::Size`] if the region has not a single page.
    pub fn with_options(
        region: SharedMemory,
        page_size: PageSize,
        notify: Arc<dyn Notify>,
        options: Options,
    ) -> Result<Arc<Self>, Error> {
        let smb = Smb::new(region, page_size)?;
        #[expect(clippy::cast_possible_truncation, reason = "a page has at most 14 chunks")]
        let chunks = smb.pages() * options.layout.chunks() as u32;
        Ok(Arc::new(Self {
            smb,
            notify,
            options,
            shutdown: AtomicBool::new(false),
            state: Mutex::new(State {
                next_page: 0,
                held: 0,
                stall_budget: StallBudget::new(options.stall_budget, chunks),
                ids: WriterIds::new(),
                registered: Map::new(),
                reservations: Reservations::default(),
                pending: CommitQueue::default(),
                outgoing: VecDeque::new(),
                marks: LossMarks::default(),
            }),
        }))
    }

    /// Returns the memory.
    pub fn region(&self) -> &SharedMemory {
        self.smb.region()
    }

    /// Returns the size of a page.
    pub fn page_size(&self) -> PageSize {
        self.smb.page_size()
    }

    /// Assigns a buffer to a reservation. Its writers are registered, and the chunks that were held
    /// back are sent.
    ///
    /// Only the first call for a reservation has an effect.
    pub fn bind_reservation(&self, reservation: u16, target_buffer: u16) {
        self.resolve(reservation, target_buffer);
    }

    /// Ends a reservation whose session did not start. The service gets its chunks, and discards
    /// them.
    pub fn abort_reservation(&self, reservation: u16) {
        self.resolve(reservation, 0);
    }

    /// Returns the next call to make, if there is one. The caller makes the calls in this order.
    ///
    /// Call this on the connection's thread until it returns `None`, soon after [`Notify::wake`].
    /// If several threads poll, they must keep the order of the calls themselves.
    pub fn poll_outgoing(self: &Arc<Self>) -> Option<Outgoing> {
        self.write_marks();
        let mut lost = 0;
        let next = {
            let mut state = self.state();
            if self.is_shutdown() {
                return None;
            }
            if state.outgoing.is_empty() {
                lost = state.take_pending(&self.smb, self.options.emulation);
            }
            let next = state.outgoing.pop_front();
            if let Some(Outgoing::UnregisterWriter { writer_id }) = next {
                // The id is free only now: the service must not unregister a new writer in place of
                // the old one.
                state.ids.release(writer_id);
            }
            next
        };
        self.report_lost(lost);
        next
    }

    /// Acknowledges flush requests up to `flush_request_id`, after everything queued so far.
    ///
    /// Call this on the connection's thread, after the writers concerned were flushed, and poll
    /// then.
    pub fn acknowledge_flush(self: &Arc<Self>, flush_request_id: u64) {
        self.write_marks();
        self.queue_unfinished();
        self.state().pending.acknowledge_flush(flush_request_id);
    }

    /// Queues copies of the chunks that threads are still writing, after everything queued so far.
    ///
    /// This has an effect only with [`Options::emulation`] and [`Options::self_scraping`], where
    /// the service cannot look for these chunks itself. Call it on the connection's thread before a
    /// process ends whose threads may not all have ended, and poll then.
    pub fn queue_unfinished(&self) {
        if !(self.options.emulation && self.options.self_scraping) || self.is_shutdown() {
            return;
        }
        let (lost, registered) = {
            let mut state = self.state();
            (state.take_pending(&self.smb, true), state.registered.clone())
        };
        self.report_lost(lost);
        let requests = copy_unfinished(&self.smb, &registered);
        if !requests.is_empty() {
            self.state().outgoing.extend(requests.into_iter().map(Outgoing::Commit));
        }
    }

    /// Ends the connection: the arbiter sends nothing more, and writers drop everything from their
    /// next packet on. The memory stays mapped as long as a writer lives.
    ///
    /// Flush callbacks that have not run are dropped.
    pub fn shutdown(&self) {
        self.shutdown.store(true, Ordering::Relaxed);
        let dropped = {
            let mut state = self.state();
            state.marks = LossMarks::default();
            (std::mem::take(&mut state.pending), std::mem::take(&mut state.outgoing))
        };
        // Outside of the lock: the callbacks are dropped here, and their drop may do anything.
        drop(dropped);
    }

    /// Returns how long writers may still wait for a service that frees no chunk. All writers share
    /// this budget, and each chunk that the service frees adds to it.
    pub fn stall_budget(&self) -> Duration {
        self.state().stall_budget.left()
    }

    /// Returns true after [`Arbiter::shutdown`].
    #[inline]
    pub fn is_shutdown(&self) -> bool {
        self.shutdown.load(Ordering::Relaxed)
    }

    pub(crate) fn smb(&self) -> &Smb<SharedMemory> {
        &self.smb
    }

    /// Returns a chunk with this header, or `None` according to the policy. `dropping` writers do
    /// not wait, and search only a few pages.
    pub(crate) fn acquire_chunk(
        &self,
        header: ChunkHeader,
        policy: ExhaustedPolicy,
        dropping: bool,
    ) -> Option<Chunk<BeingWritten>> {
        if self.is_shutdown() {
            return None;
        }
        let probes = if dropping { PROBES_WHILE_DROPPING } else { u32::MAX };
        let Search { found, half_pending, scarce } = self.search(header, probes);
        if scarce {
            self.notify.on_scarce(found.is_none());
        }
        match found {
            Some(chunk) => {
                if half_pending && policy != ExhaustedPolicy::Drop {
                    self.notify.send_on_connection_thread();
                }
                Some(chunk)
            }
            None if dropping => None,
            None => {
                let chunk = if policy == ExhaustedPolicy::Drop { None } else { self.stall(header) };
                if chunk.is_none() && !self.is_shutdown() {
                    self.notify.on_drop();
                }
                chunk
            }
        }
    }

    /// Returns a chunk for the mark of a loss, if one is free. Never waits.
    pub(crate) fn acquire_chunk_for_mark(&self, header: ChunkHeader) -> Option<Chunk<BeingWritten>> {
        if self.is_shutdown() {
            return None;
        }
        self.search(header, u32::MAX).found
    }

    /// Queues a finished chunk, and those patches of its writer that are ready. With direct
    /// patching (§11), a chunk with `keep_back` waits for patches until it is sent. Returns `false`
    /// if the peer has taken the chunk away; its content is lost.
    pub(crate) fn return_chunk(
        &self,
        chunk: Chunk<BeingWritten>,
        keep_back: bool,
        writer: WriterRef,
        chunk_id: u32,
        patches: &mut PatchList,
    ) -> bool {
        if self.is_shutdown() {
            return true;
        }
        let chunk = if keep_back && self.options.direct_patching {
            FinishedChunk::Unpatched(chunk)
        } else {
            match self.smb.complete(chunk) {
                Ok(chunk) => FinishedChunk::Complete(chunk),
                Err(_) => {
                    self.notify.on_chunk_lost();
                    FinishedChunk::Lost
                }
            }
        };
        let is_there = !matches!(chunk, FinishedChunk::Lost);
        let mut state = self.state();
        let WriterRef { writer_id, target } = writer;
        let target = state.reservations.resolved(target);
        state.held -= 1;
        state.pending.push_chunk(Finished { chunk, target, writer_id, chunk_id });
        let patched = state.pending.take_ready(&self.smb, target, writer_id, patches);
        let urgent = patched || self.options.emulation || self.much_pending(&state);
        self.announce(state, if urgent { Urgency::Now } else { Urgency::Batched });
        is_there
    }

    /// Queues those patches of a writer that are ready.
    pub(crate) fn send_patches(&self, writer: WriterRef, patches: &mut PatchList) {
        if self.is_shutdown() {
            patches.clear();
            return;
        }
        let mut state = self.state();
        let target = state.reservations.resolved(writer.target);
        if state.pending.take_ready(&self.smb, target, writer.writer_id, patches) {
            self.announce(state, Urgency::Now);
        }
    }

    /// Has everything sent soon. `callback` runs when the service has copied it.
    pub(crate) fn flush_writer(&self, callback: Option<FlushCallback>) {
        if self.is_shutdown() {
            return;
        }
        let mut state = self.state();
        if let Some(callback) = callback {
            state.pending.push_callback(callback);
        }
        if !state.pending.is_empty() {
            self.announce(state, Urgency::Now);
        }
    }

    /// Removes a writer. It is unregistered after its last chunk was sent.
    pub(crate) fn retire_writer(&self, writer: WriterRef) {
        if self.is_shutdown() {
            return;
        }
        let mut state = self.state();
        state.retire(writer);
        self.announce(state, Urgency::Now);
    }

    /// Adds a writer. Returns `None` if the arbiter was shut down, or if the largest number of
    /// writers are alive.
    pub(crate) fn add_writer(&self, target: Target) -> Option<WriterRef> {
        if self.is_shutdown() {
            return None;
        }
        let mut state = self.state();
        let Some(writer_id) = state.ids.allocate() else {
            drop(state);
            self.notify.on_writer_refused();
            return None;
        };
        let buffer = match target {
            Target::Buffer(buffer) => Some(buffer),
            Target::Reservation(number) => state.reservations.add_writer(number, writer_id),
        };
        let target = buffer.map_or(target, Target::Buffer);
        if let Some(buffer @ 1..) = buffer {
            state.register(writer_id, buffer);
            self.announce(state, Urgency::Now);
        } else {
            drop(state);
        }
        Some(WriterRef { writer_id, target })
    }

    fn resolve(&self, reservation: u16, buffer: u16) {
        let mut state = self.state();
        let Some(writers) = state.reservations.resolve(reservation, buffer) else { return };
        state.pending.resolve(reservation, buffer);
        if buffer != 0 {
            for writer_id in writers {
                state.register(writer_id, buffer);
            }
        }
        self.announce(state, Urgency::Now);
    }

    /// Searches the pages once, from where the last search ended.
    fn search(&self, header: ChunkHeader, probes: u32) -> Search {
        let mut state = self.state();
        let pages = self.smb.pages();
        let begin = state.next_page;
        let probes = probes.min(pages);
        for i in 0..probes {
            let page = (begin + i) % pages;
            if let Some(chunk) = self.try_page(page, header) {
                state.next_page = page;
                state.held += 1;
                state.stall_budget.acquired();
                let scarce = self.is_scarce(&state);
                return Search { found: Some(chunk), half_pending: self.half_pending(&state), scarce };
            }
        }
        state.next_page = (begin + probes) % pages;
        Search { found: None, half_pending: self.half_pending(&state), scarce: true }
    }

    fn try_page(&self, page: u32, header: ChunkHeader) -> Option<Chunk<BeingWritten>> {
        let mut word = self.smb.page_word(page);
        if word == PageWord::FREE {
            self.smb.try_partition(page, self.options.layout);
            word = self.smb.page_word(page);
        }
        let free = u32::try_from(word.first_free_chunk()?).ok()?;
        self.smb.acquire_for_writing(page, free, header).ok()
    }

    fn report_lost(&self, lost: usize) {
        for _ in 0..lost {
            self.notify.on_chunk_lost();
        }
    }

    /// Wakes the connection's thread if it was not woken yet. Releases the lock first.
    fn announce(&self, mut state: MutexGuard<'_, State>, urgency: Urgency) {
        let urgency = match urgency {
            Urgency::Batched if self.options.batch_delay.is_zero() => Urgency::Now,
            other => other,
        };
        if urgency <= state.pending.announced {
            return;
        }
        state.pending.announced = urgency;
        drop(state);
        match urgency {
            Urgency::Idle => {}
            Urgency::Batched => self.notify.wake_after(self.options.batch_delay),
            Urgency::Now => self.notify.wake(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Result of a search for a free chunk.
struct Search {
    found: Option<Chunk<BeingWritten>>,
    /// Half of the memory is pending.
    half_pending: bool,
    /// See [`Notify::on_scarce`].
    scarce: bool,
}

impl State {
    /// Moves everything that may be sent to `outgoing`. Returns the number of chunks that the peer
    /// has taken away while they waited.
    fn take_pending(&mut self, smb: &Smb<SharedMemory>, emulation: bool) -> usize {
        let held = self.reservations.hold();
        let Batch { registrations, requests, retired, lost } = self.pending.take(smb, held, emulation);
        let registrations = registrations.into_iter();
        self.outgoing.extend(
            registrations.map(|(writer_id, target_buffer)| Outgoing::RegisterWriter { writer_id, target_buffer }),
        );
        self.outgoing.extend(requests.into_iter().map(Outgoing::Commit));
        for writer_id in retired {
            if self.registered.remove(&writer_id).is_some() {
                self.outgoing.push_back(Outgoing::UnregisterWriter { writer_id });
            } else {
                self.ids.release(writer_id);
            }
        }
        lost
    }

    fn retire(&mut self, writer: WriterRef) {
        if let Target::Reservation(number) = writer.target {
            self.reservations.remove_writer(number, writer.writer_id);
        }
        self.pending.retired.push(writer.writer_id);
    }

    fn register(&mut self, writer_id: u16, buffer: u16) {
        self.registered.insert(writer_id, buffer);
        self.pending.registrations.push((writer_id, buffer));
    }
}

/// Identity of a writer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriterRef {
    pub(crate) writer_id: u16,
    pub(crate) target: Target,
}

impl fmt::Debug for Arbiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arbiter")
            .field("region", self.smb.region())
            .field("page_size", &self.smb.page_size())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Locks, also after a panic: no panic leaves this state half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
