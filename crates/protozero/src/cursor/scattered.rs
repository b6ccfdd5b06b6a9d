//! [`ScatteredWriter`]: a writer into buffers that safe code provides.

use ::core::fmt;
use ::core::marker::PhantomData;
use ::core::mem::MaybeUninit;
use ::core::ptr::NonNull;

use super::message::Message;
use super::stream::Stream;
use super::writer::Writer;
use super::{OpenSlots, Range, RawDelegate, Slot};
use crate::wire::LENGTH_FIELD_SIZE;

/// Source of the buffers that a [`ScatteredWriter`] fills one after the other. It also takes them
/// back.
///
/// A buffer is passed by value, so that no other code can use it meanwhile: a `Vec<u8>` or
/// `Box<[u8]>`, a `&'static mut [u8]`, a chunk of a pool that gives its bytes by [`AsMut`].
///
/// # Lengths that come later
///
/// The length of a nested message is known when it ends. If it began in a buffer that is full by
/// then, four bytes of that buffer still lack their value. Before a buffer is
/// [released](Self::release), the writer calls [`defer_length`](Self::defer_length) for each such
/// place, which holds zeros then. The delegate returns a number of its choice. With this number it
/// is told the [value](Self::fill_length) later, and puts it into the buffer if it still has it, or
/// sends it after the buffer.
///
/// # Example
///
/// Chunks of eight bytes, sent away as soon as they are full:
///
/// ```
/// use esatto_protozero::{Delegate, Filled, ScatteredWriter};
///
/// /// What goes over the wire.
/// #[derive(Debug, PartialEq)]
/// enum Event {
///     Chunk(Vec<u8>),
///     Patch { chunk: usize, offset: usize, bytes: [u8; 4] },
/// }
///
/// #[derive(Default)]
/// struct Chunks {
///     sent: usize,
///     deferred: Vec<(usize, usize)>,
///     wire: Vec<Event>,
/// }
///
/// impl Delegate for Chunks {
///     type Buffer = [u8; 8];
///
///     fn acquire(&mut self, _min_len: usize) -> Option<[u8; 8]> {
///         Some([0; 8])
///     }
///
///     fn release(&mut self, buffer: [u8; 8], filled: Filled) {
///         self.wire.push(Event::Chunk(buffer[..filled.used].to_vec()));
///         self.sent += 1;
///     }
///
///     fn defer_length(&mut self, offset: usize) -> Option<u32> {
///         self.deferred.push((self.sent, offset));
///         Some(self.deferred.len() as u32 - 1)
///     }
///
///     fn fill_length(&mut self, number: u32, bytes: [u8; 4]) {
///         let (chunk, offset) = self.deferred[number as usize];
///         self.wire.push(Event::Patch { chunk, offset, bytes });
///     }
/// }
///
/// let mut writer = ScatteredWriter::new(Chunks::default());
/// writer.message().begin(1).string(2, "a b c");
/// let wire = writer.into_delegate().wire;
/// assert_eq!(wire, [
///     Event::Chunk(b"\x0a\0\0\0\0\x12\x05a".to_vec()), // the length is zero for now
///     Event::Patch { chunk: 0, offset: 1, bytes: [0x87, 0x80, 0x80, 0] }, // 7, in four bytes
///     Event::Chunk(b" b c".to_vec()),
/// ]);
/// ```
pub trait Delegate {
    /// Type of a buffer. Its length does not change while the writer has it.
    type Buffer: AsMut<[u8]>;

    /// Provides the next buffer, of at least `min_len` bytes, which are at most the [four of a
    /// length](LENGTH_FIELD_SIZE).
    ///
    /// If it returns `None`, or a buffer that is too short, the message being written is void; see
    /// [`abandon`](Self::abandon).
    fn acquire(&mut self, min_len: usize) -> Option<Self::Buffer>;

    /// Takes a buffer back.
    fn release(&mut self, buffer: Self::Buffer, filled: Filled);

    /// The four bytes at `offset` of the buffer that is released next are a length that is not
    /// known yet. Returns the number for [`fill_length`](Self::fill_length), or `None` if the
    /// delegate does not need the value.
    ///
    /// Called for the outermost message first.
    fn defer_length(&mut self, offset: usize) -> Option<u32>;

    /// A length is known: these four bytes belong to the place of that
    /// [`defer_length`](Self::defer_length).
    fn fill_length(&mut self, number: u32, bytes: [u8; LENGTH_FIELD_SIZE]);

    /// The message that was [unfinished](Filled::unfinished) in the buffers released last will
    /// never be finished: its parts are void.
    ///
    /// Bytes that were released before it began are whole.
    fn abandon(&mut self) {}
}

