//! Sinks of fixed size.

use ::core::fmt;
use ::core::marker::PhantomData;
use ::core::mem::MaybeUninit;
use ::core::ptr::NonNull;

use super::message::Message;
use super::stream::Stream;
use super::writer::Writer;
use super::{OpenSlots, Range, RawDelegate, Slot};

/// Writes messages of type `M` into memory that the caller lends. Does not allocate.
///
/// It takes several messages, one after the other. A message that does not fit is removed as a
/// whole and [counted](Self::dropped). Those before it stay.
///
/// ```
/// use esatto_protozero::SliceBuffer;
///
/// let mut memory = [0; 5];
/// let mut buffer = SliceBuffer::new(&mut memory);
/// buffer.message().varint(1, 300);
/// buffer.message().string(2, "too long");
/// assert_eq!(buffer.dropped(), 1);
/// assert_eq!(buffer.into_slice(), b"\x08\xac\x02");
/// ```
pub struct SliceBuffer<'m, M = Message<'static>> {
    fixed: Fixed,
    memory: NonNull<u8>,
    capacity: usize,
    lent: PhantomData<&'m mut [MaybeUninit<u8>]>,
    message: PhantomData<fn() -> M>,
}

// SAFETY: as for the `&mut [MaybeUninit<u8>]` that it is.
unsafe impl<M> Send for SliceBuffer<'_, M> {}
// SAFETY: through `&self` memory is only read.
unsafe impl<M> Sync for SliceBuffer<'_, M> {}

impl<'m> SliceBuffer<'m> {
    /// Takes memory for untyped messages.
    #[must_use]
    pub fn new(memory: &'m mut [u8]) -> Self {
        Self::typed(memory)
    }

    /// Takes memory that need not be initialised, for untyped messages.
    #[must_use]
    pub fn uninit(memory: &'m mut [MaybeUninit<u8>]) -> Self {
        Self::typed_uninit(memory)
    }
}

impl<'m, M> SliceBuffer<'m, M> {
    /// Takes memory: `SliceBuffer::<FooWriter>::typed(&mut memory)`.
    #[must_use]
    pub fn typed(memory: &'m mut [u8]) -> Self {
        // Initialised bytes stay initialised: only initialised bytes are moved in it.
        Self::over(NonNull::from(&mut *memory).cast(), memory.len())
    }

    /// Takes memory that need not be initialised.
    #[must_use]
    pub fn typed_uninit(memory: &'m mut [MaybeUninit<u8>]) -> Self {
        Self::over(NonNull::from(&mut *memory).cast(), memory.len())
    }

    fn over(memory: NonNull<u8>, capacity: usize) -> Self {
        Self { fixed: Fixed::new(), memory, capacity, lent: PhantomData, message: PhantomData }
    }

    /// Begins a message after the existing content.
    #[inline]
    pub fn message(&mut self) -> M::At<'_>
    where
        M: Writer,
    {
        // SAFETY: the memory is lent to this buffer alone.
        unsafe { self.fixed.message(self.memory, self.capacity) }.into()
    }

    /// Returns the content.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: that many bytes are initialised (see `Fixed::len`), and nothing writes while
        // `self` is borrowed.
        unsafe { ::core::slice::from_raw_parts(self.memory.as_ptr(), self.len()) }
    }

    /// Returns the content, for as long as the memory is lent.
    #[must_use]
    pub fn into_slice(self) -> &'m mut [u8] {
        // SAFETY: as in `as_slice`; this buffer is given up.
        unsafe { ::core::slice::from_raw_parts_mut(self.memory.as_ptr(), self.len()) }
    }
}

/// Writes messages of type `M` into `N` bytes of its own. Does not allocate.
///
/// As [`SliceBuffer`], but it can be kept and moved.
///
/// ```
/// use esatto_protozero::StaticBuffer;
///
/// let mut buffer = StaticBuffer::<64>::new();
/// buffer.message().begin(1).string(2, "nested");
/// assert_eq!(buffer.as_slice(), b"\x0a\x08\x12\x06nested");
/// ```
pub struct StaticBuffer<const N: usize, M = Message<'static>> {
    fixed: Fixed,
    memory: [MaybeUninit<u8>; N],
    message: PhantomData<fn() -> M>,
}

// SAFETY: the buffer owns its memory; the raw pointers are never shared outside of `&self` / `&mut
// self`.
unsafe impl<const N: usize, M> Send for StaticBuffer<N, M> {}
// SAFETY: through `&self` memory is only read.
unsafe impl<const N: usize, M> Sync for StaticBuffer<N, M> {}

