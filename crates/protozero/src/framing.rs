//! [`FrameReader`]: reads whole messages from a stream that arrives in pieces
//! (`docs/spec/protozero.md` §13).
//!
//! A stream of messages is itself a message: one length-delimited field after the other, as in a
//! trace file (`repeated TracePacket packet = 1`). Sockets and pipes cut it anywhere. A
//! [`FrameReader`] takes the pieces and returns whole messages. It keeps only the part of a message
//! that has arrived so far:
//!
//! ```
//! use esatto_protozero::framing::{FrameReader, FramingError};
//!
//! let mut reader = FrameReader::new();
//! let mut messages = Vec::new();
//! for piece in [&b"\x0a\x05he"[..], b"llo\x0a\x05wor", b"ld\x0a"] {
//!     let mut frames = reader.feed(piece);
//!     while let Some(frame) = frames.next_frame()? {
//!         messages.push(String::from_utf8_lossy(frame.bytes).into_owned());
//!     }
//! }
//! assert_eq!(messages, ["hello", "world"]);
//! assert_eq!(reader.unread(), 1, "the stream has ended inside a message");
//! # Ok::<(), FramingError>(())
//! ```
//!
//! Messages that lie within one piece are slices of that piece. Only messages that cross a boundary
//! are copied, once.
//!
//! After a malformed message there is no way to find the next one, so an error is final.

use alloc::vec::Vec;
use core::fmt;

use crate::wire::{self, MAX_MESSAGE_LENGTH, MAX_VARINT_SIZE, WireType};

/// Largest message that a [`FrameReader`] accepts by default: 64 MiB.
pub const MAX_FRAME_SIZE: usize = 64 << 20;

/// Unit of the buffer's size. Without it, a growing stream of small pieces would move the buffer
/// all the time.
const GROWTH_STEP: usize = 128 << 10;

/// Message of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Number of the field that contains it.
    pub id: u32,
    /// Its encoding.
    pub bytes: &'a [u8],
}

/// Reason why a stream cannot be read any further. Offsets count from the start of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FramingError {
    /// A field that is not length-delimited.
    Tag {
        /// Offset of the field.
        offset: u64,
        /// Tag of the field.
        tag: u64,
    },
    /// A tag or a length of more than ten bytes.
    Varint {
        /// Offset of the field.
        offset: u64,
    },
    /// A message that is too long.
    TooLong {
        /// Offset of the field.
        offset: u64,
        /// The length of the message in bytes.
        len: u64,
        /// Largest length that is accepted.
        max: usize,
    },
    /// The caller has read too little, so that more bytes would have to be kept than the bound
    /// allows; see [`FrameReader::with_max`].
    Unread {
        /// Offset of the first unread field.
        offset: u64,
        /// Number of bytes that would have to be kept.
        len: usize,
    },
}

impl fmt::Display for FramingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag { offset, tag } => {
                write!(f, "expected a message at byte {offset} of the stream, found a field with tag {tag}")
            }
            Self::Varint { offset } => write!(f, "malformed tag or length at byte {offset} of the stream"),
            Self::TooLong { offset, len, max } => {
                write!(f, "a message of {len} bytes at byte {offset} of the stream; at most {max} are taken")
            }
            Self::Unread { offset, len } => {
                write!(f, "{len} bytes were fed and not read, from byte {offset} of the stream")
            }
        }
    }
}

impl core::error::Error for FramingError {}

/// Reader of a stream of messages.
#[derive(Clone, Debug)]
pub struct FrameReader {
    /// Beginning of a message, or messages that were not read.
    buffer: Vec<u8>,
    /// Number of bytes of the buffer that have been read.
    read: usize,
    /// Offset of the unread part in the stream.
    offset: u64,
    max: usize,
    error: Option<FramingError>,
}

impl Default for FrameReader {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameReader {
    /// Makes a reader for the beginning of a stream. It does not allocate until a message comes in
    /// pieces.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_max(MAX_FRAME_SIZE)
    }

    /// Makes a reader that accepts messages of up to `max` bytes, at most [`MAX_MESSAGE_LENGTH`].
    /// It keeps at most twice as much, or 128 KiB if that is more.
    #[must_use]
    pub const fn with_max(max: usize) -> Self {
        let max = if max < MAX_MESSAGE_LENGTH { max } else { MAX_MESSAGE_LENGTH };
        Self { buffer: Vec::new(), read: 0, offset: 0, max, error: None }
    }

    /// Takes the next piece of the stream, of any length.
    ///
    /// Bytes that are not read from the result are copied and kept for the next call. After an
    /// error all input is ignored.
    pub fn feed<'r, 's>(&'r mut self, piece: &'s [u8]) -> Frames<'r, 's> {
        Frames { reader: self, piece }
    }