/// Filled part of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filled {
    /// Bytes written, from the start of the buffer.
    pub used: usize,
    /// Offset of a message that continues in the next buffer; 0 if it began in an earlier one.
    /// `None` if the buffer ends with a whole message.
    pub unfinished: Option<usize>,
}

/// Writes messages of type `M` into the buffers of a [`Delegate`], over as many as necessary.
///
/// [`flush`](Self::flush), or dropping the writer, gives the last buffer to the delegate.
pub struct ScatteredWriter<D: Delegate, M = Message<'static>> {
    stream: Stream,
    delegate: Option<D>,
    buffer: Option<D::Buffer>,
    link: Link<D>,
    scratch: [MaybeUninit<u8>; SCRATCH_SIZE],
    /// Bytes of the buffer that are filled with whole messages.
    mark: usize,
    dropped: usize,
    message: PhantomData<fn() -> M>,
}

// SAFETY: the raw pointers lead into the writer itself, or into the bytes of its buffer, and are
// made again for each message.
unsafe impl<D: Delegate + Send, M> Send for ScatteredWriter<D, M> where D::Buffer: Send {}
// SAFETY: through `&self` only the delegate and counts can be reached.
unsafe impl<D: Delegate + Sync, M> Sync for ScatteredWriter<D, M> where D::Buffer: Sync {}

impl<D: Delegate> ScatteredWriter<D> {
    /// Makes a writer of untyped messages.
    #[must_use]
    pub fn new(delegate: D) -> Self {
        Self::typed(delegate)
    }
}

impl<D: Delegate, M> ScatteredWriter<D, M> {
    /// Makes a writer: `ScatteredWriter::<_, FooWriter>::typed(delegate)`.
    #[must_use]
    pub fn typed(delegate: D) -> Self {
        // SAFETY: this delegate is not called: the stream gets the right one before it is used.
        let stream = unsafe { Stream::new(NonNull::<Link<D>>::dangling()) };
        let link = Link {
            delegate: NonNull::dangling(),
            buffer: NonNull::dangling(),
            begin: NonNull::dangling(),
            message_begin: 0,
            skipped: 0,
            is_split: false,
            is_void: false,
            scratch: NonNull::dangling(),
        };
        let scratch = [const { MaybeUninit::uninit() }; SCRATCH_SIZE];
        Self {
            stream,
            delegate: Some(delegate),
            buffer: None,
            link,
            scratch,
            mark: 0,
            dropped: 0,
            message: PhantomData,
        }
    }

    /// Begins a message.
    ///
    /// A message that was leaked or could not be finished is settled first.
    #[inline]
    pub fn message(&mut self) -> M::At<'_>
    where
        M: Writer,
    {
        self.settle();
        self.link.message_begin = self.mark;
        self.link.skipped = self.mark;
        self.link.is_split = false;
        // The writer may have moved since the last message: all pointers into it are made again.
        self.link.delegate = NonNull::from(self.delegate.as_mut().expect(HAS_DELEGATE));
        self.link.buffer = NonNull::from(&mut self.buffer);
        self.link.scratch = NonNull::from(&mut self.scratch);
        // SAFETY: just made, of a field that is not touched otherwise while the message borrows the
        // writer.
        let range = match unsafe { self.link.buffer.as_mut() } {
            None => Range::EMPTY,
            Some(buffer) => {
                let bytes = buffer.as_mut();
                self.link.begin = NonNull::from(&mut *bytes).cast();
                let len = bytes.len().saturating_sub(self.mark);
                // SAFETY: not beyond the end of the bytes.
                Range { begin: unsafe { self.link.begin.add(bytes.len() - len) }, len }
            }
        };
        // SAFETY: the bytes of the buffer, which stays in place and is not accessed while the
        // message borrows the writer.
        unsafe { self.stream.reset(range) };
        // SAFETY: no other code accesses the link while the message borrows the writer.
        unsafe { self.stream.attach(NonNull::from(&mut self.link)) };
        self.stream.root().into()
    }

    /// Gives the buffer that is being filled to the delegate. The next message begins in another
    /// buffer.
    pub fn flush(&mut self) {
        self.settle();
        if let Some(buffer) = self.buffer.take() {
            let filled = Filled { used: self.mark, unfinished: None };
            (self.mark, self.link.skipped) = (0, 0);
            self.delegate_mut().release(buffer, filled);
        }
    }

    /// Returns the delegate.
    pub fn delegate(&self) -> &D {
        self.delegate.as_ref().expect(HAS_DELEGATE)
    }

    /// Returns the delegate. It does not have the buffer that is being filled until
    /// [`flush`](Self::flush).
    pub fn delegate_mut(&mut self) -> &mut D {
        self.delegate.as_mut().expect(HAS_DELEGATE)
    }

    /// Flushes, and returns the delegate.
    pub fn into_delegate(mut self) -> D {
        self.flush();
        self.delegate.take().expect(HAS_DELEGATE)
    }

