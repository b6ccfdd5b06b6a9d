//! [`HeapBuffer`]: a contiguous sink on the heap.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;

use super::message::Message;
use super::stream::Stream;
use super::writer::Writer;
use super::{OpenSlots, Range, RawDelegate, Slot};

/// Capacity of the first allocation.
const INITIAL_CAPACITY: usize = 256;

/// Growing, contiguous buffer for messages of type `M`, by default untyped ones.
///
/// It takes several messages, one after the other. The buffer keeps its memory across
/// [`clear`](Self::clear), so that reusing it does not allocate. When it grows it moves its
/// content; [`ScatteredBuffer`](crate::ScatteredBuffer) does not.
///
/// ```
/// use esatto_protozero::HeapBuffer;
///
/// let mut buffer = HeapBuffer::new();
/// buffer.message().string(1, "one");
/// assert_eq!(buffer.as_slice(), b"\x0a\x03one");
/// buffer.clear();
/// buffer.message().string(1, "two");
/// assert_eq!(buffer.into_vec(), b"\x0a\x03two");
/// ```
pub struct HeapBuffer<M = Message<'static>> {
    stream: Stream,
    sink: Sink,
    /// Length of the content when the last root message began.
    mark: usize,
    dropped: usize,
    message: PhantomData<fn() -> M>,
}

// SAFETY: the buffer owns its memory; the raw pointers are never shared outside of `&self` / `&mut
// self`.
unsafe impl<M> Send for HeapBuffer<M> {}
// SAFETY: through `&self` memory is only read.
unsafe impl<M> Sync for HeapBuffer<M> {}

#[derive(Default)]
struct Sink {
    memory: Vec<MaybeUninit<u8>>,
    /// Number of bytes before the range that was returned last.
    base: usize,
}

impl HeapBuffer {
    /// Makes an empty buffer for untyped messages; the first write allocates.
    ///
    /// For typed ones there is [`HeapBuffer::<FooWriter>::default()`](Default).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty buffer for untyped messages that takes `capacity` bytes without allocating
    /// again.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::over(Vec::with_capacity(capacity))
    }
}

impl<M: Writer> HeapBuffer<M> {
    /// Begins a message after the existing content.
    ///
    /// A message that was leaked earlier is removed first.
    #[inline]
    pub fn message(&mut self) -> M::At<'_> {
        self.prepare();
        self.stream.root().into()
    }
}

impl<M> HeapBuffer<M> {
    /// Makes a buffer that continues after the content of `vec`, in its memory.
    #[inline(never)]
    #[must_use]
    pub fn over(vec: Vec<u8>) -> Self {
        let len = vec.len();
        let mut vec = ManuallyDrop::new(vec);
        let capacity = vec.capacity();
        // SAFETY: pointer and capacity are those of a vector of the same layout. Bytes up to the
        // capacity may be uninitialised.
        let memory = unsafe { Vec::from_raw_parts(vec.as_mut_ptr().cast::<MaybeUninit<u8>>(), capacity, capacity) };
        // SAFETY: this delegate is not called: the stream gets the right one before it is used.
        let mut stream = unsafe { Stream::new(NonNull::<Sink>::dangling()) };
        stream.set_position(len);
        Self { stream, sink: Sink { memory, base: len }, mark: len, dropped: 0, message: PhantomData }
    }

    /// Returns the number of bytes written.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        if self.stream.is_poisoned() { self.mark } else { self.stream.position() }
    }

    /// Returns true if nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the content.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        let memory = &self.sink.memory[..self.len()];
        // SAFETY: all bytes before the write position were written or belong to a length that was
        // filled in: messages that did not end properly are cut off by `len`.
        unsafe { core::slice::from_raw_parts(memory.as_ptr().cast::<u8>(), memory.len()) }
    }

    /// Returns a copy of the content.
    #[inline(never)]
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.as_slice().to_vec()
    }

    /// Returns the content, without a copy.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<u8> {
        let len = self.len();
        let mut memory = ManuallyDrop::new(core::mem::take(&mut self.sink.memory));
        // SAFETY: pointer and capacity are those of a vector of the same layout; as in `as_slice`,
        // `len` bytes are initialised.
        unsafe { Vec::from_raw_parts(memory.as_mut_ptr().cast::<u8>(), len, memory.capacity()) }
    }

    /// Forgets the content and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.stream.clear_poison();
        self.rewind(0);
    }

    /// Returns the number of messages that were removed because a guard was leaked, or a length
    /// exceeded [`MAX_MESSAGE_LENGTH`](crate::wire::MAX_MESSAGE_LENGTH).
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.dropped + usize::from(self.stream.is_poisoned())
    }

    /// Sets the stream's pointers to the current places of the memory and the delegate.
    #[inline]
    fn prepare(&mut self) {
        if self.stream.is_poisoned() {
            self.dropped += 1;
            self.stream.clear_poison();
            self.rewind(self.mark);
        }
        self.mark = self.stream.position();
        self.sink.base = self.mark;
        let range = self.sink.range();
        // SAFETY: the range is the unused rest of the memory, which only the stream writes until
        // the sink hands out another; no message is open.
        unsafe { self.stream.reset(range) };
        // SAFETY: the sink cannot move or be accessed while a message borrows the buffer, and it is
        // set again before the next message.
        unsafe { self.stream.attach(NonNull::from(&mut self.sink)) };
    }

    fn rewind(&mut self, len: usize) {
        // SAFETY: an empty range cannot be written to; no message is open.
        unsafe { self.stream.reset(Range::EMPTY) };
        self.stream.set_position(len);
    }
}

