//! Buffers brought by safe code.

use ::core::fmt;
use ::core::marker::PhantomData;
use ::core::mem::MaybeUninit;
use ::core::ptr::NonNull;

use super::{OpenSlots, Range, RawDelegate, Slot, Stream};
use crate::wire::LENGTH_FIELD_SIZE;
use crate::{Message, Writer};

/// Brings the buffers that a [`ScatteredWriter`] writes into, one after the other, and takes them back filled.
///
/// A buffer is handed over by value, so that nobody else can touch it meanwhile: a `Vec<u8>` or `Box<[u8]>`, a `&'static mut [u8]`, a chunk of
/// a pool that gives its bytes by [`AsMut`].
///
/// # Lengths that come later
///
/// The length of a nested message is known when it ends. If it began in a buffer that is full by then, four bytes of that buffer
/// are still to be filled in. Before a buffer is [released](Self::release) the writer calls
/// [`defer_length`](Self::defer_length) for each such place, which holds zeros then; the delegate answers with a number of its choice, under which it is told the
/// [value](Self::fill_length) later: to put it into the buffer if that is still at hand, or to send it after the buffer.
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
    /// A buffer; its length does not change while the writer has it.
    type Buffer: AsMut<[u8]>;

    /// Brings the next buffer, of at least `min_len` bytes, which are never more than the [four of a length](LENGTH_FIELD_SIZE).
    ///
    /// `None` if there is none, and likewise a buffer that is too short: the message being written is void then, see
    /// [`abandon`](Self::abandon).
    fn acquire(&mut self, min_len: usize) -> Option<Self::Buffer>;

    /// Takes a buffer back.
    fn release(&mut self, buffer: Self::Buffer, filled: Filled);

    /// The four bytes at `offset` of the buffer that is released next are a length that is not known yet: returns the number to tell it
    /// under, or `None` if the delegate does not want to know.
    ///
    /// Called for the outermost message first.
    fn defer_length(&mut self, offset: usize) -> Option<u32>;

    /// A length is known: these four bytes belong where [`defer_length`](Self::defer_length) said.
    fn fill_length(&mut self, number: u32, bytes: [u8; LENGTH_FIELD_SIZE]);

    /// The message that was [unfinished](Filled::unfinished) in the buffers released last will never be finished: its parts are void.
    ///
    /// What was released before it began is whole.
    fn abandon(&mut self) {}
}

/// How far a buffer is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filled {
    /// Bytes written, from the start of the buffer.
    pub used: usize,
    /// Where the bytes of a message begin that goes on in the next buffer: 0 if it has begun in an earlier one. `None` if the buffer
    /// ends with a whole message.
    pub unfinished: Option<usize>,
}

/// Writes messages of type `M` into the buffers of a [`Delegate`], over as many as it takes.
///
/// The last buffer goes to the delegate by [`flush`](Self::flush), or when the writer is dropped.
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

// SAFETY: the raw pointers lead into the writer itself, or what its buffer gives, and are made anew for each message.
unsafe impl<D: Delegate + Send, M> Send for ScatteredWriter<D, M> where D::Buffer: Send {}
// SAFETY: through `&self` nothing is reached but the delegate and counts.
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
        // SAFETY: a delegate that is not called: the stream is told the right one before it is used.
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
    /// One that was leaked or could not be finished is settled first.
    #[inline]
    pub fn message(&mut self) -> M::At<'_>
    where
        M: Writer,
    {
        self.settle();
        self.link.message_begin = self.mark;
        self.link.skipped = self.mark;
        self.link.is_split = false;
        // The writer may have moved since the last message: everything that points into it is made anew.
        self.link.delegate = NonNull::from(self.delegate.as_mut().expect(HAS_DELEGATE));
        self.link.buffer = NonNull::from(&mut self.buffer);
        self.link.scratch = NonNull::from(&mut self.scratch);
        // SAFETY: just made, of a field that is not touched otherwise while the message borrows the writer.
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
        // SAFETY: the bytes of the buffer, which stays where it is and is touched by nobody while the message borrows the writer.
        unsafe { self.stream.reset(range) };
        // SAFETY: the link is touched by nobody else while the message borrows the writer.
        unsafe { self.stream.attach(NonNull::from(&mut self.link)) };
        self.stream.root().into()
    }

    /// Gives the buffer that is being filled to the delegate. The next message begins in another.
    pub fn flush(&mut self) {
        self.settle();
        if let Some(buffer) = self.buffer.take() {
            let filled = Filled { used: self.mark, unfinished: None };
            (self.mark, self.link.skipped) = (0, 0);
            self.delegate_mut().release(buffer, filled);
        }
    }

    /// The delegate.
    pub fn delegate(&self) -> &D {
        self.delegate.as_ref().expect(HAS_DELEGATE)
    }

    /// The delegate. What is being filled is in neither of its hands until [`flush`](Self::flush).
    pub fn delegate_mut(&mut self) -> &mut D {
        self.delegate.as_mut().expect(HAS_DELEGATE)
    }

    /// Flushes, and returns the delegate.
    pub fn into_delegate(mut self) -> D {
        self.flush();
        self.delegate.take().expect(HAS_DELEGATE)
    }

    /// Number of messages that are void: a guard was leaked, a length exceeded
    /// [`MAX_MESSAGE_LENGTH`](crate::wire::MAX_MESSAGE_LENGTH), or there was no buffer.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.dropped + usize::from(self.is_void())
    }

    fn is_void(&self) -> bool {
        self.link.is_void || self.stream.is_poisoned()
    }

    /// After a message: counts what it wrote, or takes it back.
    #[inline]
    fn settle(&mut self) {
        if self.is_void() {
            return self.settle_void();
        }
        self.mark = self.link.skipped + self.stream.used();
        // SAFETY: nothing can be written to no bytes; no message is open.
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

/// What the stream calls. It holds pointers to the delegate, the buffer and the scratch memory, instead of them, so that a reference to
/// it is not one to bytes that are being written.
struct Link<D: Delegate> {
    delegate: NonNull<D>,
    buffer: NonNull<Option<D::Buffer>>,
    /// First byte of the buffer.
    begin: NonNull<u8>,
    /// Where the message began in the buffer, if it is not split.
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

// SAFETY: ranges are bytes of a buffer that the writer has until it is released, from where nobody else reaches them, or scratch. When a
// buffer is released no slot is left in place.
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
