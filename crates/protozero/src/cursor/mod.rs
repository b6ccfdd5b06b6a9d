//! The raw write cursor: a position in a chain of byte ranges, and the lengths still to be filled
//! in.
//!
//! A [`Stream`] writes into one range of memory at a time. When the range is full, its
//! [`RawDelegate`] provides the next one. Messages that are open at that moment have reserved four
//! bytes for their length in a range that is about to be given away. The delegate sees these
//! *slots*, and may redirect each to a *patch*, whose value it is told later.
//!
//! This is the unsafe layer of the crate, for programs with memory that cannot be borrowed (shared
//! memory, rings). Other programs use a ready-made sink, or provide buffers by a safe
//! [`Delegate`](crate::Delegate).
//!
//! # Where the position is
//!
//! The write position is not kept in the stream but in the innermost open message, by value: there
//! it is in two registers, and no write through a pointer can alias it.
//!
//! ```text
//!   Stream ── root() ──▶ Message ── begin() ──▶ Message (nested)
//!   taken                taken                  ptr, end         ◀── fields are written here
//!     ▲────── drop ────────┘▲─────── drop ──────┘
//! ```
//!
//! Beginning a message *takes* the position out of its parent, dropping it puts the position back.
//! If a parent finds its own position taken, a guard was leaked (`core::mem::forget`). Rare cases
//! (the end of a range, a leak, nesting deeper than [`INLINE_DEPTH`]) are functions that take the
//! position and return the new one. So the address of a message never escapes on the common path.
//!
//! # Where the length goes
//!
//! A nested message begins with a *narrow* slot: one byte for its length, which suffices for most
//! messages. Meanwhile the position ends three bytes earlier for each narrow slot. When a message
//! turns out to be longer than 127 bytes, or the range ends in it, its slot and those around it are
//! *widened* to four bytes by moving their content into that room. The bytes, and where ranges end,
//! are the same as if each message had begun with four bytes and had been compacted at its end
//! (`docs/spec/protozero.md` §4), which costs a stalled load for each of them. If the last message
//! of the same depth was long, the slot is wide from the start.
//!
//! # Invariants
//!
//! 1. A position that is not taken lies in the range that the delegate (or the owner, by
//!    [`Stream::reset`]) handed over last, which stays valid for reads and writes until the next
//!    one is asked for. At most one position of a stream, its messages included, is not taken.
//! 2. The first `settled` open messages have their slot in `crossed` (or `deep`), and there every
//!    [`Slot::InPlace`] points to four writable bytes: the delegate redirects the slots of a range
//!    that it takes away. The slots of the others are in `fresh`, in the current range, in the
//!    order of nesting.
//! 3. A message that finds its position taken poisons the stream: the owner of the stream drops
//!    everything that was written since the root message began.
//! 4. The first `wide` open messages have slots of four bytes, the others of one. A position ends
//!    three bytes for each of the latter before the end of the range. So there is always room to
//!    widen them.

mod core;
pub(crate) mod fixed;
#[cfg(feature = "alloc")]
pub(crate) mod heap;
#[deny(unsafe_code, reason = "the safe form of an open message")]
pub(crate) mod message;
mod position;
pub(crate) mod scattered;
mod stream;
mod strip;
mod varint;
#[deny(unsafe_code, reason = "the trait of messages with a schema")]
pub(crate) mod writer;

use ::core::ptr::NonNull;

use crate::wire::LENGTH_FIELD_SIZE;

pub use stream::Stream;
pub use strip::{Nested, Strip};
pub use varint::varint_word;

/// Nesting depth up to which open messages are tracked without allocation.
///
/// Deeper nesting allocates (feature `alloc`) or poisons the message.
pub const INLINE_DEPTH: usize = 16;

/// A range of writable bytes.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// First byte.
    pub begin: NonNull<u8>,
    /// Length in bytes.
    pub len: usize,
}

impl Range {
    /// A range without bytes: the first write asks the delegate for memory.
    pub const EMPTY: Self = Self { begin: NonNull::dangling(), len: 0 };
}

/// Place for the length of an open message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Into four bytes of a range.
    InPlace(NonNull<u8>),
    /// To [`RawDelegate::fill_patch`], with this number.
    Patch(u32),
    /// Nowhere: the message is being discarded.
    Abandoned,
}

/// Slot, and the position at which the content of its message begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    slot: Slot,
    /// Position of the first byte of the content.
    start: usize,
}

/// Lengths that are still open, for a [`RawDelegate`].
#[derive(Debug)]
pub struct OpenSlots<'s> {
    inline: &'s mut [Open],
    deep: &'s mut [Open],
}

impl OpenSlots<'_> {
    /// Replaces every [`Slot::InPlace`] by what `redirect` returns for its address, outermost
    /// message first.
    pub fn redirect(&mut self, mut redirect: impl FnMut(NonNull<u8>) -> Slot) {
        for open in self.inline.iter_mut().chain(self.deep.iter_mut()) {
            if let Slot::InPlace(address) = open.slot {
                open.slot = redirect(address);
            }
        }
    }

    /// True if no nested message is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inline.is_empty()
    }
}

/// Source of memory for a [`Stream`].
///
/// # What a range holds
///
/// When a range ends, its first `used` bytes are written, except
/// - the four bytes of each [`Slot::InPlace`] that is seen then: they hold anything, or were never
///   written;
/// - those of a message that is void ([`Stream::is_poisoned`]), which may lack bytes anywhere.
///
/// So code that reads a range as `&[u8]` before its lengths are filled in must first write to those
/// bytes. Memory that may be read even if the message is void must be initialised before it is
/// provided. Bytes after `used` may also have been written.
///
/// # Panics
///
/// If [`next_range`](Self::next_range) panics, the stream is poisoned and has no range: the next
/// call says that 0 bytes of it were `used`, even if more were, and all slots are abandoned.
///
/// # Safety
///
/// An implementation guarantees that
/// - the range returned by [`next_range`](Self::next_range) is valid for reads and writes and is
///   not accessed through references, until the next call of `next_range` or until the owner of the
///   stream resets it; its bytes need not be initialised. [`fill_patch`](Self::fill_patch) may be
///   called meanwhile, so the range is not part of the value that implements this trait, if patches
///   are ever asked for;
/// - the range has at least `min_len` bytes, and ends before the last 256 addresses that there are;
/// - after `next_range`, each slot left [`Slot::InPlace`] points to four bytes that stay valid for
///   writes for as long as messages can be open, whatever else is written there.
///
/// It need not return: a panic does not break these guarantees.
pub unsafe trait RawDelegate {
    /// The current range is exhausted (`used` of its bytes were written): returns the next one, of
    /// at least `min_len` bytes.
    ///
    /// A message asks for at most the [four bytes of a length](LENGTH_FIELD_SIZE), and
    /// [`Stream::reserve`] for its argument. The first call for a stream without memory, or after
    /// [`Stream::reset`], counts from the begin of the range given there.
    ///
    /// Must not fail; a delegate without memory returns scratch space and abandons the open slots.
    fn next_range(&mut self, used: usize, open: OpenSlots<'_>, min_len: usize) -> Range;

    /// Tells the value of a [`Slot::Patch`]. It is told once, or never if the message is void. A
    /// value of a void message has no meaning.
    fn fill_patch(&mut self, patch: u32, value: [u8; LENGTH_FIELD_SIZE]);
}
