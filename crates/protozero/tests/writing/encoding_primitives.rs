//! §16, cases 1 to 10: tags, varints and single fields.

use esatto_protozero::wire::{
    MAX_VARINT_SIZE, WireType, decode_varint, encode_varint, redundant_varint4, tag, unzigzag, varint_size, zigzag,
};
use esatto_protozero::{HeapBuffer, ScatteredWriter};

use crate::chunks::Chunks;

#[test]
fn case_01_tags_of_every_wire_type() {
    let types = [WireType::Varint, WireType::Fixed64, WireType::LengthDelimited, WireType::Fixed32];
    for (field, tags) in [
        (1, [0x08, 0x09, 0x0a, 0x0d]),
        (0x7f, [0x3f8, 0x3f9, 0x3fa, 0x3fd]),
        (0x80, [0x400, 0x401, 0x402, 0x405]),
        (0x3fff, [0x1fff8, 0x1fff9, 0x1fffa, 0x1fffd]),
        (0x4000, [0x20000, 0x20001, 0x20002, 0x20005]),
    ] {
        assert_eq!(types.map(|wire_type| tag(field, wire_type)), tags);
        // As a message writes them, on both paths: large buffers, and the end of small ones.
        for size in [9, 1000] {
            let mut writer = ScatteredWriter::new(Chunks::of(size));
            let mut message = writer.message();
            message.varint(field, 0);
            message.fixed64(field, 0);
            message.bytes(field, b"");
            message.fixed32(field, 0);
            drop(message);
            let bytes = writer.into_delegate().stitched();
            let mut at = 0;
            for (tag, value) in tags.iter().zip([1, 8, 1, 4]) {
                let (read, n) = decode_varint(&bytes[at..]).unwrap();
                assert_eq!((read, n), (u64::from(*tag), varint_size(u64::from(*tag))));
                at += n + value;
            }
            assert_eq!(at, bytes.len());
        }
    }
}

#[test]
fn case_02_zigzag() {
    for (signed, unsigned) in [
        (0, 0),
        (-1, 1),
        (1, 2),
        (-2, 3),
        (2_147_483_647, 4_294_967_294),
        (-2_147_483_647, 4_294_967_293),
        (i64::from(i32::MIN), u64::from(u32::MAX)),
        (i64::MIN, u64::MAX),
    ] {
        assert_eq!(zigzag(signed), unsigned);
        assert_eq!(unzigzag(unsigned), signed);
    }
    for value in [9_000_000_000, -9_000_000_000, 0x7fff_ffff, -127] {
        assert_eq!(unzigzag(zigzag(value)), value);
    }
}

#[test]
fn case_03_varints_are_shortest_and_read_back() {
    for (value, len) in [
        (0, 1),
        (1, 1),
        (0x7f, 1),
        (0x80, 2),
        (0xff, 2),
        (0x3fff, 2),
        (0x4000, 3),
        (1 << 21, 4),
        (1 << 28, 5),
        ((1 << 32) - 1, 5),
        (1 << 35, 6),
        (1 << 42, 7),
        (1 << 49, 8),
        (1 << 56, 9),
        (1 << 63, 10),
        (u64::MAX, 10),
    ] {
        let mut plain = [0; MAX_VARINT_SIZE];
        assert_eq!(encode_varint(value, &mut plain), len);
        assert_eq!(decode_varint(&plain[..len]), Some((value, len)));
        let mut buffer = HeapBuffer::new();
        buffer.message().varint(1, value);
        assert_eq!(buffer.as_slice()[1..], plain[..len]);
        if let Ok(narrow) = u32::try_from(value) {
            buffer.clear();
            buffer.message().varint(1, narrow.into());
            assert_eq!(buffer.as_slice()[1..], plain[..len]);
        }
    }
}

