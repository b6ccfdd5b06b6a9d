//! Cases 57 to 63 and 66 to 70 of `docs/spec/protozero.md` §16. Case 56 is in
//! `both_directions_agree_with_prost_reflect` and, with random schemas, in `tests/conformance`;
//! cases 64 and 65 are in `packages_are_modules`.

use esatto_protozero::{HeapBuffer, Owned};
use prost::Message as _;
use prost_reflect::{DynamicMessage, Value};

use crate::fixture::Color;
use crate::generated::cases::{
    CamelCase, Extendable, ExtendableWriter, NestedAWriter, Packed, PackedReader, PackedWriter, V1, V2, camel_case,
    extension::ExtendableWriterExt as _, v1, v2,
};
use crate::pool;

fn decode(name: &str, bytes: &[u8]) -> DynamicMessage {
    DynamicMessage::decode(pool().get_message_by_name(name).unwrap(), bytes).unwrap()
}

fn packed(write: impl FnOnce(&mut PackedWriter<'_>)) -> Vec<u8> {
    let mut buffer = HeapBuffer::new();
    write(&mut buffer.message().into());
    buffer.to_vec()
}

#[test]
fn case_57_nested_messages_are_compacted() {
    let mut buffer = HeapBuffer::new();
    let mut w = NestedAWriter::from(buffer.message());
    w.repeated_a().value_b().value_c(321);
    w.repeated_a();
    w.super_nested().value_c(1000);
    drop(w);
    assert_eq!(buffer.len(), 14);

    let a = decode("cases.NestedA", buffer.as_slice());
    let Value::List(entries) = a.get_field_by_name("repeated_a").unwrap().into_owned() else { panic!("a list") };
    let value_b = |entry: &Value| entry.as_message().unwrap().get_field_by_name("value_b").unwrap().into_owned();
    let value_c = |message: &Value| message.as_message().unwrap().get_field_by_name("value_c").unwrap().into_owned();
    assert_eq!((entries.len(), value_c(&value_b(&entries[0]))), (2, Value::I32(321)));
    assert!(!entries[1].as_message().unwrap().has_field_by_name("value_b"));
    assert_eq!(value_c(&a.get_field_by_name("super_nested").unwrap()), Value::I32(1000));
}

#[test]
fn case_58_an_extension_is_encoded_like_a_field() {
    let mut buffer = HeapBuffer::new();
    let mut w = ExtendableWriter::from(buffer.message());
    w.base("base").number(-5).texts("a");
    w.nested().super_nested().value_c(7);
    w.texts("b");
    drop(w);

    let plain = decode("cases.Extended", buffer.as_slice());
    let get = |name: &str| plain.get_field_by_name(name).unwrap().into_owned();
    assert_eq!((get("base"), get("number")), (Value::String("base".into()), Value::I32(-5)));
    assert_eq!(get("texts"), Value::List(["a", "b"].map(|text| Value::String(text.into())).into()));
    assert!(plain.has_field_by_name("nested"));
    // A value keeps extensions as unknown fields.
    let value = Extendable::decode(buffer.as_slice()).unwrap();
    assert_eq!(decode("cases.Extended", &value.encode()).encode_to_vec(), plain.encode_to_vec());
}

#[test]
fn case_59_names_in_camel_case_are_pinned() {
    use camel_case::{Field as F, field};
    let variants: [fn(i32) -> F; 9] =
        [F::FooBarBaz, F::BarBaz, F::MooMoo, F::URLEncoder, F::XMap, F::UrLENcoDer, F::BigBang, F::U2, F::BangBig];
    let numbers = [
        field::FOO_BAR_BAZ,
        field::BARBAZ,
        field::MOOMOO,
        field::URLENCODER,
        field::XMAP,
        field::URLE_NCO__DER,
        field::__BIGBANG,
        field::U2,
        field::BANGBIG__,
    ];
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for (variant, number) in variants.into_iter().zip(numbers) {
        let value = CamelCase { field: Some(variant(1)), ..CamelCase::default() };
        assert_eq!(value.encode(), [number as u8 * 8, 1]);
    }
}

#[test]
fn case_60_packed_fields_have_one_tag_and_one_length() {
    assert_eq!(
        packed(|w| {
            w.ints([42, 255, -1]);
        })
        .len(),
        15
    );
    assert_eq!(
        packed(|w| {
            w.words([1, 2, 3, 4]);
        })
        .len(),
        18
    );
    assert_eq!(
        packed(|w| {
            w.longs([1, 2, 3, u64::MAX]);
        })
        .len(),
        34
    );
}

#[test]
fn case_61_an_empty_packed_field_is_written() {
    assert_eq!(
        packed(|w| {
            w.ints([]);
        }),
        b"\x0a\x00"
    );
    assert_eq!(
        packed(|w| {
            w.longs(Vec::new());
        }),
        b"\x1a\x00"
    );
    assert_eq!(
        packed(|w| {
            w.ints_begin();
        }),
        b"\x0a\x00"
    );
}

#[test]
fn packed_values_may_be_appended_one_by_one() {
    assert_eq!(
        packed(|w| {
            let mut ints = w.ints_begin();
            ints.push(42);
            ints.extend([255, -1]);
        }),
        packed(|w| {
            w.ints([42, 255, -1]);
        })
    );
}

#[test]
fn case_62_many_packed_values_round_trip() {
    let values = || (0..32768).map(|i: i32| i.wrapping_mul(0x0101_0101) - 7);
    let bytes = packed(|w| {
        w.ints(values());
    });
    assert!(PackedReader::new(&bytes).ints().eq(values()));
    assert!(Packed::decode(&bytes).unwrap().ints.into_iter().eq(values()));
}

#[test]
fn case_63_values_of_enumerations_have_names() {
    assert_eq!((Color::RED.name(), Color::GREEN.name()), (Some("RED"), Some("GREEN")));
    // The original returns "PBZERO_UNKNOWN_ENUM_VALUE".
    assert_eq!((Color(17).name(), format!("{:?}", Color(17))), (None, "17".to_owned()));
}

#[test]
fn case_66_fields_of_a_newer_schema_survive_an_older_one() {
    let newer = V2 {
        kept: Some("kept".into()),
        numbers: vec![1, -2],
        sub: Some(v2::Sub { value: Some(1), added: Some("inside".into()), ..v2::Sub::default() }),
        added: Some(u64::MAX),
        more: vec!["a".into(), "".into()],
        ..V2::default()
    };
    let mut older = V1::decode(&newer.encode()).unwrap();
    assert_eq!(older.kept.as_ref().unwrap(), "kept");
    older.numbers.push(3);
    let again = V2::decode(&older.encode()).unwrap();
    assert_eq!(again, V2 { numbers: vec![1, -2, 3], ..newer });
}

#[test]
fn case_67_an_untouched_message_has_nothing_and_encodes_to_nothing() {
    let V1 { kept, numbers, sub, unknown_fields } = V1::default();
    assert!(kept.is_none() && numbers.is_empty() && sub.is_none() && unknown_fields.is_empty());
    assert_eq!(V1::default().encode(), b"");
    // An absent packed field is not written. The original writes its tag and 00.
    assert_eq!(Packed::default().encode(), b"");
}

#[test]
fn case_68_changing_a_copy_leaves_the_original_alone() {
    let original = V1 { sub: Some(v1::Sub { value: Some(1), ..v1::Sub::default() }), ..V1::default() };
    let mut copy = original.clone();
    copy.sub.as_mut().unwrap().value = Some(2);
    assert_eq!(original.sub.unwrap().value, Some(1));
}

/// [`Owned::merge`] appends to repeated fields, as every other implementation does; the original
/// replaces them. So two encodings, one after the other, decode to the same value as the first one
/// with the second one merged into it.
#[test]
fn case_69_merging_keeps_present_fields() {
    let first = V1 { kept: Some("first".into()), numbers: vec![1], ..V1::default() };
    let second = V1 { numbers: vec![2], sub: Some(v1::Sub::default()), ..V1::default() };
    let mut merged = first.clone();
    merged.merge(&second.encode(), 100).unwrap();
    let expected = V1 { numbers: vec![1, 2], sub: Some(v1::Sub::default()), ..first.clone() };
    assert_eq!(merged, expected);
    assert_eq!(V1::decode(&[first.encode(), second.encode()].concat()), Ok(expected));
}

#[test]
fn case_70_truncated_input_is_an_error() {
    let message = V2 { kept: Some("kept".into()), added: Some(1), ..V2::default() };
    let bytes = message.encode();
    let whole = [0, 6, bytes.len()];
    for len in 0..=bytes.len() {
        assert_eq!(V2::decode(&bytes[..len]).is_ok(), whole.contains(&len), "{len} bytes");
    }
}
