//! A sink on the heap.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::cursor::{OpenSlots, Range, RawDelegate, Slot, Stream};
use crate::message::Message;

/// Capacity of the first allocation.
const INITIAL_CAPACITY: usize = 256;

/// A growing, contiguous buffer to write messages into.
///
/// The buffer keeps its memory across [`clear`](Self::clear), so that reusing it does not allocate.
///
/// ```
/// let mut buffer = esatto_protozero::HeapBuffer::new();
/// buffer.message().string(1, "one");
/// assert_eq!(buffer.to_vec(), b"\x0a\x03one");
/// ```
pub struct HeapBuffer {
    stream: Stream,
    /// Made by `Box::into_raw`, freed on drop. The stream's delegate points to it as well.
    sink: NonNull<Sink>,
    /// Length of the content when the last root message began.
    mark: usize,
    dropped: usize,
}

// SAFETY: the buffer owns its sink; the raw pointers are never shared outside of `&self` / `&mut self`.
unsafe impl Send for HeapBuffer {}
// SAFETY: through `&self` memory is only read.
unsafe impl Sync for HeapBuffer {}

struct Sink {
    memory: Vec<MaybeUninit<u8>>,
    /// Bytes in front of the range handed out last.
    base: usize,
}

impl HeapBuffer {
    /// Makes an empty buffer; the first write allocates.
    #[must_use]
    pub fn new() -> Self {
        let sink = NonNull::from(Box::leak(Box::new(Sink { memory: Vec::new(), base: 0 })));
        // SAFETY: the sink lives until drop and is only touched by methods that borrow the buffer, never during
        // a call on the stream.
        let stream = unsafe { Stream::new(sink) };
        Self { stream, sink, mark: 0, dropped: 0 }
    }

    /// Begins a message behind what is there already.
    ///
    /// A message that was leaked earlier is removed first.
    pub fn message(&mut self) -> Message<'_> {
        self.settle();
        self.mark = self.stream.position();
        self.stream.root()
    }

    /// Bytes written.
    #[must_use]
    pub fn len(&self) -> usize {
        if self.stream.is_poisoned() { self.mark } else { self.stream.position() }
    }

    /// True if nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The content.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the sink is valid for as long as `self`; nobody writes while `self` is borrowed.
        let memory = unsafe { &self.sink.as_ref().memory[..self.len()] };
        // SAFETY: all bytes before the write position were written or belong to a length that was filled in:
        // messages that did not end properly are cut off by `len`.
        unsafe { core::slice::from_raw_parts(memory.as_ptr().cast::<u8>(), memory.len()) }
    }

    /// A copy of the content.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.as_slice().to_vec()
    }

    /// Forgets the content and keeps the memory.
    pub fn clear(&mut self) {
        self.stream.clear_poison();
        self.rewind(0);
        self.mark = 0;
    }

    /// Number of messages that were removed because a guard of theirs was leaked or a length exceeded
    /// [`MAX_MESSAGE_LENGTH`](crate::wire::MAX_MESSAGE_LENGTH).
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.dropped + usize::from(self.stream.is_poisoned())
    }

    /// Removes a message that did not end properly.
    fn settle(&mut self) {
        if self.stream.is_poisoned() {
            self.dropped += 1;
            self.stream.clear_poison();
            self.rewind(self.mark);
        }
    }

    fn rewind(&mut self, len: usize) {
        // SAFETY: no message is open (`&mut self`), so the stream is not in a call to the sink.
        let sink = unsafe { self.sink.as_mut() };
        sink.base = len;
        let range = sink.range();
        let delegate = self.sink;
        // SAFETY: as in `new`.
        self.stream = unsafe { Stream::new(delegate) };
        self.stream.set_position(len);
        // SAFETY: the range is the unused rest of the sink's memory, which only the stream writes.
        unsafe { self.stream.reset(range) };
    }
}

impl Default for HeapBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for HeapBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeapBuffer").field("len", &self.len()).field("dropped", &self.dropped()).finish()
    }
}

