//! The trace point that a thread is in while the program iterates over instances
//! (`docs/spec/c-abi.md` §§5, 6, 12).

use core::cell::UnsafeCell;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};

use esatto::raw;
use esatto_shm::TraceWriter;

use crate::abi::{DsOnFlushed, StreamWriter, TracerIterator};
use crate::ffi::{Argument, Mut, Ref};
use crate::on_flushed::{self, OnFlushed};
use crate::panic_guard::{Fallback, guard};
use crate::program_state::{CustomState, IncrementalState};
use crate::stream::Target;

thread_local! {
    /// Never dropped. A program that still has its address when the thread ends finds it
    /// [cleared](Tracer::clear).
    static TRACER: UnsafeCell<ManuallyDrop<Tracer>> = const { UnsafeCell::new(ManuallyDrop::new(Tracer::new())) };
}

thread_local! {
    static AT_THREAD_END: AtThreadEnd = const { AtThreadEnd };
}

/// Clears the thread's tracer when the thread ends.
struct AtThreadEnd;

impl Drop for AtThreadEnd {
    fn drop(&mut self) {
        Tracer::clear();
    }
}

/// `PerfettoDsTracerImpl`. One per thread is enough, because a thread is in one trace point at a
/// time.
pub(crate) struct Tracer {
    /// A [`Target::Packet`].
    target: Target,
    turn: Turn,
    /// The instances whose turn has not come yet, one bit each.
    rest: u32,
}

/// The instance that the program writes for at present. The pointers are valid as long as it has
/// the turn.
pub(crate) enum Turn {
    /// No instance has the turn.
    None,
    TrackEvents {
        writer: Writer,
    },
    DataSource {
        writer: Writer,
        thread_state: NonNull<CustomState>,
        incremental_state: NonNull<IncrementalState>,
        /// True if the SDK must be told when the turn ends.
        has_end: bool,
    },
}

/// `None` in the child of a fork, where the writer is the parent's.
type Writer = Option<NonNull<TraceWriter>>;

impl Turn {
    #[inline(always)]
    const fn writer(&self) -> Writer {
        match self {
            Self::None => None,
            Self::TrackEvents { writer } | Self::DataSource { writer, .. } => *writer,
        }
    }
}

impl Tracer {
    const fn new() -> Self {
        Self { target: Target::PACKET, turn: Turn::None, rest: 0 }
    }

    /// Enters a trace point for these instances. Returns `None` if the thread is in one already, or
    /// about to end.
    #[inline(always)]
    pub(crate) fn enter(instances: u32) -> Option<Iteration> {
        // Before the SDK makes the state of the thread, so that this one is dropped after it.
        // On the main thread, the functions that the program has registered for its end come later.
        if AT_THREAD_END.try_with(|_| ()).is_err() && !raw::is_main_thread() {
            return None;
        }
        if !raw::enter() {
            return None;
        }
        let tracer = TRACER.with(UnsafeCell::get).cast::<Self>();
        // SAFETY: of this thread, which was in no trace point. So nothing else uses it.
        unsafe { (*tracer).rest = instances };
        Some(Iteration { tracer })
    }

    /// Returns the object that the program keeps for the thread; null if there is none.
    pub(crate) fn thread_state(&self) -> *mut CustomState {
        match self.turn {
            Turn::DataSource { thread_state, .. } => thread_state.as_ptr(),
            _ => ptr::null_mut(),
        }
    }

    /// As [`thread_state`](Self::thread_state), of the incremental state.
    pub(crate) fn incremental_state(&self) -> *mut IncrementalState {
        match self.turn {
            Turn::DataSource { incremental_state, .. } => incremental_state.as_ptr(),
            _ => ptr::null_mut(),
        }
    }

    /// Forgets the parent's writer in the child of a fork, on the thread that forked. Objects of
    /// the program stay valid.
    pub(crate) fn forked() {
        TRACER.with(|tracer| {
            // SAFETY: of this thread, which is in `fork`. So it is in none of our functions except
            // those that call the program, and they hold no reference meanwhile.
            let tracer = unsafe { &mut *tracer.get() };
            tracer.target.abandon_packet();
            match &mut tracer.turn {
                Turn::None => {}
                Turn::TrackEvents { writer } | Turn::DataSource { writer, .. } => *writer = None,
            }
            tracer.rest = 0;
        });
    }

    /// Ends the turn when the thread ends, after its writers have. A packet that was not ended is
    /// lost with them.
    fn clear() {
        TRACER.with(|tracer| {
            // SAFETY: of this thread, which is in a destructor, and so in none of our functions.
            let tracer = unsafe { &mut *tracer.get() };
            tracer.target.abandon_packet();
            tracer.rest = 0;
            tracer.end_turn();
            tracer.target.free_packets();
        });
    }

    /// Returns the next instance, which then has the turn.
    #[inline(always)]
    fn next_instance(&mut self) -> Option<u32> {
        self.end_turn();
        let slot = self.rest.trailing_zeros();
        self.rest &= self.rest.wrapping_sub(1);
        (slot < u32::BITS).then_some(slot)
    }

