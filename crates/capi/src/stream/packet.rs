//! A packet that the program writes into chunks of the trace (`docs/spec/c-abi.md` §6).

use core::ptr::{self, NonNull};

use esatto_shm::{Deferred, DeferredValue, MAX_ROOM, TraceWriter};

use super::window::Window;
use crate::on_flushed::{self, OnFlushed};

/// Smallest allocation for void packets.
const SPILL_BYTES: usize = 1024;

/// The packets of the trace point that a thread is in.
pub(crate) struct Packet {
    /// Valid between [`begin`](Self::begin) and [`finish`](Self::finish), because the thread stays
    /// in the trace point. Bytes that the program writes without a writer are dropped.
    writer: Option<NonNull<TraceWriter>>,
    /// Lengths in chunks that were handed over before the program knew the length.
    patches: Vec<Patch>,
    /// Memory that the program writes void packets to. The last one is in use. From
    /// `Box::into_raw`.
    spill: Vec<*mut [u8]>,
    spilled: usize,
    /// Set if the program has asked to flush the writer when the packet has ended.
    flush: Option<Option<OnFlushed>>,
}

/// Four bytes that the program writes when it knows a length. From `Box::into_raw`, because the
/// program has the address.
struct Patch {
    deferred: Option<Deferred>,
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
        // SAFETY: the thread is in a trace point that the writer belongs to, and nothing else uses
        // the writer.
        unsafe { writer.as_mut() }.begin_packet();
    }

    /// Ends the packet, if there is one. A packet that is not whole leaves no trace.
    #[inline(always)]
    pub(crate) fn finish(&mut self, is_whole: bool) {
        match self.writer.take() {
            Some(mut writer) => {
                // SAFETY: see the field.
                let writer = unsafe { writer.as_mut() };
                if !is_whole || self.needs_more() {
                    self.finish_with_more(writer, is_whole);
                } else {
                    writer.end_packet_in_place();
                }
            }
            None if self.needs_more() => self.clear(),
            None => {}
        }
    }

    /// Returns true if the packet needs more than the writer's usual end: patches, spilled bytes or
    /// a flush.
    fn needs_more(&self) -> bool {
        !self.patches.is_empty() || !self.spill.is_empty() || self.flush.is_some()
    }

    #[cold]
    #[inline(never)]
    fn finish_with_more(&mut self, writer: &mut TraceWriter, is_whole: bool) {
        let are_all_known = self.hand_over_patches(writer);
        if self.spill.is_empty() && !(is_whole && are_all_known) {
            writer.void_packet();
        }
        writer.end_packet();
        if let Some(callback) = self.flush.take() {
            on_flushed::flush(writer, callback);
        }
        self.clear();
    }

    #[cold]
    #[inline(never)]
    fn clear(&mut self) {
        self.patches.clear();
        for spill in self.spill.drain(..) {
            // SAFETY: from `Box::into_raw`. The program has ended the packet.
            drop(unsafe { Box::from_raw(spill) });
        }
        self.spilled = 0;
    }

    /// Frees the memory of the packets. The thread ends, and nothing drops this.
    pub(crate) fn free(&mut self) {
        self.clear();
        (self.patches, self.spill) = (Vec::new(), Vec::new());
    }

    /// Forgets the writer, because it was dropped, or because it is the parent's in the child of a
    /// fork. The program may continue to write the packet, without effect.
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
        // SAFETY: see the field.
        let room = unsafe { writer.as_ref() }.room();
        Window { begin: room.begin, next: room.next, end: room.end, before: room.written_before }
    }

    #[inline(always)]
    pub(crate) fn advance(&mut self, n: usize) {
        if !self.spill.is_empty() {
            // Nothing reads these bytes, so the next window is the same memory.
            self.spilled += n;
        } else if let Some(mut writer) = self.writer {
            // SAFETY: a packet was begun. No message of it was leaked, because then there is a
            // `spill`. The program has written that many bytes in the window.
            unsafe { writer.as_mut().advance(n) };
        }
    }

    pub(crate) fn make_room(&mut self, n: usize) {
        if self.window().room() >= n {
            return;
        }
        if let (Some(mut writer), true) = (self.writer, self.spill.is_empty()) {
            // SAFETY: see the field.
            let writer = unsafe { writer.as_mut() };
            if n <= MAX_ROOM {
                self.hand_over_patches(writer);
                writer.make_room(n);
                return;
            }
            // A chunk may not have that many bytes in one piece.
            self.spilled = writer.room().written_before;
            writer.void_packet();
        }
        self.spill.push(Box::into_raw(vec![0; n.max(SPILL_BYTES)].into_boxed_slice()));
    }

    /// Remembers that the four bytes at `address` become known later. Returns the address that the
    /// program then writes them to, or null if it need not.
    pub(crate) fn annotate_patch(&mut self, address: *mut u8) -> *mut u8 {
        let (Some(mut writer), true) = (self.writer, self.spill.is_empty()) else { return ptr::null_mut() };
        // SAFETY: see the field.
        let writer = unsafe { writer.as_mut() };
        let back = writer.room().next.addr().wrapping_sub(address.addr());
        let Some(deferred) = writer.defer_bytes(back) else { return ptr::null_mut() };
        let record = Box::into_raw(Box::new([0; 4]));
        self.patches.push(Patch { deferred: Some(deferred), record });
        record.cast()
    }

    /// Hands over the lengths that are known. Returns false if some are not.
    fn hand_over_patches(&mut self, writer: &mut TraceWriter) -> bool {
        let mut are_all_known = true;
        for patch in &mut self.patches {
            // SAFETY: from `Box::into_raw`. The program writes it on this thread, so it does not
            // write it now.
            let value = DeferredValue::new(unsafe { patch.record.read() });
            match (value, patch.deferred.take()) {
                (Some(value), Some(deferred)) => writer.fill_deferred(deferred, value),
                (None, Some(deferred)) => {
                    patch.deferred = Some(deferred);
                    are_all_known = false;
                }
                (_, None) => {}
            }
        }
        are_all_known
    }
}

impl Drop for Patch {
    fn drop(&mut self) {
        // SAFETY: from `Box::into_raw`. The packet has ended.
        drop(unsafe { Box::from_raw(self.record) });
    }
}
