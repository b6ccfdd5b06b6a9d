//! [`ScatteredBuffer`]: a sink on the heap that never moves written bytes.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::wire::LENGTH_FIELD_SIZE;
use crate::{Delegate, Filled, Message, ScatteredWriter, Writer};

/// Length of the first slice, by default.
const FIRST_SLICE: usize = 128;
/// Largest length of a slice, by default.
const LARGEST_SLICE: usize = 128 * 1024;
/// Shorter slices cannot hold a length field.
const SHORTEST_SLICE: usize = 16;

/// List of slices on the heap, into which messages of type `M` are written.
///
/// Unlike [`HeapBuffer`](crate::HeapBuffer) it never moves written bytes, however many there are.
/// The content is a list of [slices](Self::slices), which can be written out one by one or [put
/// together](Self::to_vec). Slices double in size, by default from 128 bytes to 128 KiB
/// (`docs/spec/protozero.md` §6).
///
/// ```
/// use esatto_protozero::ScatteredBuffer;
///
/// let mut buffer = ScatteredBuffer::with_slices(16, 16);
/// buffer.message().begin(1).string(2, "more than sixteen bytes");
/// assert_eq!(buffer.slices().count(), 2);
/// assert_eq!(buffer.to_vec(), b"\x0a\x99\x80\x80\x00\x12\x17more than sixteen bytes"); // a length of 25, in four bytes
/// ```
pub struct ScatteredBuffer<M = Message<'static>> {
    writer: ScatteredWriter<Slices, M>,
}

impl ScatteredBuffer {
    /// Makes an empty buffer for untyped messages.
    ///
    /// For typed ones there is [`ScatteredBuffer::<FooWriter>::default()`](Default).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty buffer for untyped messages, whose slices grow from `first` to `largest`
    /// bytes; 16 is the least.
    #[must_use]
    pub fn with_slices(first: usize, largest: usize) -> Self {
        Self::typed_with_slices(first, largest)
    }
}

impl<M> ScatteredBuffer<M> {
    /// Makes an empty buffer whose slices grow from `first` to `largest` bytes; 16 is the least.
    #[must_use]
    pub fn typed_with_slices(first: usize, largest: usize) -> Self {
        let next = first.max(SHORTEST_SLICE);
        let slices = Slices {
            filled: Vec::new(),
            lengths: Vec::new(),
            unfinished: None,
            spare: None,
            next,
            largest: largest.max(next),
        };
        Self { writer: ScatteredWriter::typed(slices) }
    }

    /// Begins a message after the existing content.
    pub fn message(&mut self) -> M::At<'_>
    where
        M: Writer,
    {
        self.writer.message()
    }

    /// Returns the content, slice by slice. The next message begins in a new slice.
    pub fn slices(&mut self) -> impl Iterator<Item = &[u8]> {
        self.writer.flush();
        self.writer.delegate().filled.iter().map(|(bytes, used)| &bytes[..*used]).filter(|bytes| !bytes.is_empty())
    }

    /// Returns a copy of the content.
    #[must_use]
    pub fn to_vec(&mut self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.slices().map(<[u8]>::len).sum());
        self.slices().for_each(|slice| all.extend_from_slice(slice));
        all
    }

    /// Forgets the content and keeps the first slice.
    pub fn clear(&mut self) {
        self.writer.flush();
        let slices = self.writer.delegate_mut();
        if let Some((first, _)) = slices.filled.drain(..).next() {
            slices.spare = Some(first);
        }
        slices.lengths.clear();
        slices.unfinished = None;
    }

    /// Returns the number of messages that are missing because a guard was leaked, or a length
    /// exceeded [`MAX_MESSAGE_LENGTH`](crate::wire::MAX_MESSAGE_LENGTH).
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.writer.dropped()
    }
}

impl<M> Default for ScatteredBuffer<M> {
    fn default() -> Self {
        Self::typed_with_slices(FIRST_SLICE, LARGEST_SLICE)
    }
}

impl<M> fmt::Debug for ScatteredBuffer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScatteredBuffer").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

/// The slices that are not being written.
struct Slices {
    filled: Vec<(Box<[u8]>, usize)>,
    /// Slice and offset of every length that was deferred, by number.
    lengths: Vec<(usize, usize)>,
    /// Slice and offset of the message that is not finished yet.
    unfinished: Option<(usize, usize)>,
    spare: Option<Box<[u8]>>,
    next: usize,
    largest: usize,
}

impl Delegate for Slices {
    type Buffer = Box<[u8]>;

    fn acquire(&mut self, _min_len: usize) -> Option<Box<[u8]>> {
        Some(self.spare.take().unwrap_or_else(|| {
            let len = self.next;
            self.next = (len * 2).min(self.largest);
            alloc::vec![0; len].into_boxed_slice()
        }))
    }

    fn release(&mut self, buffer: Box<[u8]>, filled: Filled) {
        self.unfinished = match filled.unfinished {
            Some(0) if self.unfinished.is_some() => self.unfinished,
            begin => begin.map(|offset| (self.filled.len(), offset)),
        };
        self.filled.push((buffer, filled.used));
        if self.unfinished.is_none() {
            self.lengths.clear();
        }
    }

    fn defer_length(&mut self, offset: usize) -> Option<u32> {
        self.lengths.push((self.filled.len(), offset));
        u32::try_from(self.lengths.len() - 1).ok()
    }

    fn fill_length(&mut self, number: u32, bytes: [u8; LENGTH_FIELD_SIZE]) {
        let (slice, offset) = self.lengths[number as usize];
        self.filled[slice].0[offset..][..LENGTH_FIELD_SIZE].copy_from_slice(&bytes);
    }

    fn abandon(&mut self) {
        if let Some((slice, offset)) = self.unfinished.take() {
            self.filled.truncate(slice + 1);
            self.filled[slice].1 = offset;
        }
        self.lengths.clear();
    }
}
