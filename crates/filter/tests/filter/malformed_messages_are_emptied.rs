//! Malformed messages give an error and an empty output.

use crate::util::{Message, case_71};
use esatto_filter::{Error, Filter};

/// The output must be empty in every split, even if valid fields come before the mistake.
fn assert_malformed(message: &[u8]) {
    for prefix in [&b""[..], b"\x08\x01"] {
        let message = [prefix, message].concat();
        for cut in 0..=message.len() {
            let mut out = b"left over".to_vec();
            let (left, right) = message.split_at(cut);
            let error = Filter::new(case_71()).filter(&[left, right], &mut out).unwrap_err();
            assert!(matches!(error, Error::Malformed { offset } if offset <= message.len()), "{message:x?}: {error}");
            assert_eq!(out, b"", "{message:x?}");
        }
    }
}

#[test]
fn case_74_a_length_that_is_too_large_and_an_endless_varint() {
    assert_malformed(b"\x52\x21\xa0\xa4");
    assert_malformed(b"\x08\x80");
    assert_malformed(b"\x08");
    assert_malformed(b"\x80");
}

#[test]
fn fields_cut_off_by_the_end() {
    assert_malformed(b"\x0d\x01\x02\x03");
    assert_malformed(b"\x09\x01\x02\x03\x04\x05\x06\x07");
    assert_malformed(b"\x0a\x02x");
    assert_malformed(b"\x0a");
}

#[test]
fn fields_that_reach_out_of_their_message() {
    // Field 6 of two bytes: a varint of two, a string of one, a fixed32; enough input follows.
    for inner in [b"\x10\x80", b"\x2a\x01", b"\x15\x00", b"\x11\x00"] {
        assert_malformed(&Message::default().message(6, Message(inner.to_vec())).raw(&[8; 16]).0);
    }
}

#[test]
fn wire_types_that_do_not_exist() {
    for wire_type in [3, 4, 6, 7] {
        assert_malformed(&[1 << 3 | wire_type, 0, 0]);
        // Also in messages that are entered, and in fields that are dropped.
        assert_malformed(&[0x32, 2, 9 << 3 | wire_type, 0]);
    }
}

#[test]
fn varints_over_64_bits_and_lengths_over_28() {
    assert_malformed(&[&b"\x08"[..], &[0x80; 10], &[0]].concat());
    assert_malformed(&[&[0x80; 10][..], &[0, 0]].concat());
    assert_malformed(b"\x0a\x80\x80\x80\x80\x01");
    assert_malformed(&[&b"\x0a"[..], &[0xff; 9], &[0x01]].concat());
}

#[test]
fn messages_that_are_not_entered_are_not_checked() {
    let message = Message::default().bytes(1, b"\xff\xff").bytes(9, b"\x0f");
    let expected = Message::default().bytes(1, b"\xff\xff");
    assert_eq!(Filter::new(case_71()).filter_to_vec(&message.0).unwrap(), expected.0);
}

#[test]
fn field_zero_is_dropped_and_its_content_read_as_fields() {
    // As upstream does: the length of field 0 is no length of a field.
    assert_eq!(Filter::new(case_71()).filter_to_vec(b"\x00\x05\x08\x01").unwrap(), b"\x08\x01");
    assert_eq!(Filter::new(case_71()).filter_to_vec(b"\x02\x7f\x08\x01").unwrap(), b"\x08\x01");
}

#[test]
fn the_next_message_is_not_affected() {
    let mut filter = Filter::new(case_71());
    assert!(filter.filter_to_vec(b"\x32\x05\x10\x01\x32").is_err());
    assert_eq!(filter.filter_to_vec(b"\x08\x01").unwrap(), b"\x08\x01");
}