    /// Returns the number of bytes that are kept. If it is not 0 at the end of the stream, the
    /// stream has ended inside a message.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.buffer.len() - self.read
    }

    /// Returns the error of the stream.
    #[must_use]
    pub const fn error(&self) -> Option<FramingError> {
        self.error
    }

    /// Adds bytes to the buffer, without allocating for bytes that were only announced.
    fn keep(&mut self, bytes: &[u8]) {
        if self.buffer.capacity() - self.buffer.len() < bytes.len() {
            self.buffer.drain(..self.read);
            self.read = 0;
            self.buffer.reserve(bytes.len().next_multiple_of(GROWTH_STEP));
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Counts a message as read and returns the place of its bytes, counted from the same point as
    /// `start`.
    fn take(&mut self, start: usize, header: Header) -> core::ops::Range<usize> {
        let end = start + header.size + header.len;
        self.offset += (header.size + header.len) as u64;
        start + header.size..end
    }

    fn fail(&mut self, error: FramingError) -> FramingError {
        self.error = Some(error);
        self.buffer = Vec::new();
        self.read = 0;
        error
    }
}

/// Iterator over the messages that one piece of the stream completes.
#[derive(Debug)]
pub struct Frames<'r, 's> {
    reader: &'r mut FrameReader,
    /// Bytes that are neither read nor kept.
    piece: &'s [u8],
}

impl Frames<'_, '_> {
    /// Returns the next message, or `None` if it needs more input.
    ///
    /// # Errors
    ///
    /// If the stream continues with something that is not a message, or with a message that is too
    /// long. The error stays.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FramingError> {
        if let Some(error) = self.reader.error {
            return Err(error);
        }
        match self.step() {
            Ok(None) => Ok(None),
            Ok(Some(Found::Piece { id, bytes })) => Ok(Some(Frame { id, bytes })),
            Ok(Some(Found::Buffer { id, place })) => Ok(Some(Frame { id, bytes: &self.reader.buffer[place] })),
            Err(error) => Err(self.reader.fail(error)),
        }
    }
}

enum Found<'s> {
    Piece { id: u32, bytes: &'s [u8] },
    Buffer { id: u32, place: core::ops::Range<usize> },
}

impl<'s> Frames<'_, 's> {
    fn step(&mut self) -> Result<Option<Found<'s>>, FramingError> {
        let reader = &mut *self.reader;
        if reader.unread() == 0 {
            reader.buffer.clear();
            reader.read = 0;
            return match Header::read(self.piece, reader.offset, reader.max)? {
                Some(header) if header.len <= self.piece.len() - header.size => {
                    let place = reader.take(0, header);
                    let (end, piece) = (place.end, self.piece);
                    self.piece = &piece[end..];
                    Ok(Some(Found::Piece { id: header.id, bytes: &piece[place] }))
                }
                _ => {
                    reader.keep(core::mem::take(&mut self.piece));
                    Ok(None)
                }
            };
        }
        loop {
            let kept = &reader.buffer[reader.read..];
            let header = Header::read(kept, reader.offset, reader.max)?;
            // The header is taken byte by byte, because the input may end after any byte.
            let missing = header.as_ref().map_or(1, |header| (header.size + header.len).saturating_sub(kept.len()));
            if let Some(header) = header.filter(|_| missing == 0) {
                let place = reader.take(reader.read, header);
                reader.read = place.end;
                return Ok(Some(Found::Buffer { id: header.id, place }));
            }
            if self.piece.is_empty() {
                return Ok(None);
            }
            let (next, piece) = self.piece.split_at(missing.min(self.piece.len()));
            reader.keep(next);
            self.piece = piece;
        }
    }
}

/// Keeps the bytes that were not read.
impl Drop for Frames<'_, '_> {
    fn drop(&mut self) {
        if self.piece.is_empty() || self.reader.error.is_some() {
            return;
        }
        let len = self.reader.unread() + self.piece.len();
        if len > (2 * self.reader.max).max(GROWTH_STEP) {
            self.reader.fail(FramingError::Unread { offset: self.reader.offset, len });
        } else {
            self.reader.keep(self.piece);
        }
    }
}

/// Header before the bytes of a message.
#[derive(Clone, Copy)]
struct Header {
    id: u32,
    /// Bytes of the tag and the length.
    size: usize,
    len: usize,
}

impl Header {
    /// Returns the header at the start of `input`, or `None` if it is not complete.
    fn read(input: &[u8], offset: u64, max: usize) -> Result<Option<Self>, FramingError> {
        let varint = |input: &[u8]| match wire::decode_varint(input) {
            None if input.len() >= MAX_VARINT_SIZE => Err(FramingError::Varint { offset }),
            read => Ok(read),
        };
        let Some((tag, tag_size)) = varint(input)? else { return Ok(None) };
        let id = match u32::try_from(tag >> 3) {
            Ok(id @ 1..) if WireType::from_tag(tag) == Some(WireType::LengthDelimited) => id,
            _ => return Err(FramingError::Tag { offset, tag }),
        };
        let Some((len, len_size)) = varint(&input[tag_size..])? else { return Ok(None) };
        match usize::try_from(len) {
            Ok(len) if len <= max => Ok(Some(Self { id, size: tag_size + len_size, len })),
            _ => Err(FramingError::TooLong { offset, len, max }),
        }
    }
}