    /// Ends the turn of an instance. A packet that was not ended is dropped.
    #[inline(always)]
    fn end_turn(&mut self) {
        if !matches!(self.turn, Turn::None) {
            self.drop_turn();
        }
    }

    fn drop_turn(&mut self) {
        self.target.drop_packet();
        self.turn = Turn::None;
    }
}

/// An iteration over instances. If it is dropped, the thread leaves the trace point, unless a turn
/// [begins](Self::begin_turn).
///
/// It belongs to its thread, which is in the trace point, and the tracer is the thread's. None of
/// the functions here keeps a reference to the tracer, because the program has its address.
pub(crate) struct Iteration {
    tracer: *mut Tracer,
}

impl Iteration {
    pub(crate) const fn tracer(&self) -> *mut Tracer {
        self.tracer
    }

    /// Returns the next instance, which then has the turn.
    #[inline(always)]
    pub(crate) fn next_instance(&self) -> Option<u32> {
        // SAFETY: see the type. Nothing of the program's runs meanwhile.
        unsafe { (*self.tracer).next_instance() }
    }

    #[inline(always)]
    pub(crate) fn set_turn(&self, turn: Turn) {
        // SAFETY: as above.
        unsafe { (*self.tracer).turn = turn };
    }

    /// Ends the turn of an instance. Returns true if the SDK must be told.
    #[inline(always)]
    pub(crate) fn end_turn(&self) -> bool {
        // SAFETY: as above.
        let tracer = unsafe { &mut *self.tracer };
        let has_end = matches!(tracer.turn, Turn::DataSource { has_end: true, .. });
        tracer.end_turn();
        has_end
    }

    /// Gives the turn to the program, for an instance. [`TracerIterator::take`] takes the iteration
    /// up again.
    #[inline(always)]
    pub(crate) fn begin_turn(self, inst_id: u32) -> TracerIterator {
        let tracer = self.tracer;
        core::mem::forget(self);
        TracerIterator { inst_id, padding: 0, tls: tracer.cast(), tracer: tracer.cast() }
    }
}

impl Drop for Iteration {
    fn drop(&mut self) {
        // SAFETY: see the type. No reference to it is kept while anything else runs.
        unsafe { (*self.tracer).end_turn() };
        raw::leave();
    }
}

impl TracerIterator {
    /// The end of an iteration.
    pub(crate) const END: Self = Self { inst_id: 0, padding: 0, tls: ptr::null_mut(), tracer: ptr::null_mut() };

    /// Takes the iteration from the program, with the instance that has the turn. Returns `None` at
    /// the end.
    ///
    /// The program's iterator is then at its end, even if a panic follows. By the contract it is
    /// from the function that begins an iteration, and the program passes it on the same thread,
    /// which is still in the trace point.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<(u32, Iteration)> {
        if self.tracer.is_null() {
            return None;
        }
        let taken = (self.inst_id, Iteration { tracer: self.tracer.cast() });
        *self = Self::END;
        Some(taken)
    }
}

impl Fallback for TracerIterator {
    const FALLBACK: Self = Self::END;
}

/// Begins a packet of the instance that has the turn.
///
/// The tracer belongs to an open iteration on this thread.
pub(crate) fn begin_packet(tracer: Mut<'_, Tracer>) -> StreamWriter {
    // Not by a reference to the tracer, because the program keeps the address of its target while
    // the tracer is used.
    let tracer = tracer.as_ptr();
    // SAFETY: null or valid, because it belongs to an open iteration.
    let Some(writer) = unsafe { tracer.as_ref() }.and_then(|tracer| tracer.turn.writer()) else {
        return StreamWriter::EMPTY;
    };
    // SAFETY: as above, and not null.
    let target = unsafe { &raw mut (*tracer).target };
    // SAFETY: as above.
    unsafe { &mut *target }.begin_packet(writer);
    // SAFETY: as above.
    unsafe { StreamWriter::of(target) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsTracerImplPacketEnd(_tracer: Mut<'_, Tracer>, writer: Mut<'_, StreamWriter>) {
    guard(|| {
        let Some(writer) = writer.get() else { return };
        if let Some(target) = writer.sync() {
            target.end_packet();
        }
        // A second end does nothing.
        writer.target = ptr::null_mut();
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsTracerImplFlush(
    tracer: Mut<'_, Tracer>,
    callback: Option<DsOnFlushed>,
    user_arg: Argument,
) {
    guard(|| {
        let Some(tracer) = tracer.get() else { return };
        let Some(mut writer) = tracer.turn.writer() else { return };
        let callback = callback.map(|callback| OnFlushed { callback, argument: user_arg });
        // The memory of an open packet must not be handed over yet.
        if let Some(packet) = tracer.target.open_packet() {
            packet.flush_later(callback);
        } else {
            // SAFETY: the instance has the turn, so the writer is valid.
            on_flushed::flush(unsafe { writer.as_mut() }, callback);
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsTracerImplGetDropCount(tracer: Ref<'_, Tracer>) -> u64 {
    guard(|| {
        let writer = tracer.get().and_then(|tracer| tracer.turn.writer());
        // SAFETY: the instance has the turn, so the writer is valid.
        writer.map_or(0, |writer| unsafe { writer.as_ref() }.drop_count())
    })
}
