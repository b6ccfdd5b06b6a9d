use esatto_protozero::wire::WireType;
use esatto_protozero::{Fields, HeapBuffer, Value};

use crate::{hex, only};

#[test]
fn case_38_a_string_field_is_length_delimited() {
    let field = only(b"\x0a\x04test");
    assert_eq!((field.id, field.value.wire_type(), field.as_bytes().len()), (1, WireType::LengthDelimited, 4));
    assert_eq!(field.as_str(), Ok("test"));
    assert!(only(b"\x0a\x01\xff").as_str().is_err());
}

#[test]
fn case_39_a_field_of_257_mib_is_skipped() {
    const SIZE: usize = 257 << 20;
    let head = hex("080B 12 8080C080 01");
    let mut bytes = vec![0; head.len() + SIZE + 2];
    bytes[..head.len()].copy_from_slice(&head);
    bytes[head.len() + SIZE..].copy_from_slice(&hex("180D"));

    let mut fields = Fields::new(&bytes);
    assert_eq!(fields.by_ref().map(|field| (field.id, field.as_u64())).collect::<Vec<_>>(), [(1, 11), (3, 13)]);
    assert!(!fields.is_malformed());
    assert_eq!(fields.first(3).map(|field| field.as_u64()), Some(13));

    let cut = &bytes[..bytes.len() - 3];
    let mut fields = Fields::new(cut);
    assert_eq!(fields.by_ref().count(), 1);
    assert!(fields.is_malformed(), "it is passed over only if it is there");
    assert_eq!(fields.offset(), 2);
}

#[test]
fn case_40_streaming_keeps_the_order() {
    let bytes = hex("080A 1014 181E 080B 1015 1016");
    let fields = Fields::new(&bytes).map(|field| (field.id, field.as_u64()));
    assert_eq!(fields.collect::<Vec<_>>(), [(1, 10), (2, 20), (3, 30), (1, 11), (2, 21), (2, 22)]);
}

#[test]
fn case_42_a_single_tag_is_malformed() {
    let mut fields = Fields::new(b"\x01");
    assert_eq!(fields.next(), None);
    assert_eq!((fields.is_malformed(), fields.rest().len()), (true, 1));
}

#[test]
fn case_43_the_fixed_table() {
    let varint = |digits, id, value| (hex(digits), id, Value::Varint(value));
    for (bytes, id, value) in [
        varint("0800", 1, 0),
        varint("0801", 1, 1),
        varint("0842", 1, 0x42),
        varint("F80742", 127, 0x42),
        varint("B83E FFFFFFFF0F", 999, u64::from(u32::MAX)),
        (hex("7D 42000000"), 15, Value::Fixed32(0x42)),
        (hex("BD3E 78563412"), 999, Value::Fixed32(0x1234_5678)),
        (hex("79 4200000000000000"), 15, Value::Fixed64(0x42)),
        (hex("B93E 0807060504030201"), 999, Value::Fixed64(0x0102_0304_0506_0708)),
        (hex("0A00"), 1, Value::Bytes(b"")),
        (hex("0A04 74657374"), 1, Value::Bytes(b"test")),
    ] {
        let field = only(&bytes);
        assert_eq!((field.id, field.value), (id, value), "{bytes:02x?}");
    }
    let bytes = [hex("BA3E 8301"), vec![b'.'; 131]].concat();
    assert_eq!((only(&bytes).id, only(&bytes).as_bytes().len()), (999, 131));
}

#[test]
fn case_44_floats() {
    let (float, double) = (hex("0D0000A03F"), hex("110000000000428FC0"));
    assert_eq!((only(&float).as_f32(), only(&double).as_f64()), (1.25, -1000.25));
}

#[test]
fn case_45_a_field_is_found_without_moving() {
    let mut fields = Fields::new(b"\x08\x00\x08\x01");
    assert_eq!(fields.by_ref().count(), 2);
    assert_eq!(fields.first(1).map(|field| field.value), Some(Value::Varint(0)), "the first, not the last");
    assert_eq!(fields.first(2), None);
    assert_eq!((fields.offset(), fields.next()), (4, None));
    fields.rewind();
    assert_eq!((fields.offset(), fields.count()), (0, 2));
}

