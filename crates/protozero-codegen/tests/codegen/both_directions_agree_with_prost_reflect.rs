#![allow(deprecated)]

use esatto_protozero::{HeapBuffer, Owned};
use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor, Value};

use crate::fixture::{Color, Everything, EverythingReader, EverythingWriter, Level, Modern, everything};
use crate::pool;

fn decode(name: &str, bytes: &[u8]) -> DynamicMessage {
    let message: MessageDescriptor = pool().get_message_by_name(name).unwrap();
    DynamicMessage::decode(message, bytes).unwrap()
}

/// Returns the message in prost-reflect's own encoding, because a comparison of `DynamicMessage`s
/// of a recursive type never ends.
fn canonical(bytes: &[u8]) -> Vec<u8> {
    decode("fixture.Everything", bytes).encode_to_vec()
}

fn written() -> Vec<u8> {
    let mut buffer = HeapBuffer::new();
    let mut w = EverythingWriter::from(buffer.message());
    w.a_double(1.5).a_float(-2.5).an_int32(-3).an_int64(i64::MIN).a_uint32(u32::MAX).a_uint64(u64::MAX);
    w.a_sint32(i32::MIN).a_sint64(-8).a_fixed32(9).a_fixed64(10).a_sfixed32(-11).a_sfixed64(-12).a_bool(true);
    w.a_string("string").some_bytes(b"\x00\xff").color(Color::GREEN).kind(everything::Kind::KNOWN);
    w.everything().everything().a_bool(false);
    {
        let mut field = w.field();
        field.name("name");
        field.deep().outer().name("inner");
    }
    w.modern().implicit(1).explicit(0).numbers([1, 300]).levels([Level::SOME]).text("text");
    w.doubles(0.5).doubles(0.25).int32s(-1).int32s(1).sint64s(-2).fixed32s(3).bools(true).bools(false);
    w.strings("a").strings(String::from("b")).byte_strings(b"").colors(Color::CRIMSON);
    w.fields().name("first");
    w.fields();
    w.packed_doubles([1.0, -1.0]).packed_floats(vec![2.0]);
    w.packed_int32s([i32::MIN, -1, 0, 1]).packed_int64s([i64::MIN, 1]);
    w.packed_uint32s([u32::MAX]).packed_uint64s([u64::MAX, 0]);
    w.packed_sint32s([-1, 1]).packed_sint64s([i64::MIN]);
    w.packed_fixed32s([1, 2]).packed_fixed64s([3]);
    w.packed_sfixed32s([-1]).packed_sfixed64s([-2, 2]);
    w.packed_bools([true, false]).packed_colors([Color::GREEN, Color::RED]);
    w.chosen_number(91);
    w.counts().key("k").value(-5);
    {
        let mut entry = w.fields_by_id();
        entry.key(7);
        entry.value().name("seven");
    }
    w.r#type(1).self_(2).message_("m").unknown_fields("u").bRequest(true).far_away(9);
    drop(w);
    buffer.to_vec()
}

#[test]
fn case_56_prost_reflect_reads_the_fields_of_a_writer() {
    let message = decode("fixture.Everything", &written());
    assert_eq!(message.unknown_fields().count(), 0);
    let get = |name: &str| message.get_field_by_name(name).unwrap().into_owned();
    assert_eq!(get("a_double"), Value::F64(1.5));
    assert_eq!(get("a_float"), Value::F32(-2.5));
    assert_eq!(get("an_int32"), Value::I32(-3));
    assert_eq!(get("an_int64"), Value::I64(i64::MIN));
    assert_eq!(get("a_uint32"), Value::U32(u32::MAX));
    assert_eq!(get("a_uint64"), Value::U64(u64::MAX));
    assert_eq!(get("a_sint32"), Value::I32(i32::MIN));
    assert_eq!(get("a_sint64"), Value::I64(-8));
    assert_eq!(get("a_fixed32"), Value::U32(9));
    assert_eq!(get("a_fixed64"), Value::U64(10));
    assert_eq!(get("a_sfixed32"), Value::I32(-11));
    assert_eq!(get("a_sfixed64"), Value::I64(-12));
    assert_eq!(get("a_bool"), Value::Bool(true));
    assert_eq!(get("a_string"), Value::String("string".to_owned()));
    assert_eq!(get("color"), Value::EnumNumber(-1));
    assert_eq!(get("chosen_number"), Value::U64(91));
    assert_eq!(get("packed_int32s"), Value::List([i32::MIN, -1, 0, 1].map(Value::I32).into()));
    assert_eq!(get("packed_sint32s"), Value::List([-1, 1].map(Value::I32).into()));
    assert_eq!(get("packed_sfixed64s"), Value::List([-2, 2].map(Value::I64).into()));
    assert_eq!(get("packed_colors"), Value::List([-1, 3].map(Value::EnumNumber).into()));
    assert_eq!(get("strings"), Value::List(["a", "b"].map(|s| Value::String(s.to_owned())).into()));
    assert_eq!(get("far_away"), Value::U32(9));
    assert_eq!(get("message"), Value::String("m".to_owned()));
    let Value::Map(counts) = get("counts") else { panic!("a map") };
    assert_eq!(counts[&prost_reflect::MapKey::String("k".to_owned())], Value::I32(-5));
}