#[test]
fn case_04_negative_numbers_of_every_width_take_ten_bytes() {
    let mut buffer = HeapBuffer::new();
    let mut message = buffer.message();
    message.int(1, i64::from(-100_i8));
    message.int(1, i64::from(-100_i16));
    message.int(1, i64::from(-100_i32));
    message.int(1, -100_i64);
    drop(message);
    assert_eq!(buffer.as_slice(), b"\x08\x9c\xff\xff\xff\xff\xff\xff\xff\xff\x01".repeat(4));
}

#[test]
fn case_05_redundant_varints() {
    assert_eq!(redundant_varint4(0), [0x80, 0x80, 0x80, 0x00]);
    assert_eq!(redundant_varint4(1), [0x81, 0x80, 0x80, 0x00]);
    assert_eq!(redundant_varint4(0x80), [0x80, 0x81, 0x80, 0x00]);
    assert_eq!(redundant_varint4(0x33_2211), [0x91, 0xc4, 0xcc, 0x01]);
    assert_eq!(redundant_varint4(0x0fff_ffff), [0xff, 0xff, 0xff, 0x7f]);
    for value in [0, 1, 0x80, 0x33_2211, 0x0fff_ffff] {
        assert_eq!(decode_varint(&redundant_varint4(value)), Some((u64::from(value), 4)));
    }
}

#[test]
fn case_06_cut_varints_are_refused() {
    for len in 0..=4 {
        assert_eq!(decode_varint(&[0xff; 4][..len]), None);
    }
}

#[test]
fn case_07_ten_bytes_are_accepted_and_eleven_are_not() {
    assert_eq!(decode_varint(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), Some((u64::MAX, 10)));
    assert_eq!(decode_varint(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), None);
}

#[test]
fn case_08_empty_bytes_and_strings() {
    let mut buffer = HeapBuffer::new();
    let mut message = buffer.message();
    message.bytes(1, b"");
    message.string(2, "");
    assert_eq!(message.len(), 4);
    drop(message);
    assert_eq!(buffer.as_slice(), b"\x0a\x00\x12\x00");
}

#[test]
fn case_09_fields_of_every_kind_in_chunks_of_16() {
    let mut writer = ScatteredWriter::new(Chunks::of(16));
    let mut message = writer.message();
    message.varint(1, 0);
    message.varint(2, u64::from(u32::MAX));
    message.varint(3, 42);
    message.varint(4, u64::MAX);
    message.float(5, f32::from_bits(0x4049_0e56)); // 3.1415
    message.double(6, core::f64::consts::PI);
    message.bytes(7, b"\0\0\0\0\x42\x01\xff\x42\xff\x42\0"[..10].as_ref());
    message.string(257, "twenty-two characters.");
    message.sint(3, -21);
    assert_eq!(message.len(), 74);
    drop(message);
    let chunks = writer.into_delegate();
    assert_eq!(chunks.raw.iter().map(Vec::len).collect::<Vec<_>>(), [16, 16, 16, 16, 10]);
    let mut expected = Vec::new();
    for piece in [
        &b"\x08\x00"[..],
        b"\x10\xff\xff\xff\xff\x0f",
        b"\x18\x2a",
        b"\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x2d\x56\x0e\x49\x40",
        b"\x31\x18\x2d\x44\x54\xfb\x21\x09\x40",
        b"\x3a\x0a\0\0\0\0\x42\x01\xff\x42\xff\x42",
        b"\x8a\x10\x16twenty-two characters.",
        b"\x18\x29",
    ] {
        expected.extend_from_slice(piece);
    }
    assert_eq!(chunks.stitched(), expected);
}

#[test]
fn case_10_pieces_make_one_field() {
    let (a, b) = ([0xaa; 42], [0xbb; 42]);
    let mut buffer = HeapBuffer::new();
    buffer.message().scattered_bytes(1, &[&a, &b]);
    let bytes = buffer.as_slice();
    assert_eq!(bytes.len(), 86);
    assert_eq!(bytes[..2], [0x0a, 0x54]);
    assert_eq!((&bytes[2..44], &bytes[44..]), (&a[..], &b[..]));
}
