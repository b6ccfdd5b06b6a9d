//! Writing into memory that changes with each message.

#![allow(unsafe_code, reason = "a stream over one's own memory is what the raw cursor is for")]

use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use esatto_protozero::Message;
use esatto_protozero::cursor::{OpenSlots, Range, RawDelegate, Slot, Stream};

/// A stream that is kept, and moved to other memory for each message.
pub(crate) struct SlotSink {
    stream: Stream,
    delegate: NonNull<Overflow>,
}

impl SlotSink {
    /// Writes one message and returns its length.
    ///
    /// # Panics
    ///
    /// If it does not fit.
    #[inline(always)]
    pub(crate) fn write(&mut self, slot: &mut [u8], write: impl FnOnce(Message<'_>)) -> usize {
        let range = Range { begin: NonNull::from(&mut *slot).cast(), len: slot.len() };
        // SAFETY: the slot is borrowed for as long as the message is written, and no message is open before.
        unsafe { self.stream.reset(range) };
        write(self.stream.root());
        assert!(self.stream.begin() == slot.as_mut_ptr() && !self.stream.is_poisoned(), "the message fits");
        self.stream.used()
    }
}

impl Default for SlotSink {
    fn default() -> Self {
        let delegate = NonNull::from(Box::leak(Box::new(Overflow([MaybeUninit::uninit(); 64]))));
        // SAFETY: the delegate lives until drop, and nobody else uses it.
        Self { stream: unsafe { Stream::new(delegate) }, delegate }
    }
}

impl Drop for SlotSink {
    fn drop(&mut self) {
        // SAFETY: leaked in `default`; the stream is not used any more.
        drop(unsafe { Box::from_raw(self.delegate.as_ptr()) });
    }
}

impl fmt::Debug for SlotSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotSink").finish_non_exhaustive()
    }
}

/// Takes what does not fit.
struct Overflow([MaybeUninit<u8>; 64]);

// SAFETY: hands out its own memory over and over, and abandons all slots when it does.
unsafe impl RawDelegate for Overflow {
    fn next_range(&mut self, _used: usize, mut open: OpenSlots<'_>, _min_len: usize) -> Range {
        open.redirect(|_| Slot::Abandoned);
        Range { begin: NonNull::from(&mut self.0).cast(), len: self.0.len() }
    }

    fn fill_patch(&mut self, _patch: u32, _value: [u8; 4]) {
        unreachable!("no slot is redirected to a patch");
    }
}