impl Drop for HeapBuffer {
    fn drop(&mut self) {
        // SAFETY: made by `Box::leak` in `new`, freed only here; the stream is not used any more.
        drop(unsafe { Box::from_raw(self.sink.as_ptr()) });
    }
}

impl Sink {
    fn range(&mut self) -> Range {
        let rest = &mut self.memory[self.base..];
        let len = rest.len();
        match NonNull::new(rest.as_mut_ptr().cast::<u8>()) {
            Some(begin) => Range { begin, len },
            None => Range::EMPTY,
        }
    }
}

// SAFETY: the memory behind `base` is valid until it is reallocated, which only `next_range` does; it moves open slots along.
unsafe impl RawDelegate for Sink {
    fn next_range(&mut self, used: usize, mut open: OpenSlots<'_>, min_len: usize) -> Range {
        self.base += used;
        let before = self.memory.as_ptr().addr();
        let wanted = (self.base + min_len).max(self.memory.len() * 2).max(INITIAL_CAPACITY);
        self.memory.resize(wanted, MaybeUninit::uninit());
        let memory = self.memory.as_mut_ptr().cast::<u8>();
        open.redirect(|address| {
            let offset = address.as_ptr().addr() - before;
            // SAFETY: the slot lay at this offset of the old memory, so it does in the new one, which is not null.
            Slot::InPlace(unsafe { NonNull::new_unchecked(memory.add(offset)) })
        });
        self.range()
    }

    fn fill_patch(&mut self, _patch: u32, _value: [u8; 4]) {
        unreachable!("a heap buffer keeps all slots in place");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_survive_growth() {
        let mut buffer = HeapBuffer::new();
        let payload = [7u8; 1000];
        {
            let mut root = buffer.message();
            let mut outer = root.begin(1);
            for _ in 0..10 {
                outer.begin(2).bytes(3, &payload);
            }
        }
        let outer = crate::Fields::new(buffer.as_slice()).next().unwrap();
        let inner: Vec<_> = crate::Fields::new(outer.as_bytes()).collect();
        assert_eq!(inner.len(), 10);
        for field in inner {
            assert_eq!(crate::Fields::new(field.as_bytes()).next().unwrap().as_bytes(), payload);
        }
    }

    #[test]
    fn a_leaked_guard_voids_its_root_message_only() {
        let mut buffer = HeapBuffer::new();
        buffer.message().varint(1, 1);
        {
            let mut root = buffer.message();
            core::mem::forget(root.begin(2));
            root.varint(3, 3);
        }
        assert_eq!(buffer.dropped(), 1);
        assert_eq!(buffer.as_slice(), b"\x08\x01");
        core::mem::forget(buffer.message());
        buffer.message().varint(4, 4);
        assert_eq!(buffer.dropped(), 2);
        assert_eq!(buffer.as_slice(), b"\x08\x01\x20\x04");
    }

    #[test]
    fn nesting_may_be_deeper_than_the_inline_slots() {
        fn nest(message: &mut Message<'_>, depth: usize) {
            if depth > 0 {
                nest(&mut message.begin(1), depth - 1);
            } else {
                message.varint(2, 42);
            }
        }
        let mut buffer = HeapBuffer::new();
        nest(&mut buffer.message(), 1000);
        let mut bytes = buffer.as_slice();
        for _ in 0..1000 {
            bytes = crate::Fields::new(bytes).next().unwrap().as_bytes();
        }
        assert_eq!(bytes, b"\x10\x2a");
        assert_eq!(buffer.dropped(), 0);
    }

    #[test]
    fn clear_keeps_the_memory() {
        let mut buffer = HeapBuffer::new();
        buffer.message().bytes(1, &[0; 5000]);
        buffer.clear();
        assert!(buffer.is_empty());
        buffer.message().varint(1, 5);
        assert_eq!(buffer.as_slice(), b"\x08\x05");
    }
}