impl From<Vec<u8>> for HeapBuffer {
    fn from(vec: Vec<u8>) -> Self {
        Self::over(vec)
    }
}

impl<M> From<HeapBuffer<M>> for Vec<u8> {
    fn from(buffer: HeapBuffer<M>) -> Self {
        buffer.into_vec()
    }
}

/// Appends a message to a vector, in its spare capacity. The vector grows if necessary.
///
/// A message that leaks a guard, or whose `write` panics, leaves the content of the vector as it
/// was.
///
/// ```
/// let mut bytes = vec![0xff];
/// esatto_protozero::append_to(&mut bytes, |mut message| message.varint(1, 300));
/// assert_eq!(bytes, b"\xff\x08\xac\x02");
/// ```
///
/// A generated writer is made of the message: `|message| { FooWriter::from(message).bar(300); }`.
pub fn append_to(vec: &mut Vec<u8>, write: impl FnOnce(Message<'_>)) {
    /// Guard that gives the memory back when the closure returns or panics.
    struct Loan<'v> {
        vec: &'v mut Vec<u8>,
        buffer: HeapBuffer,
        keep: usize,
    }
    impl Drop for Loan<'_> {
        fn drop(&mut self) {
            *self.vec = core::mem::take(&mut self.buffer).into_vec();
            self.vec.truncate(self.keep);
        }
    }
    let (keep, buffer) = (vec.len(), HeapBuffer::from(core::mem::take(vec)));
    let mut loan = Loan { vec, buffer, keep };
    write(loan.buffer.message());
    loan.keep = usize::MAX;
}

impl<M> Default for HeapBuffer<M> {
    fn default() -> Self {
        Self::over(Vec::new())
    }
}

impl<M> AsRef<[u8]> for HeapBuffer<M> {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl<M> fmt::Debug for HeapBuffer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeapBuffer").field("len", &self.len()).field("dropped", &self.dropped()).finish()
    }
}

impl Sink {
    #[inline]
    fn range(&mut self) -> Range {
        let rest = &mut self.memory[self.base..];
        let len = rest.len();
        match NonNull::new(rest.as_mut_ptr().cast::<u8>()) {
            Some(begin) => Range { begin, len },
            None => Range::EMPTY,
        }
    }
}

// SAFETY: the memory behind `base` is valid until it is reallocated, which only `next_range` does;
// it moves open slots along.
unsafe impl RawDelegate for Sink {
    fn next_range(&mut self, used: usize, mut open: OpenSlots<'_>, min_len: usize) -> Range {
        self.base += used;
        let before = self.memory.as_ptr().addr();
        let wanted = (self.base + min_len).max(self.memory.len() * 2).max(INITIAL_CAPACITY);
        self.memory.resize(wanted, MaybeUninit::uninit());
        let memory = self.memory.as_mut_ptr().cast::<u8>();
        open.redirect(|address| {
            let offset = address.as_ptr().addr() - before;
            // SAFETY: the slot lay at this offset of the old memory, so it does in the new one,
            // which is not null.
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
        let memory = buffer.as_slice().as_ptr();
        buffer.clear();
        assert!(buffer.is_empty());
        buffer.message().varint(1, 5);
        assert_eq!(buffer.as_slice(), b"\x08\x05");
        assert_eq!(buffer.as_slice().as_ptr(), memory);
    }

    #[test]
    fn a_buffer_moves_between_messages() {
        let mut buffer = HeapBuffer::new();
        buffer.message().varint(1, 1);
        let mut buffer = alloc::boxed::Box::new(buffer);
        buffer.message().bytes(2, &[0; 300]);
        assert_eq!(crate::Fields::new(buffer.as_slice()).count(), 2);
        assert_eq!(buffer.into_vec().len(), 305);
    }

    #[test]
    fn a_vector_keeps_its_content_after_leaks_and_panics() {
        let mut vec = alloc::vec![1, 2, 3];
        append_to(&mut vec, |mut m| core::mem::forget(m.begin(1)));
        assert_eq!(vec, [1, 2, 3]);
        let panics = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            append_to(&mut vec, |mut m| {
                m.bytes(1, &[0; 1000]);
                panic!("on purpose");
            });
        }));
        assert!(panics.is_err());
        assert_eq!(vec, [1, 2, 3]);
    }
}
