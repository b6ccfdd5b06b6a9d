//! The trace point that a thread is in, as long as the program iterates over instances.

use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use std::cell::UnsafeCell;

use esatto::raw::{self, Sequence};
use esatto_shm::TraceWriter;

use crate::abi::{StreamWriter, TracerIterator};
use crate::guard::{Nothing, guard};
use crate::packet::Packet;
use crate::stream::Target;

thread_local! {
    /// Never dropped, so that a program that still has its address when the thread ends finds it [empty](Tracer::empty).
    static TRACER: UnsafeCell<ManuallyDrop<Tracer>> = const { UnsafeCell::new(ManuallyDrop::new(Tracer::new())) };
}

thread_local! {
    static END: End = const { End };
}

/// Empties the thread's tracer when the thread ends.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        Tracer::empty();
    }
}

/// `PerfettoDsTracerImpl`: one per thread, because a thread is in one trace point at a time.
pub(crate) struct Tracer {
    /// A [`Target::Packet`].
    target: Target,
    /// Of the instance that it is the turn of; valid as long as it is.
    pub(crate) writer: Option<NonNull<TraceWriter>>,
    /// Likewise, if it is an instance of track events.
    pub(crate) sequence: *mut Sequence,
    /// Likewise, if it is one of a data source: its `CustomState`.
    pub(crate) thread_state: *mut c_void,
    /// Likewise, its `IncrementalState`.
    pub(crate) incremental_state: *mut c_void,
    /// Likewise, whether the SDK wants to know of the end of the turn.
    pub(crate) has_end: bool,
    /// The instances whose turn is still to come, one bit each.
    pub(crate) rest: u32,
}

impl Tracer {
    const fn new() -> Self {
        Self {
            target: Target::Packet(Packet::new()),
            writer: None,
            sequence: ptr::null_mut(),
            thread_state: ptr::null_mut(),
            incremental_state: ptr::null_mut(),
            has_end: false,
            rest: 0,
        }
    }

    /// Enters a trace point for these instances. `None`: the thread is in one already, or about to end.
    #[inline(always)]
    pub(crate) fn enter(instances: u32) -> Option<Iteration> {
        // Before the SDK's state of the thread, and so dropped after it.
        END.try_with(|_| ()).ok()?;
        if !raw::enter() {
            return None;
        }
        let tracer = TRACER.with(UnsafeCell::get).cast::<Self>();
        // SAFETY: of this thread, which was in no trace point, so that nobody uses it.
        unsafe { (*tracer).rest = instances };
        // SAFETY: as above; it was entered just now.
        Some(unsafe { Iteration::of(tracer) })
    }

    /// The next instance, whose turn it is.
    #[inline(always)]
    pub(crate) fn next_instance(&mut self) -> Option<u32> {
        self.forget_instance();
        let slot = self.rest.trailing_zeros();
        self.rest &= self.rest.wrapping_sub(1);
        (slot < u32::BITS).then_some(slot)
    }

    /// In the child of a fork, of the thread that forked: the instance is the parent's. What the program has made for it stays valid.
    pub(crate) fn forked() {
        TRACER.with(|tracer| {
            // SAFETY: of this thread, which is in `fork`, and so in none of our functions.
            let tracer = unsafe { &mut *tracer.get() };
            if let Target::Packet(packet) = &mut tracer.target {
                packet.abandon();
            }
            tracer.writer = None;
            tracer.rest = 0;
        });
    }

    /// The thread ends, and its writers have. A packet that was not ended is lost with them.
    fn empty() {
        TRACER.with(|tracer| {
            // SAFETY: of this thread, which is in a destructor, and so in none of our functions.
            let tracer = unsafe { &mut *tracer.get() };
            if let Target::Packet(packet) = &mut tracer.target {
                packet.abandon();
            }
            tracer.rest = 0;
            tracer.forget_instance();
        });
    }

    /// The turn of an instance is over. A packet that was not ended is dropped.
    #[inline(always)]
    pub(crate) fn forget_instance(&mut self) {
        let has_one = self.writer.is_some() || !self.sequence.is_null() || !self.thread_state.is_null();
        if has_one {
            self.forget();
        }
    }

    fn forget(&mut self) {
        if let Target::Packet(packet) = &mut self.target {
            packet.finish(false);
        }
        self.writer = None;
        self.sequence = ptr::null_mut();
        self.thread_state = ptr::null_mut();
        self.incremental_state = ptr::null_mut();
    }
}