impl<const N: usize> StaticBuffer<N> {
    /// Makes an empty buffer for untyped messages.
    ///
    /// For typed ones there is [`StaticBuffer::<N, FooWriter>::default()`](Default).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<const N: usize, M> StaticBuffer<N, M> {
    /// Begins a message after the existing content.
    #[inline]
    pub fn message(&mut self) -> M::At<'_>
    where
        M: Writer,
    {
        let memory = NonNull::from(&mut self.memory).cast();
        // SAFETY: the memory is this buffer's own, which is borrowed for as long as the message is
        // open.
        unsafe { self.fixed.message(memory, N) }.into()
    }

    /// Returns the content.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: that many bytes are initialised (see `Fixed::len`), and nothing writes while
        // `self` is borrowed.
        unsafe { ::core::slice::from_raw_parts(self.memory.as_ptr().cast(), self.len()) }
    }
}

impl<const N: usize, M> Default for StaticBuffer<N, M> {
    fn default() -> Self {
        Self { fixed: Fixed::new(), memory: [const { MaybeUninit::uninit() }; N], message: PhantomData }
    }
}

/// Common part of both buffers.
macro_rules! fixed_buffer {
    ([$($generics:tt)*] $type:ty, $name:literal) => {
        impl<$($generics)*> $type {
            /// Returns the number of bytes written.
            #[inline]
            #[must_use]
            pub fn len(&self) -> usize {
                self.fixed.len()
            }

            /// Returns true if nothing was written.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Forgets the content.
            #[inline]
            pub fn clear(&mut self) {
                self.fixed.clear();
            }

            /// Returns the number of messages that were removed because they did not fit, or
            /// because a guard was leaked.
            #[must_use]
            pub fn dropped(&self) -> usize {
                self.fixed.dropped + usize::from(self.fixed.is_void())
            }
        }

        impl<$($generics)*> AsRef<[u8]> for $type {
            fn as_ref(&self) -> &[u8] {
                self.as_slice()
            }
        }

        impl<$($generics)*> fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct($name).field("len", &self.len()).field("dropped", &self.dropped()).finish()
            }
        }
    };
}

fixed_buffer! { [M] SliceBuffer<'_, M>, "SliceBuffer" }
fixed_buffer! { [const N: usize, M] StaticBuffer<N, M>, "StaticBuffer" }

/// Error of [`encode_into`]: the message did not fit into the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferFull;

impl fmt::Display for BufferFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the message does not fit into the buffer")
    }
}

impl ::core::error::Error for BufferFull {}

/// Writes one message into the caller's memory, and returns its bytes. Does not allocate.
///
/// ```
/// let mut memory = [const { core::mem::MaybeUninit::uninit() }; 16];
/// let written = esatto_protozero::encode_into(&mut memory, |mut message| message.varint(1, 300)).unwrap();
/// assert_eq!(written, b"\x08\xac\x02");
/// ```
///
/// A generated writer is made of the message: `|message| { FooWriter::from(message).bar(300); }`.
///
/// # Errors
///
/// If the message does not fit or leaked a nested message.
#[inline]
pub fn encode_into(memory: &mut [MaybeUninit<u8>], write: impl FnOnce(Message<'_>)) -> Result<&mut [u8], BufferFull> {
    let mut buffer = SliceBuffer::uninit(memory);
    write(buffer.message());
    if buffer.fixed.is_void() { Err(BufferFull) } else { Ok(buffer.into_slice()) }
}

/// Stream over memory that another value owns.
#[derive(Debug)]
struct Fixed {
    stream: Stream,
    overflow: Overflow,
    /// Length of the content when the last root message began.
    mark: usize,
    dropped: usize,
}

impl Fixed {
    #[inline]
    fn new() -> Self {
        // SAFETY: this delegate is not called: the stream gets the right one before it is used.
        let stream = unsafe { Stream::new(NonNull::<Overflow>::dangling()) };
        let overflow = Overflow { happened: false, scratch: [const { MaybeUninit::uninit() }; SCRATCH_SIZE] };
        Self { stream, overflow, mark: 0, dropped: 0 }
    }

    /// Begins a message after the existing content.
    ///
    /// # Safety
    ///
    /// `memory` is valid for `capacity` bytes, is not used otherwise while the message is open, and
    /// holds the bytes of earlier messages.
    #[inline]
    unsafe fn message(&mut self, memory: NonNull<u8>, capacity: usize) -> Message<'_> {
        if self.is_void() {
            self.settle();
        }
        self.mark = self.stream.position();
        // SAFETY: `mark` is the length of what was written, so at most the capacity.
        let begin = unsafe { memory.add(self.mark) };
        // SAFETY: the caller's promise; no message is open.
        unsafe { self.stream.reset(Range { begin, len: capacity - self.mark }) };
        // SAFETY: `self` is borrowed while the message is open, and the delegate is set again
        // before the next one.
        unsafe { self.stream.attach(NonNull::from(&mut self.overflow)) };
        self.stream.root()
    }

    #[inline]
    fn is_void(&self) -> bool {
        self.overflow.happened || self.stream.is_poisoned()
    }

    /// Bytes written: those of messages that did not end properly are cut off, so all are
    /// initialised.
    #[inline]
    fn len(&self) -> usize {
        if self.is_void() { self.mark } else { self.stream.position() }
    }

    #[cold]
    fn settle(&mut self) {
        self.dropped += 1;
        self.rewind(self.mark);
    }

    #[inline]
    fn clear(&mut self) {
        self.rewind(0);
    }

    #[inline]
    fn rewind(&mut self, len: usize) {
        self.overflow.happened = false;
        self.stream.clear_poison();
        // SAFETY: an empty range cannot be written to; no message is open.
        unsafe { self.stream.reset(Range::EMPTY) };
        self.stream.set_position(len);
    }
}

