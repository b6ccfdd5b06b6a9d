//! The crate without the feature `alloc`, and the result of nesting that is too deep for it. These
//! tests also run with the feature.

#![no_std]
#![forbid(unsafe_code)]

use core::mem::MaybeUninit;

use esatto_protozero::{
    BufferFull, Delegate, Fields, Filled, Message, ScatteredWriter, SliceBuffer, StaticBuffer, cursor::INLINE_DEPTH,
    encode_into,
};

/// Returns true if a message with nesting of this depth is void.
fn is_too_deep(depth: usize) -> bool {
    cfg!(not(feature = "alloc")) && depth > INLINE_DEPTH
}

/// Writes `depth` nested messages with a number after each, some bytes in the innermost, and a leak
/// at the depth `leak`.
fn nest(message: &mut Message<'_>, depth: usize, content: &[u8], leak: usize) {
    if depth == 0 {
        return message.raw(content);
    }
    let mut nested = message.begin(1);
    nest(&mut nested, depth - 1, content, leak);
    nested.varint(2, depth as u64);
    if depth == leak {
        core::mem::forget(nested);
    }
}

fn check(mut bytes: &[u8], depth: usize, content: &[u8]) {
    for depth in (1..=depth).rev() {
        let mut fields = Fields::new(bytes);
        let nested = fields.next().expect("a message").as_bytes();
        assert!(fields.rest().is_empty());
        let end = nested.len() - 2;
        assert_eq!(nested[end..], [0x10, depth as u8]);
        bytes = &nested[..end];
    }
    assert_eq!(bytes, content);
}

#[test]
fn messages_nest_as_deep_as_the_tracked_depth() {
    for depth in 1..40 {
        for content in [&b""[..], b"\x0a\x03abc", &[0; 120], &[0; 300]] {
            let mut memory = [MaybeUninit::uninit(); 1024];
            match encode_into(&mut memory, |mut message| nest(&mut message, depth, content, 0)) {
                Ok(bytes) => {
                    assert!(!is_too_deep(depth));
                    check(bytes, depth, content);
                }
                Err(BufferFull) => assert!(is_too_deep(depth)),
            }
        }
    }
}

#[test]
fn buffers_continue_after_void_messages() {
    let mut memory = [0; 1024];
    let mut lent = SliceBuffer::new(&mut memory);
    let mut own = StaticBuffer::<1024>::new();
    for depth in 1..40 {
        for leak in 0..=depth {
            lent.clear();
            own.clear();
            let before = lent.dropped();
            lent.message().varint(1, 1);
            own.message().varint(1, 1);
            nest(&mut lent.message(), depth, &[0; 120], leak);
            nest(&mut own.message(), depth, &[0; 120], leak);
            let void = usize::from(leak != 0 || is_too_deep(depth));
            assert_eq!([lent.dropped(), own.dropped()], [before + void; 2]);
            lent.message().varint(2, 2);
            own.message().varint(2, 2);
            assert_eq!(lent.as_slice(), own.as_slice());
            let bytes = lent.as_slice();
            assert_eq!((&bytes[..2], &bytes[bytes.len() - 2..]), (&b"\x08\x01"[..], &b"\x10\x02"[..]));
            if void == 1 {
                assert_eq!(bytes.len(), 4);
            } else {
                check(&bytes[2..bytes.len() - 2], depth, &[0; 120]);
            }
        }
    }
}

/// Delegate that collects all bytes in one array.
struct Joined {
    bytes: [u8; 2048],
    len: usize,
    unfinished: Option<usize>,
    lengths: [usize; 64],
    deferred: usize,
}

impl Delegate for Joined {
    type Buffer = [u8; 16];

    fn acquire(&mut self, _min_len: usize) -> Option<[u8; 16]> {
        Some([0xee; 16])
    }

    fn release(&mut self, buffer: [u8; 16], filled: Filled) {
        self.bytes[self.len..][..filled.used].copy_from_slice(&buffer[..filled.used]);
        self.unfinished = match filled.unfinished {
            Some(0) => self.unfinished.or(Some(self.len)),
            begin => begin.map(|begin| self.len + begin),
        };
        self.len += filled.used;
    }

    fn defer_length(&mut self, offset: usize) -> Option<u32> {
        self.lengths[self.deferred % 64] = self.len + offset;
        self.deferred += 1;
        Some((self.deferred - 1) as u32)
    }

    fn fill_length(&mut self, number: u32, bytes: [u8; 4]) {
        self.bytes[self.lengths[number as usize % 64]..][..4].copy_from_slice(&bytes);
    }

    fn abandon(&mut self) {
        self.len = self.unfinished.take().expect("something is unfinished");
    }
}

#[test]
fn arrays_are_filled_one_after_the_other() {
    for depth in 1..40 {
        for leak in [0, 1, depth / 2, depth] {
            let joined = Joined { bytes: [0; 2048], len: 0, unfinished: None, lengths: [0; 64], deferred: 0 };
            let mut writer = ScatteredWriter::new(joined);
            writer.message().varint(1, 1);
            nest(&mut writer.message(), depth, &[0; 50], leak);
            let void = leak != 0 || is_too_deep(depth);
            writer.message().varint(2, 2);
            assert_eq!(writer.dropped(), usize::from(void));
            let joined = writer.into_delegate();
            let bytes = &joined.bytes[..joined.len];
            assert_eq!((&bytes[..2], &bytes[bytes.len() - 2..]), (&b"\x08\x01"[..], &b"\x10\x02"[..]));
            if void {
                assert_eq!(bytes.len(), 4);
            } else {
                check(&bytes[2..bytes.len() - 2], depth, &[0; 50]);
            }
        }
    }
}
