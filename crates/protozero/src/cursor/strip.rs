//! [`Strip`]: a short stretch of memory for small messages, without a delegate, slots or a record
//! of nesting.
//!
//! It is cheap because it never asks for more memory. When something does not fit, the strip
//! *overflows*, and later writes have no effect. The caller checks this once at the end, and writes
//! the message again in the ordinary way. Memory after the end may be overwritten
//! ([`Strip::SLACK`]), so that most pieces can be stored as whole words.

use core::ptr::{self, NonNull};

use super::varint::put_varint;

/// Largest content of a message begun by [`Strip::open`]: the largest length in one byte.
const MAX_NESTED: usize = 127;

/// Nested message that was begun in a strip.
#[derive(Debug)]
#[must_use = "the length of the message is not filled in"]
pub struct Nested {
    /// Offset of its length from the begin of the strip.
    offset: usize,
}

/// Write position in a stretch of memory that is not continued.
#[derive(Debug)]
pub struct Strip {
    begin: *mut u8,
    at: *mut u8,
    /// Latest end of the content.
    limit: *mut u8,
}

impl Strip {
    /// Bytes after the end that may be overwritten.
    pub const SLACK: usize = 16;

    /// Makes a strip of `len` bytes.
    ///
    /// # Safety
    ///
    /// `len` + [`SLACK`](Self::SLACK) bytes from `begin` on are valid for writes, and not accessed
    /// otherwise, for as long as the strip is used.
    #[inline(always)]
    #[must_use]
    pub unsafe fn new(begin: NonNull<u8>, len: usize) -> Self {
        let at = begin.as_ptr();
        // SAFETY: the caller promises as many bytes.
        Self { begin: at, at, limit: unsafe { at.add(len) } }
    }

    /// Appends the first `len` bytes, at most 8, of a little-endian word.
    #[inline(always)]
    pub fn word(&mut self, word: u64, len: usize) {
        debug_assert!(len <= 8);
        if self.at <= self.limit {
            // SAFETY: `at` is within the strip, after which there are 16 bytes.
            unsafe { self.at.cast::<[u8; 8]>().write(word.to_le_bytes()) };
            self.advance(len);
        }
    }

    /// Appends the first `len` bytes, at most 16, of two little-endian words.
    #[inline(always)]
    pub fn words(&mut self, words: [u64; 2], len: usize) {
        debug_assert!(len <= 16);
        if self.at <= self.limit {
            // SAFETY: `at` is within the strip, after which there are 16 bytes.
            unsafe { self.at.cast::<[u8; 8]>().write(words[0].to_le_bytes()) };
            // SAFETY: as above.
            unsafe { self.at.add(8).cast::<[u8; 8]>().write(words[1].to_le_bytes()) };
            self.advance(len);
        }
    }

    /// Appends a varint.
    #[inline(always)]
    pub fn varint(&mut self, v: u64) {
        if self.at <= self.limit {
            // SAFETY: `at` is within the strip, after which there are 16 bytes, more than a varint
            // has.
            self.at = unsafe { put_varint(self.at, v) };
        }
    }

    /// Appends bytes. It is made for few bytes.
    #[inline(always)]
    pub fn bytes(&mut self, v: &[u8]) {
        if self.at > self.limit || v.len() > self.limit.addr() - self.at.addr() {
            return self.overflow();
        }
        // A copy of unknown length is a call.
        if let 8..=16 = v.len() {
            // SAFETY: there is room for all of `v`, by the comparison above.
            unsafe { put_ends::<8>(self.at, v) };
        } else if let 4..8 = v.len() {
            // SAFETY: as above.
            unsafe { put_ends::<4>(self.at, v) };
        } else {
            // SAFETY: as above, and no other reference to that exists.
            unsafe { ptr::copy_nonoverlapping(v.as_ptr(), self.at, v.len()) };
        }
        self.advance(v.len());
    }

    /// Appends a length of one byte, for the content up to [`close`](Self::close).
    #[inline(always)]
    pub fn open(&mut self) -> Nested {
        let offset = self.at.addr().wrapping_sub(self.begin.addr());
        self.advance(1);
        Nested { offset }
    }

    /// Appends the first `len` bytes, at most 8, of a little-endian word, in which the byte at
    /// `length_at` is the length of a message that continues up to [`close`](Self::close).
    #[inline(always)]
    pub fn open_in_word(&mut self, word: u64, len: usize, length_at: usize) -> Nested {
        debug_assert!(length_at < len);
        let offset = self.at.addr().wrapping_sub(self.begin.addr()).wrapping_add(length_at);
        self.word(word, len);
        Nested { offset }
    }

    /// Ends a nested message. More than 127 bytes are an overflow.
    #[expect(clippy::cast_possible_truncation, reason = "at most `MAX_NESTED`")]
    #[inline(always)]
    pub fn close(&mut self, nested: Nested) {
        let len = self.at.addr().wrapping_sub(self.begin.addr()).wrapping_sub(nested.offset + 1);
        // A strip that has overflowed stays overflowed. A message of another strip may have begun
        // anywhere.
        if self.at > self.limit || len > MAX_NESTED {
            return self.overflow();
        }
        // SAFETY: its offset is less than that of `at`, as their difference is no more than 127,
        // which is in the strip.
        unsafe { self.begin.add(nested.offset).write(len as u8) };
    }

    /// Returns the end of the content, or `None` if the strip has overflowed.
    #[inline(always)]
    #[must_use]
    pub fn end(&self) -> Option<*mut u8> {
        (self.at <= self.limit).then_some(self.at)
    }