/// An iteration: leaves the trace point when it is dropped, unless it [goes on](Self::goes_on) with the turn of an instance.
pub(crate) struct Iteration {
    tracer: *mut Tracer,
}

impl Iteration {
    /// # Safety
    ///
    /// Of this thread, which is in the trace point.
    pub(crate) const unsafe fn of(tracer: *mut Tracer) -> Self {
        Self { tracer }
    }

    /// The program has the turn; the iteration is to be taken up again by [`of`](Self::of).
    pub(crate) fn goes_on(self) {
        core::mem::forget(self);
    }

    pub(crate) const fn tracer(&self) -> *mut Tracer {
        self.tracer
    }
}

impl Drop for Iteration {
    fn drop(&mut self) {
        // SAFETY: see `of`. No reference to it is kept while anything else runs.
        unsafe { (*self.tracer).forget_instance() };
        raw::leave();
    }
}

impl Nothing for TracerIterator {
    const NOTHING: Self = Self::end();
}

impl TracerIterator {
    /// No instance.
    pub(crate) const fn end() -> Self {
        Self { inst_id: 0, padding: 0, tls: ptr::null_mut(), tracer: ptr::null_mut() }
    }

    pub(crate) const fn at(inst_id: u32, tracer: *mut Tracer) -> Self {
        Self { inst_id, padding: 0, tls: tracer.cast(), tracer }
    }
}

/// Begins a packet of the instance whose turn it is.
///
/// # Safety
///
/// Of an iteration of this thread that goes on, or null.
pub(crate) unsafe fn begin_packet(tracer: *mut Tracer) -> StreamWriter {
    // SAFETY: the caller's promise.
    let Some(writer) = unsafe { tracer.as_ref() }.and_then(|tracer| tracer.writer) else {
        return StreamWriter::NOTHING;
    };
    // Not by way of a reference, as the program keeps it while the tracer is used otherwise.
    // SAFETY: as above; not null.
    let address = unsafe { &raw mut (*tracer).target };
    // SAFETY: as above.
    let target = unsafe { &mut *address };
    if let Target::Packet(packet) = target {
        packet.begin(writer);
    }
    let window = target.window();
    StreamWriter::new(address, window)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsTracerImplPacketEnd(_tracer: *mut Tracer, writer: *mut StreamWriter) {
    guard(|| {
        // SAFETY: the contract: from packet begin.
        let Some(writer) = (unsafe { writer.as_mut() }) else { return };
        // SAFETY: as above.
        if let Some(Target::Packet(packet)) = unsafe { writer.synced() } {
            packet.finish(true);
        }
        // Who ends twice finds nothing the second time.
        writer.target = ptr::null_mut();
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsTracerImplFlush(
    tracer: *mut Tracer,
    callback: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    user_arg: *mut c_void,
) {
    guard(|| {
        // SAFETY: the contract: of an iteration of this thread that goes on.
        let Some(tracer) = (unsafe { tracer.as_mut() }) else { return };
        let Some(mut writer) = tracer.writer else { return };
        let callback = callback.map(|callback| OnFlushed { callback, argument: Argument(user_arg) });
        match &mut tracer.target {
            // Its memory must not be given away yet.
            Target::Packet(packet) if packet.is_open() => packet.flush_later(callback),
            // SAFETY: as above.
            _ => flush(unsafe { writer.as_mut() }, callback),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsTracerImplGetDropCount(tracer: *mut Tracer) -> u64 {
    guard(|| {
        // SAFETY: the contract: of an iteration of this thread that goes on.
        let writer = unsafe { tracer.as_ref() }.and_then(|tracer| tracer.writer);
        // SAFETY: as above.
        writer.map_or(0, |writer| unsafe { writer.as_ref() }.drop_count())
    })
}

/// Whom to tell that what was written is in the service's hands.
pub(crate) struct OnFlushed {
    callback: unsafe extern "C-unwind" fn(*mut c_void),
    argument: Argument,
}

pub(crate) fn flush(writer: &mut TraceWriter, callback: Option<OnFlushed>) {
    match callback {
        None => writer.flush(),
        Some(OnFlushed { callback, argument }) => writer.flush_with(move || {
            let argument = argument;
            // SAFETY: the contract: it may be called with the argument on any thread.
            unsafe { callback(argument.0) };
        }),
    }
}

/// What the program wants its callback to be called with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Argument(pub(crate) *mut c_void);

// SAFETY: it is only handed on; programs say by the contract that any thread may have it.
unsafe impl Send for Argument {}
// SAFETY: as above.
unsafe impl Sync for Argument {}
