//! §16, cases 23 to 30: a guard ends its message once, when it is dropped.

use esatto_protozero::{Fields, HeapBuffer, Message, ScatteredWriter};

use crate::chunks::Chunks;

#[test]
fn case_23_a_guard_that_goes_out_of_scope_fills_in_the_length() {
    let mut writer = ScatteredWriter::new(Chunks::of(16));
    {
        let mut root = writer.message();
        let mut nested = root.begin(1);
        nested.bytes(2, b"crosses the chunk");
    }
    let chunks = writer.into_delegate();
    // At its release it had no length. `patched` checks the zeros.
    assert_eq!(chunks.raw[0][1..5], [0; 4]);
    assert_eq!(chunks.patched()[0][1..5], [0x93, 0x80, 0x80, 0x00]);
}

#[test]
fn case_24_assigning_over_a_guard_ends_the_message_it_held() {
    let (mut first, mut second) = (HeapBuffer::with_capacity(64), HeapBuffer::with_capacity(64));
    let (mut one, mut two) = (first.message(), second.message());
    let mut guard = one.begin(1);
    guard.varint(1, 1);
    let mut other = two.begin(1);
    other.varint(2, 2);
    // The length of the message in `one` is filled in here, that in `two` when `guard` is dropped.
    guard = other;
    guard.varint(3, 3);
    drop(guard);
    drop((one, two));
    assert_eq!(first.as_slice(), b"\x0a\x02\x08\x01");
    assert_eq!(second.as_slice(), b"\x0a\x04\x10\x02\x18\x03");
}

#[test]
fn case_25_a_place_for_a_guard_may_be_empty_first() {
    let mut buffer = HeapBuffer::with_capacity(64);
    let mut root = buffer.message();
    let mut place: Option<Message<'_>> = None;
    assert!(place.is_none());
    place = Some(root.begin(1));
    place.as_mut().unwrap().varint(1, 1);
    drop(place);
    drop(root);
    assert_eq!(buffer.as_slice(), b"\x0a\x02\x08\x01");
}

/// Two guards of one message cannot be made (see the documentation of the crate). Moving a guard
/// ends nothing.
#[test]
fn case_26_moving_a_guard_does_not_end_its_message() {
    let mut buffer = HeapBuffer::with_capacity(64);
    let mut root = buffer.message();
    {
        let mut guard = root.begin(1);
        guard.varint(1, 1);
        let mut moved = Box::new(guard);
        moved.varint(2, 2);
        let mut back = *moved;
        back.varint(3, 3);
    }
    drop(root);
    assert_eq!(buffer.as_slice(), b"\x0a\x06\x08\x01\x10\x02\x18\x03");
}

#[test]
fn case_27_a_message_that_was_ended_leaves_no_guard() {
    let mut buffer = HeapBuffer::with_capacity(64);
    let mut root = buffer.message();
    let mut place = Some(root.begin(1));
    place.as_mut().unwrap().varint(1, 1);
    drop(place.take());
    assert!(place.is_none());
    drop(place);
    root.varint(2, 2);
    drop(root);
    assert_eq!(buffer.as_slice(), b"\x0a\x02\x08\x01\x10\x02");
}

/// A buffer cannot be reset while a message is open (see the documentation of the crate). A leaked
/// message is void.
#[test]
fn case_28_a_leaked_message_does_not_survive_a_reset() {
    let mut buffer = HeapBuffer::with_capacity(64);
    core::mem::forget(buffer.message().begin(1));
    buffer.clear();
    assert_eq!(buffer.dropped(), 0);
    buffer.message().varint(1, 1);
    assert_eq!(buffer.as_slice(), b"\x08\x01");
}

#[test]
fn case_29_guards_of_nested_messages_follow_the_same_rules() {
    let mut buffer = HeapBuffer::with_capacity(64);
    let mut root = buffer.message();
    let mut guard = root.begin(1);
    guard.varint(1, 1);
    drop(guard);
    guard = root.begin(2);
    guard.begin(3).varint(4, 4);
    drop(guard);
    drop(root);
    assert_eq!(buffer.as_slice(), b"\x0a\x02\x08\x01\x12\x04\x1a\x02\x20\x04");
}

#[test]
fn case_30_any_number_of_messages_may_be_open() {
    let mut buffer = HeapBuffer::new();
    for depth in [1, 16, 17, 100, 17, 16, 1] {
        buffer.clear();
        open(&mut buffer.message(), 0, depth);
        let mut bytes = buffer.as_slice();
        for level in 0..depth {
            let mut fields = Fields::new(bytes);
            bytes = fields.next().unwrap().as_bytes();
            // Written after all deeper messages had ended.
            assert_eq!(fields.next().unwrap().as_u64(), level);
        }
        assert_eq!(buffer.dropped(), 0);
    }

    fn open(message: &mut Message<'_>, level: u64, depth: u64) {
        if level < depth {
            open(&mut message.begin(1), level + 1, depth);
            message.varint(2, level);
        }
    }
}