    /// Returns the number of messages that are void: a guard was leaked, a length exceeded
    /// [`MAX_MESSAGE_LENGTH`](crate::wire::MAX_MESSAGE_LENGTH), or there was no buffer.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.dropped + usize::from(self.is_void())
    }

    fn is_void(&self) -> bool {
        self.link.is_void || self.stream.is_poisoned()
    }

    /// Counts the bytes of a message after it, or takes them back.
    #[inline]
    fn settle(&mut self) {
        if self.is_void() {
            return self.settle_void();
        }
        self.mark = self.link.skipped + self.stream.used();
        // SAFETY: an empty range cannot be written to; no message is open.
        unsafe { self.stream.reset(Range::EMPTY) };
        self.link.skipped = self.mark;
    }

    #[cold]
    fn settle_void(&mut self) {
        self.dropped += 1;
        self.stream.clear_poison();
        // SAFETY: as in `settle`.
        unsafe { self.stream.reset(Range::EMPTY) };
        self.mark = if self.link.is_split { 0 } else { self.link.message_begin };
        self.link.skipped = self.mark;
        self.link.is_void = false;
        if core::mem::replace(&mut self.link.is_split, false) {
            self.delegate_mut().abandon();
        }
    }
}

const HAS_DELEGATE: &str = "only `into_delegate`, which ends the writer, takes the delegate";

impl<D: Delegate, M> Drop for ScatteredWriter<D, M> {
    fn drop(&mut self) {
        if self.delegate.is_some() {
            self.flush();
        }
    }
}

impl<D: Delegate, M> fmt::Debug for ScatteredWriter<D, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScatteredWriter").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

/// Delegate of the stream. It holds pointers to the delegate, the buffer and the scratch memory, so
/// that a reference to it is no reference to bytes that are being written.
struct Link<D: Delegate> {
    delegate: NonNull<D>,
    buffer: NonNull<Option<D::Buffer>>,
    /// First byte of the buffer.
    begin: NonNull<u8>,
    /// Offset in the buffer at which the message began, if it is not split.
    message_begin: usize,
    /// Bytes of the buffer before the range that the stream has.
    skipped: usize,
    /// The message began in an earlier buffer.
    is_split: bool,
    /// There is no buffer for the rest of the message.
    is_void: bool,
    scratch: NonNull<[MaybeUninit<u8>; SCRATCH_SIZE]>,
}

const SCRATCH_SIZE: usize = 64;

impl<D: Delegate> Link<D> {
    fn scratch(&mut self) -> Range {
        self.is_void = true;
        Range { begin: self.scratch.cast(), len: SCRATCH_SIZE }
    }
}

// SAFETY: ranges are bytes of a buffer that the writer has until it is released, where no other
// code reaches them, or scratch memory. When a buffer is released, no slot is left in place.
unsafe impl<D: Delegate> RawDelegate for Link<D> {
    fn next_range(&mut self, used: usize, mut open: OpenSlots<'_>, min_len: usize) -> Range {
        if self.is_void {
            open.redirect(|_| Slot::Abandoned);
            return self.scratch();
        }
        // SAFETY: set by `message`, and the writer is borrowed by the message.
        let delegate = unsafe { self.delegate.as_mut() };
        let begin = self.begin;
        open.redirect(|slot| {
            // SAFETY: a slot in place is four bytes of the buffer.
            unsafe { slot.cast::<[u8; LENGTH_FIELD_SIZE]>().write([0; LENGTH_FIELD_SIZE]) };
            let offset = slot.addr().get() - begin.addr().get();
            delegate.defer_length(offset).map_or(Slot::Abandoned, Slot::Patch)
        });
        // SAFETY: as above. No pointer into the buffer is used from here on.
        let buffer = unsafe { self.buffer.as_mut() };
        if let Some(full) = buffer.take() {
            let used = self.skipped + used;
            let unfinished = match self.is_split {
                true => Some(0),
                false => Some(self.message_begin).filter(|&begin| begin < used),
            };
            self.is_split = unfinished.is_some();
            (self.skipped, self.message_begin) = (0, 0);
            delegate.release(full, Filled { used, unfinished });
        }
        let Some(next) = delegate.acquire(min_len) else { return self.scratch() };
        let bytes = buffer.insert(next).as_mut();
        if bytes.len() < min_len {
            return self.scratch();
        }
        self.begin = NonNull::from(&mut *bytes).cast();
        Range { begin: self.begin, len: bytes.len() }
    }

    fn fill_patch(&mut self, patch: u32, value: [u8; LENGTH_FIELD_SIZE]) {
        // SAFETY: as in `next_range`.
        unsafe { self.delegate.as_mut() }.fill_length(patch, value);
    }
}
