//! A panic in a message or in a delegate leaves sinks usable. Unfinished messages are void.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use esatto_protozero::{Delegate, Filled, HeapBuffer, ScatteredWriter};

#[test]
fn a_panic_in_a_message_leaves_the_buffer_usable() {
    let mut buffer = HeapBuffer::new();
    buffer.message().varint(1, 1);
    let panics = catch_unwind(AssertUnwindSafe(|| {
        let mut message = buffer.message();
        let mut nested = message.begin(2);
        nested.varint(3, 3);
        panic!("on purpose");
    }));
    assert!(panics.is_err());
    // The guards were dropped, so the message is short but well formed.
    buffer.message().varint(4, 4);
    assert_eq!(buffer.as_slice(), b"\x08\x01\x12\x02\x18\x03\x20\x04");
}

/// Delegate that panics when the second buffer is requested.
struct Panics(usize);

impl Delegate for Panics {
    type Buffer = Box<[u8]>;

    fn acquire(&mut self, _min_len: usize) -> Option<Box<[u8]>> {
        self.0 += 1;
        assert_ne!(self.0, 2, "on purpose");
        Some(vec![0; 32].into())
    }

    fn release(&mut self, _buffer: Box<[u8]>, _filled: Filled) {}

    fn defer_length(&mut self, _offset: usize) -> Option<u32> {
        None
    }

    fn fill_length(&mut self, _number: u32, _bytes: [u8; 4]) {
        unreachable!("no length was asked for");
    }
}

#[test]
fn a_delegate_that_panics_voids_the_message() {
    let mut writer = ScatteredWriter::new(Panics(0));
    let panics = catch_unwind(AssertUnwindSafe(|| {
        let mut message = writer.message();
        let mut nested = message.begin(1);
        let mut inner = nested.begin(2);
        inner.bytes(3, &[0; 100]);
    }));
    assert!(panics.is_err());
    assert_eq!(writer.dropped(), 1);
    writer.message().begin(1).bytes(2, &[0; 100]);
    assert_eq!(writer.dropped(), 1);
}

#[test]
fn a_parent_may_be_written_after_a_panic_in_its_child() {
    let mut writer = ScatteredWriter::new(Panics(0));
    let mut message = writer.message();
    let panics = catch_unwind(AssertUnwindSafe(|| message.begin(1).begin(2).bytes(3, &[0; 100])));
    assert!(panics.is_err());
    message.bytes(4, &[0; 100]);
    message.begin(5).varint(6, 6);
    drop(message);
    assert_eq!(writer.dropped(), 1);
}