/// Delegate for bytes that do not fit.
#[derive(Debug)]
struct Overflow {
    happened: bool,
    scratch: [MaybeUninit<u8>; SCRATCH_SIZE],
}

const SCRATCH_SIZE: usize = 64;

// SAFETY: always returns its own scratch area, and abandons all slots when it does.
unsafe impl RawDelegate for Overflow {
    fn next_range(&mut self, _used: usize, mut open: OpenSlots<'_>, _min_len: usize) -> Range {
        self.happened = true;
        open.redirect(|_| Slot::Abandoned);
        Range { begin: NonNull::from(&mut self.scratch).cast(), len: SCRATCH_SIZE }
    }

    fn fill_patch(&mut self, _patch: u32, _value: [u8; 4]) {
        unreachable!("no slot is ever redirected to a patch");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_does_not_fit_is_an_error() {
        let mut memory = [const { MaybeUninit::uninit() }; 8];
        assert_eq!(encode_into(&mut memory, |mut m| m.bytes(1, &[1; 6])).unwrap().len(), 8);
        assert_eq!(encode_into(&mut memory, |mut m| m.bytes(1, &[1; 7])), Err(BufferFull));
        assert_eq!(
            encode_into(&mut memory, |mut m| {
                let mut nested = m.begin(1);
                nested.bytes(1, &[1; 500]);
            }),
            Err(BufferFull)
        );
        assert_eq!(encode_into(&mut memory, |mut m| ::core::mem::forget(m.begin(1))), Err(BufferFull));
        assert_eq!(encode_into(&mut [], |_| ()).unwrap(), b"");
    }

    #[test]
    fn messages_that_fit_stay_when_another_does_not() {
        let mut memory = [0; 10];
        let mut buffer = SliceBuffer::new(&mut memory);
        buffer.message().varint(1, 1);
        buffer.message().begin(2).bytes(3, &[0; 100]);
        assert_eq!((buffer.len(), buffer.dropped()), (2, 1));
        buffer.message().bytes(4, b"123456");
        assert_eq!((buffer.as_slice(), buffer.dropped()), (&b"\x08\x01\x22\x06123456"[..], 1));
        buffer.message().raw(b"\x08");
        assert_eq!((buffer.len(), buffer.dropped()), (10, 2));
        buffer.clear();
        assert!(buffer.is_empty());
        buffer.message().varint(1, 1);
        assert_eq!(buffer.into_slice(), b"\x08\x01");
    }

    #[test]
    fn a_static_buffer_moves_between_messages() {
        let mut buffer = StaticBuffer::<32>::new();
        buffer.message().varint(1, 1);
        let mut moved = [buffer];
        moved[0].message().begin(2).varint(3, 3);
        assert_eq!(moved[0].as_slice(), b"\x08\x01\x12\x02\x18\x03");
    }
}
