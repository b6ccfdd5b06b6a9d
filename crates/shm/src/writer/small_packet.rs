//! [`SmallPacket`]: a small packet, written in one piece with plain stores.
//!
//! An ordinary packet may have any length and continue in the next chunk. Most packets of a trace
//! are a dozen bytes long and need none of that. A [`SmallPacket`] is written after one byte for
//! its size. If it does not fit, or anything else does not qualify, the caller writes an ordinary
//! packet instead. Both produce the same bytes.

use core::ptr::{self, NonNull};

use esatto_protozero::cursor::{Nested, Strip};

use super::{
    chunk::{MAX_PACKETS_PER_CHUNK, Position},
    trace_writer::{ONE_BYTE_SIZE_LIMIT, TraceWriter},
};

/// Bytes of the packet's size field.
const SIZE_LEN: usize = 1;
/// Bytes left after a small packet, so that the next one can be counted in advance.
const NEXT_SIZE_LEN: usize = 1;
/// Bytes that must be left in the chunk after the content.
const SLACK: usize = NEXT_SIZE_LEN + Strip::SLACK;

/// Packet of at most 126 bytes being written; made by [`TraceWriter::small_packet`].
///
/// It is written like a [`Strip`]. Dropping it without [`finish`](Self::finish) takes it back.
#[derive(Debug)]
#[must_use = "a small packet is not written before `finish`"]
pub struct SmallPacket<'w> {
    writer: &'w mut TraceWriter,
    begin: *mut u8,
    strip: Strip,
}

impl TraceWriter {
    /// Begins a packet that is written in one piece. This is possible if the writer's chunk has
    /// room for `min` bytes, and the writer owes no mark of a loss or of the begin of its sequence.
    /// After a loss, the sequence first [starts over](Self::accept_losses).
    ///
    /// If this returns `None`, or [`SmallPacket::finish`] returns that the packet did not fit,
    /// write the packet with [`new_packet`](Self::new_packet).
    ///
    /// ```
    /// # use esatto_shm::TraceWriter;
    /// # let mut writer = TraceWriter::null();
    /// let written = writer.small_packet(4).is_some_and(|mut packet| {
    ///     packet.word(0x7b40, 2); // field 8, the timestamp: 123
    ///     packet.finish()
    /// });
    /// if !written {
    ///     writer.new_packet().message().varint(8, 123);
    /// }
    /// ```
    #[inline(always)]
    pub fn small_packet(&mut self, min: usize) -> Option<SmallPacket<'_>> {
        let begin = self.stream.next();
        // Null lies before every address.
        let has_room = begin.addr() + SIZE_LEN + min <= self.small_end.addr();
        if !has_room || self.chunk().begun >= MAX_PACKETS_PER_CHUNK {
            return None;
        }
        let room = self.small_end.addr() - begin.addr();
        debug_assert!(self.chunk().is_plain() && room + SLACK <= self.stream.available());
        let len = (room - SIZE_LEN).min(ONE_BYTE_SIZE_LIMIT - 1);
        // SAFETY: more bytes than `SIZE_LEN` of the chunk that we hold follow `begin`.
        let content = unsafe { NonNull::new_unchecked(begin.add(SIZE_LEN)) };
        // SAFETY: `len` and `Strip::SLACK` bytes follow, see `small_end`. No other code accesses
        // them: this writer owns the chunk, and the stream is not used while the packet borrows the
        // writer.
        let strip = unsafe { Strip::new(content, len) };
        Some(SmallPacket { writer: self, begin, strip })
    }

    /// Writes a packet of a few bytes: the first bytes of the word `head`, at most 7, and the first
    /// bytes of the words `tail`, at most 16. If it returns `false`, nothing was written. The
    /// caller then writes the packet with [`small_packet`](Self::small_packet) or
    /// [`new_packet`](Self::new_packet).
    ///
    /// ```
    /// # use esatto_shm::TraceWriter;
    /// # let mut writer = TraceWriter::null();
    /// if !writer.small_words((0x7b40, 2), ([0, 0], 0)) {
    ///     writer.new_packet().message().varint(8, 123); // timestamp
    /// }
    /// ```
    #[inline(always)]
    pub fn small_words(&mut self, (head, head_len): (u64, usize), (tail, tail_len): ([u64; 2], usize)) -> bool {
        const HEAD: usize = 7;
        const TAIL: usize = 16;
        let begin = self.stream.next();
        let has_room = begin.addr() + SIZE_LEN + HEAD + TAIL <= self.small_end.addr();
        if !has_room || self.chunk().begun >= MAX_PACKETS_PER_CHUNK || head_len > HEAD || tail_len > TAIL {
            return false;
        }
        let size = (head_len + tail_len) as u64;
        let end_of_head = begin.wrapping_add(SIZE_LEN + head_len);
        // SAFETY: as many bytes as the longest packet has lie before `small_end`, in the chunk that
        // we hold.
        unsafe { begin.cast::<[u8; 8]>().write((size | head << 8).to_le_bytes()) };
        // SAFETY: as above.
        unsafe { end_of_head.cast::<[u8; 8]>().write(tail[0].to_le_bytes()) };
        // SAFETY: as above.
        unsafe { end_of_head.add(8).cast::<[u8; 8]>().write(tail[1].to_le_bytes()) };
        // SAFETY: these bytes were just written.
        unsafe { self.end_small_packet(SIZE_LEN + head_len + tail_len) };
        true
    }

    /// Ends a small packet that consists of the next bytes.
    ///
    /// # Safety
    ///
    /// So many bytes were written before `small_end`.
    #[inline(always)]
    unsafe fn end_small_packet(&mut self, total: usize) {
        // SAFETY: as many bytes were available, and no message is open.
        unsafe { self.stream.advance(total) };
        let chunk = self.chunk();
        chunk.begun += 1;
        // As after an ordinary packet, the next one is counted already, and a byte is left for it.
        chunk.position = Position::BetweenCounted;
        chunk.publish_count();
    }

    /// Finds out if the next packet can be a small one. Small packets themselves need not call
    /// this.
    #[inline]
    pub(super) fn allow_small_packets(&mut self) {
        let available = self.stream.available();
        let can = available > SLACK && self.chunk().is_plain();
        // SAFETY: not beyond the available bytes.
        self.small_end = if can { unsafe { self.stream.next().add(available - SLACK) } } else { ptr::null_mut() };
    }
}