#[test]
fn case_52_every_legal_id_is_returned() {
    let ids = [
        ("F8FF1F 01", 65535),
        ("F8FFFF3F 01", (1 << 24) - 1),
        ("80808040 01", 1 << 24),
        ("F8FFFFFF0F 01", (1 << 29) - 1),
    ];
    for (digits, id) in ids {
        assert_eq!((only(&hex(digits)).id, only(&hex(digits)).as_bool()), (id, true));
    }
    let bytes = hex("8080808010 01 0802");
    assert_eq!(only(&bytes).id, 1, "2^29 is passed over");
    let bytes = hex("0801 8080808010 01 0802");
    let mut fields = Fields::new(&bytes);
    let first = fields.next_with_bytes().unwrap();
    let second = fields.next_with_bytes().unwrap();
    assert_eq!((first.1, second.1), (&bytes[..2], &bytes[8..]), "and belongs to no field");
}

#[test]
fn case_53_a_message_with_only_an_oversized_id_is_empty() {
    for digits in [
        "8080808010 01",
        "FAFFFFFF1F 00",
        "8080808080808080F801 00",
        "8580808010 01020304",
        "8180808010 0102030405060708",
    ] {
        let bytes = hex(digits);
        let mut fields = Fields::new(&bytes);
        assert_eq!((fields.next(), fields.rest().len()), (None, 0), "{digits}");
    }
}

#[test]
fn case_55_accessors_of_other_wire_types_return_nothing() {
    let bytes = hex("08 FFFFFFFF1F 11 FFFFFFFFFFFFFFFF 1A01FF 25 FFFFFFFF");
    let fields: Vec<_> = Fields::new(&bytes).collect();
    let [varint, fixed64, text, fixed32] = fields[..] else { panic!("four fields") };
    let u64s = [varint, fixed64, text, fixed32].map(|field| field.as_u64());
    assert_eq!(u64s, [0x1_ffff_ffff, u64::MAX, 0, 0xffff_ffff]);
    assert_eq!([varint, fixed64, text, fixed32].map(|field| field.as_i64()), [0x1_ffff_ffff, -1, 0, -1]);
    assert_eq!([varint, fixed64, text, fixed32].map(|field| field.as_u32()), [u32::MAX, 0, 0, u32::MAX]);
    assert_eq!([varint, fixed64, text, fixed32].map(|field| field.as_i32()), [-1, 0, 0, -1]);
    assert_eq!([varint, fixed64, text, fixed32].map(|field| field.as_sint32()), [i32::MIN, 0, 0, 0]);
    assert_eq!([varint, fixed64, text, fixed32].map(|field| field.as_sint64()), [-0x1_0000_0000, 0, 0, 0]);
    assert_eq!([varint, fixed64, text, fixed32].map(|field| field.as_bool()), [true, false, false, false]);
    assert_eq!([varint, fixed64, text, fixed32].map(|field| field.as_bytes().len()), [0, 0, 1, 0]);
    assert_eq!([varint, fixed64, text].map(|field| field.as_f32()), [0.0; 3]);
    assert_eq!([varint, text, fixed32].map(|field| field.as_f64()), [0.0; 3]);
    assert!(fixed32.as_f32().is_nan() && fixed64.as_f64().is_nan());
}

#[test]
fn a_field_is_written_again_in_the_shortest_form() {
    let bytes = hex("8880 00 8100 91808000 0102030405060708 9A00 8280808000 6869 A580 00 01020304");
    let mut buffer = HeapBuffer::new();
    let mut message = buffer.message();
    Fields::new(&bytes).for_each(|field| field.write_to(&mut message));
    drop(message);
    assert_eq!(buffer.to_vec(), hex("0801 11 0102030405060708 1A02 6869 25 01020304"));
}