    /// Inlined like the others, so that the pointers stay in registers.
    #[inline(always)]
    fn overflow(&mut self) {
        self.at = self.limit.wrapping_add(1);
    }

    #[inline(always)]
    fn advance(&mut self, len: usize) {
        // Wrapping: a caller that lies about `len` gets an overflow.
        self.at = self.at.wrapping_add(len);
    }
}

/// Stores the first `N` bytes of `v` and the last ones, which overlap.
///
/// # Safety
///
/// `v.len()` bytes from `at` on are valid for writes.
///
/// # Panics
///
/// `v` is shorter than `N`, or more than twice as long.
#[inline(always)]
unsafe fn put_ends<const N: usize>(at: *mut u8, v: &[u8]) {
    let (Some(head), Some(tail)) = (v.first_chunk::<N>(), v.last_chunk::<N>()) else { unreachable!("short") };
    assert!(v.len() <= 2 * N);
    // SAFETY: `v` is at least as long.
    unsafe { at.cast::<[u8; N]>().write(*head) };
    // SAFETY: as above: they end where `v` does.
    unsafe { at.add(v.len() - N).cast::<[u8; N]>().write(*tail) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    const LEN: usize = 40;

    fn written(write: impl FnOnce(&mut Strip)) -> Option<Vec<u8>> {
        let mut memory = [0xee_u8; 8 + LEN + Strip::SLACK + 8];
        let begin = NonNull::from(&mut memory).cast::<u8>();
        // SAFETY: 8 bytes into the array.
        let begin = unsafe { begin.add(8) };
        // SAFETY: the array has as many bytes, and is not used meanwhile.
        let mut strip = unsafe { Strip::new(begin, LEN) };
        write(&mut strip);
        let len = strip.end().map(|end| end.addr() - begin.as_ptr().addr());
        assert!(memory[..8].iter().chain(&memory[8 + LEN + Strip::SLACK..]).all(|&b| b == 0xee), "wrote outside");
        len.map(|len| memory[8..8 + len].to_vec())
    }

    #[test]
    fn pieces_follow_each_other() {
        let bytes = written(|s| {
            s.word(0x0201, 2);
            s.words([0x0807_0605_0403_0201, 0x09], 9);
            s.varint(300);
            s.varint(u64::MAX);
            s.bytes(b"xyz");
            s.bytes(b"nine byte");
        });
        let mut expected = vec![1, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xac, 2];
        expected.extend([0xff; 9]);
        expected.push(1);
        expected.extend(b"xyznine byte");
        assert_eq!(bytes, Some(expected));
    }

    #[test]
    fn lengths_are_filled_in() {
        let bytes = written(|s| {
            let outer = s.open();
            s.word(0x61, 1);
            let inner = s.open();
            s.bytes(b"bc");
            s.close(inner);
            let empty = s.open();
            s.close(empty);
            s.close(outer);
        });
        assert_eq!(bytes, Some(vec![5, 0x61, 2, b'b', b'c', 0]));
    }

    #[test]
    fn a_length_may_be_in_the_middle_of_a_word() {
        let bytes = written(|s| {
            let outer = s.open_in_word(0x63_0062_0061, 5, 1);
            let inner = s.open_in_word(0x0000_6564, 3, 2);
            s.bytes(b"f");
            s.close(inner);
            s.close(outer);
        });
        assert_eq!(bytes, Some(vec![0x61, 7, 0x62, 0, 0x63, 0x64, 0x65, 1, b'f']));
    }

    #[test]
    fn all_of_it_can_be_used_and_no_more() {
        assert_eq!(written(|s| s.bytes(&[7; LEN])), Some(vec![7; LEN]));
        assert_eq!(written(|s| s.bytes(&[7; LEN + 1])), None);
        for n in 0..=LEN {
            let ends = |more: fn(&mut Strip)| {
                written(|s| {
                    s.bytes(&[7; LEN][..n]);
                    more(s);
                })
            };
            assert_eq!(ends(|s| s.word(1, 8)).is_some(), n + 8 <= LEN);
            assert_eq!(ends(|s| s.words([1, 1], 16)).is_some(), n + 16 <= LEN);
            assert_eq!(ends(|s| s.varint(u64::MAX)).is_some(), n + 10 <= LEN);
            let nested = |s: &mut Strip| {
                let nested = s.open();
                s.bytes(b"12345678");
                s.close(nested);
            };
            assert_eq!(ends(nested).is_some(), n + 9 <= LEN);
        }
    }

    #[test]
    fn writes_after_an_overflow_have_no_effect() {
        for _ in 0..2 {
            let bytes = written(|s| {
                s.bytes(&[0; LEN + 1]);
                for _ in 0..100 {
                    s.word(1, 8);
                    s.words([1, 1], 16);
                    s.varint(5);
                    s.bytes(b"");
                    let nested = s.open();
                    s.varint(1);
                    s.close(nested);
                }
            });
            assert_eq!(bytes, None);
        }
    }

    #[test]
    fn a_message_of_another_strip_does_no_harm() {
        let mut nested = Vec::new();
        assert!(
            written(|s| {
                s.bytes(&[7; 30]);
                nested.push(s.open());
            })
            .is_some()
        );
        assert_eq!(written(|s| s.close(nested.pop().unwrap())), None);
    }

    #[test]
    fn every_short_length_is_copied_whole() {
        let text: Vec<u8> = (0..LEN as u8).collect();
        for n in 0..=LEN {
            assert_eq!(written(|s| s.bytes(&text[..n])).as_deref(), Some(&text[..n]));
        }
    }
}