impl SmallPacket<'_> {
    /// See [`Strip::word`].
    #[inline(always)]
    pub fn word(&mut self, word: u64, len: usize) {
        self.strip.word(word, len);
    }

    /// See [`Strip::words`].
    #[inline(always)]
    pub fn words(&mut self, words: [u64; 2], len: usize) {
        self.strip.words(words, len);
    }

    /// See [`Strip::varint`].
    #[inline(always)]
    pub fn varint(&mut self, v: u64) {
        self.strip.varint(v);
    }

    /// See [`Strip::bytes`].
    #[inline(always)]
    pub fn bytes(&mut self, v: &[u8]) {
        self.strip.bytes(v);
    }

    /// See [`Strip::open`].
    #[inline(always)]
    pub fn open(&mut self) -> Nested {
        self.strip.open()
    }

    /// See [`Strip::open_in_word`].
    #[inline(always)]
    pub fn open_in_word(&mut self, word: u64, len: usize, length_at: usize) -> Nested {
        self.strip.open_in_word(word, len, length_at)
    }

    /// See [`Strip::close`].
    #[inline(always)]
    pub fn close(&mut self, nested: Nested) {
        self.strip.close(nested);
    }

    /// Ends the packet, after which a service may read it. Returns `false` if it did not fit;
    /// nothing was written then.
    #[expect(clippy::cast_possible_truncation, reason = "a strip has at most 127 bytes")]
    #[inline(always)]
    pub fn finish(self) -> bool {
        let Some(end) = self.strip.end() else { return false };
        let len = end.addr() - self.begin.addr() - SIZE_LEN;
        // SAFETY: the first byte that is available, see `small_packet`.
        unsafe { self.begin.write(len as u8) };
        // SAFETY: just written, see `small_packet`.
        unsafe { self.writer.end_small_packet(SIZE_LEN + len) };
        true
    }
}
