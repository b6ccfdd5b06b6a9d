//! A packet that the program writes (`docs/spec/c-abi.md` §6).

use core::ptr::{self, NonNull};

use esatto_shm::{Deferred, DeferredValue, MAX_ROOM, TraceWriter};

use crate::stream::Window;
use crate::tracer::{self, OnFlushed};

/// Memory for packets that are void, at least.
const SPILL_BYTES: usize = 1024;

/// The packets of the trace point that a thread is in.
pub(crate) struct Packet {
    /// Valid between [`begin`](Self::begin) and [`finish`](Self::finish): the thread stays in the trace point. What is written without one is void.
    writer: Option<NonNull<TraceWriter>>,
    /// Lengths in chunks that are gone.
    patches: Vec<Patch>,
    /// Where the program writes a packet to that is void; the last is in use. From `Box::into_raw`.
    spill: Vec<*mut [u8]>,
    spilled: usize,
    /// The writer is to be flushed when the packet has ended.
    flush: Option<Option<OnFlushed>>,
}

/// Four bytes that the program writes when it knows them; from `Box::into_raw`, as it has the address.
struct Patch {
    late: Option<Deferred>,
    record: *mut [u8; 4],
}

impl Packet {
    pub(crate) const fn new() -> Self {
        Self { writer: None, patches: Vec::new(), spill: Vec::new(), spilled: 0, flush: None }
    }

    /// Begins a packet of this writer.
    #[inline(always)]
    pub(crate) fn begin(&mut self, mut writer: NonNull<TraceWriter>) {
        self.finish(false);
        self.writer = Some(writer);
        // SAFETY: the thread is in a trace point that the writer belongs to, and nobody else uses it.
        unsafe { writer.as_mut() }.begin_packet();
    }

    /// Ends the packet, if there is one: with success, or as if it had never been.
    #[inline(always)]
    pub(crate) fn finish(&mut self, is_whole: bool) {
        match self.writer.take() {
            Some(mut writer) => {
                // SAFETY: see `writer`.
                let writer = unsafe { writer.as_mut() };
                if !is_whole || self.is_odd() {
                    self.finish_odd(writer, is_whole);
                } else {
                    writer.end_packet_in_place();
                }
            }
            None if self.is_odd() => self.tidy_up(),
            None => {}
        }
    }

    /// Whether it is in several chunks, or void, or something is to be done when it has ended.
    fn is_odd(&self) -> bool {
        !self.patches.is_empty() || !self.spill.is_empty() || self.flush.is_some()
    }

    #[cold]
    #[inline(never)]
    fn finish_odd(&mut self, writer: &mut TraceWriter, is_whole: bool) {
        let all_told = self.tell_patches(writer);
        if self.spill.is_empty() && !(is_whole && all_told) {
            writer.void_packet();
        }
        writer.end_packet();
        if let Some(callback) = self.flush.take() {
            tracer::flush(writer, callback);
        }
        self.tidy_up();
    }

    #[cold]
    #[inline(never)]
    fn tidy_up(&mut self) {
        self.patches.clear();
        for spill in self.spill.drain(..) {
            // SAFETY: from `Box::into_raw`; the program has ended the packet.
            drop(unsafe { Box::from_raw(spill) });
        }
        self.spilled = 0;
    }

    /// The writer is gone, or the parent's, in the child of a fork. The program may go on writing the packet, to no effect.
    pub(crate) fn abandon(&mut self) {
        self.writer = None;
        self.flush = None;
    }

    pub(crate) const fn is_open(&self) -> bool {
        self.writer.is_some()
    }

    /// Flushes the writer when the packet has ended.
    pub(crate) fn flush_later(&mut self, callback: Option<OnFlushed>) {
        self.flush = Some(callback);
    }

    #[inline(always)]
    pub(crate) fn window(&self) -> Window {
        if let Some(&spill) = self.spill.last() {
            let begin = spill.cast::<u8>();
            let end = begin.wrapping_add(spill.len());
            return Window { begin, next: begin, end, before: self.spilled };
        }
        let Some(writer) = self.writer else { return Window::NONE };
        // SAFETY: see `writer`.
        let room = unsafe { writer.as_ref() }.room();
        Window { begin: room.begin, next: room.next, end: room.end, before: room.written_before }
    }

    #[inline(always)]
    pub(crate) fn advance(&mut self, n: usize) {
        if !self.spill.is_empty() {
            // What is written there is of no interest; the memory is used again and again.
            self.spilled += n;
        } else if let Some(mut writer) = self.writer {
            // SAFETY: a packet was begun, no message of it was leaked (then there is a `spill`), and the program has written that
            // many bytes in the window.
            unsafe { writer.as_mut().advance(n) };
        }
    }

    pub(crate) fn make_room(&mut self, n: usize) {
        if self.window().room() >= n {
            return;
        }
        if let (Some(mut writer), true) = (self.writer, self.spill.is_empty()) {
            // SAFETY: see `writer`.
            let writer = unsafe { writer.as_mut() };
            if n <= MAX_ROOM {
                self.tell_patches(writer);
                writer.make_room(n);
                return;
            }
            // No chunk is sure to have that in one piece.
            self.spilled = writer.room().written_before;
            writer.void_packet();
        }
        self.spill.push(Box::into_raw(vec![0; n.max(SPILL_BYTES)].into_boxed_slice()));
    }

    /// The four bytes at `address` will be told later, by way of what is returned; null: they need not be told.
    pub(crate) fn annotate_patch(&mut self, address: *mut u8) -> *mut u8 {
        let (Some(mut writer), true) = (self.writer, self.spill.is_empty()) else { return ptr::null_mut() };
        // SAFETY: see `writer`.
        let writer = unsafe { writer.as_mut() };
        let back = writer.room().next.addr().wrapping_sub(address.addr());
        let Some(late) = writer.defer_bytes(back) else { return ptr::null_mut() };
        let record = Box::into_raw(Box::new([0; 4]));
        self.patches.push(Patch { late: Some(late), record });
        record.cast()
    }

    /// Hands over the lengths that are known. `false`: there are others.
    fn tell_patches(&mut self, writer: &mut TraceWriter) -> bool {
        let mut all_told = true;
        for patch in &mut self.patches {
            // SAFETY: from `Box::into_raw`; the program writes it on this thread, which is here now.
            let value = DeferredValue::new(unsafe { patch.record.read() });
            match (value, patch.late.take()) {
                (Some(value), Some(late)) => writer.fill_deferred(late, value),
                (None, Some(late)) => {
                    patch.late = Some(late);
                    all_told = false;
                }
                (_, None) => {}
            }
        }
        all_told
    }
}

impl Drop for Patch {
    fn drop(&mut self) {
        // SAFETY: from `Box::into_raw`; the packet has ended.
        drop(unsafe { Box::from_raw(self.record) });
    }
}