#[test]
fn case_56_a_reader_reads_the_fields_of_prost_reflect() {
    let bytes = decode("fixture.Everything", &written()).encode_to_vec();
    let r = EverythingReader::parse(&bytes).unwrap();
    assert_eq!((r.a_double(), r.a_float()), (Some(1.5), Some(-2.5)));
    assert_eq!((r.an_int32(), r.an_int64(), r.a_uint32()), (Some(-3), Some(i64::MIN), Some(u32::MAX)));
    assert_eq!((r.a_uint64(), r.a_sint32(), r.a_sint64()), (Some(u64::MAX), Some(i32::MIN), Some(-8)));
    assert_eq!((r.a_fixed32(), r.a_fixed64()), (Some(9), Some(10)));
    assert_eq!((r.a_sfixed32(), r.a_sfixed64(), r.a_bool()), (Some(-11), Some(-12), Some(true)));
    assert_eq!((r.a_string(), r.some_bytes()), (Some(&b"string"[..]), Some(&b"\x00\xff"[..])));
    assert_eq!((r.color(), r.kind()), (Some(Color::GREEN), Some(everything::Kind::KNOWN)));
    assert_eq!(r.everything().unwrap().everything().unwrap().a_bool(), Some(false));
    assert_eq!(r.field().unwrap().deep().unwrap().outer().unwrap().name(), Some(&b"inner"[..]));
    let modern = r.modern().unwrap();
    assert_eq!((modern.implicit(), modern.explicit(), modern.level()), (Some(1), Some(0), None));
    assert_eq!(modern.numbers().collect::<Vec<_>>(), [1, 300]);
    assert_eq!(r.doubles().collect::<Vec<_>>(), [0.5, 0.25]);
    assert_eq!(r.int32s().collect::<Vec<_>>(), [-1, 1]);
    assert_eq!(r.strings().collect::<Vec<_>>(), [b"a", b"b"]);
    assert_eq!(r.byte_strings().collect::<Vec<_>>(), [b""]);
    assert_eq!(r.fields_by_id().map(|entry| entry.key()).collect::<Vec<_>>(), [Some(7)]);
    assert_eq!(r.packed_doubles().collect::<Vec<_>>(), [1.0, -1.0]);
    assert_eq!(r.packed_int32s().collect::<Vec<_>>(), [i32::MIN, -1, 0, 1]);
    assert_eq!(r.packed_sint64s().collect::<Vec<_>>(), [i64::MIN]);
    assert_eq!(r.packed_sfixed32s().collect::<Vec<_>>(), [-1]);
    assert_eq!(r.packed_bools().collect::<Vec<_>>(), [true, false]);
    assert_eq!(r.packed_colors().collect::<Vec<_>>(), [Color::GREEN, Color::RED]);
    assert_eq!((r.chosen_number(), r.chosen_text()), (Some(91), None));
    assert_eq!((r.r#type(), r.self_(), r.message()), (Some(1), Some(2), Some(&b"m"[..])));
    assert_eq!(r.far_away(), Some(9));
}

#[test]
fn owned_values_decode_and_encode_the_same_message() {
    let bytes = written();
    let value = Everything::decode(&bytes).unwrap();
    assert_eq!(value.unknown_fields, b"", "every field is known");
    assert_eq!(value.counts[&b"k"[..]], -5);
    assert_eq!(value.packed_colors, [Color::GREEN, Color::RED]);
    assert_eq!(canonical(&value.encode()), canonical(&bytes));
    assert_eq!(Everything::decode(&value.encode()), Ok(value));
}

#[test]
fn repeated_fields_are_read_packed_and_unpacked() {
    // `numbers` is packed by proto3's default, `int32s` of `Everything` is not.
    assert_eq!(Modern::decode(b"\x18\x01\x1a\x02\x02\x03\x18\x04").unwrap().numbers, [1, 2, 3, 4]);
    assert_eq!(Everything::decode(b"\x8a\x02\x02\x05\x06\x88\x02\x07").unwrap().int32s, [5, 6, 7]);
    assert_eq!(Modern { numbers: vec![1, 2], ..Modern::default() }.encode(), b"\x1a\x02\x01\x02");
    assert_eq!(Everything { int32s: vec![1, 2], ..Everything::default() }.encode(), b"\x88\x02\x01\x88\x02\x02");
}
