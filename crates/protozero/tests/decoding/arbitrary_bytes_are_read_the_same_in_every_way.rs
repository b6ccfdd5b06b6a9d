use esatto_protozero::wire::{MAX_FIELD_ID, WireType, decode_varint, encode_varint};
use esatto_protozero::{Field, Fields, HeapBuffer, Value, View, kind};
use proptest::prelude::*;

use crate::sample::{SampleDecoder, SampleReader};

/// Reads a varint byte by byte. The fast reader must agree with it.
fn plain_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let end = bytes.iter().take(10).position(|byte| byte & 0x80 == 0)?;
    let value = bytes[..=end].iter().rev().fold(0, |value: u64, byte| value << 7 | u64::from(byte & 0x7f));
    Some((value, end + 1))
}

/// Returns the fields of a message by the rules of the spec, and the number of bytes that are left.
fn plain_fields(mut input: &[u8]) -> (Vec<(u32, Value<'_>)>, usize) {
    fn one(input: &[u8]) -> Option<(u64, Value<'_>, usize)> {
        let (tag, n) = plain_varint(input)?;
        let rest = &input[n..];
        let (value, size) = match WireType::from_tag(tag)? {
            WireType::Varint => plain_varint(rest).map(|(v, n)| (Value::Varint(v), n))?,
            WireType::Fixed64 => (Value::Fixed64(u64::from_le_bytes(rest.get(..8)?.try_into().unwrap())), 8),
            WireType::Fixed32 => (Value::Fixed32(u32::from_le_bytes(rest.get(..4)?.try_into().unwrap())), 4),
            WireType::LengthDelimited => {
                let (len, n) = plain_varint(rest)?;
                let bytes = rest[n..].get(..usize::try_from(len).ok()?)?;
                (Value::Bytes(bytes), n + bytes.len())
            }
        };
        (tag >> 3 != 0).then_some((tag >> 3, value, n + size))
    }
    let mut fields = Vec::new();
    while let Some((id, value, size)) = one(input) {
        fields.extend(u32::try_from(id).ok().filter(|id| *id <= MAX_FIELD_ID).map(|id| (id, value)));
        input = &input[size..];
    }
    (fields, input.len())
}

fn assert_all_agree(bytes: &[u8]) -> Result<(), TestCaseError> {
    let (plain, left) = plain_fields(bytes);
    let mut fields = Fields::new(bytes);
    let seen: Vec<(u32, Value<'_>)> = fields.by_ref().map(|field| (field.id, field.value)).collect();
    prop_assert_eq!(&seen, &plain);
    prop_assert_eq!((fields.rest().len(), fields.offset()), (left, bytes.len() - left));
    let mut with_bytes = Fields::new(bytes);
    for (id, value) in &plain {
        let (field, encoded) = with_bytes.next_with_bytes().expect("the same fields");
        prop_assert_eq!((field.id, field.value), (*id, *value));
        prop_assert_eq!(plain_fields(encoded), (vec![(*id, *value)], 0));
    }
    prop_assert_eq!(with_bytes.next_with_bytes(), None);

    let (reader, decoder) = (SampleReader::new(bytes), SampleDecoder::decode(bytes));
    prop_assert_eq!(reader.check(), decoder.check());
    prop_assert_eq!(decoder.check().is_err(), left > 0);
    prop_assert_eq!(reader.id(), decoder.id());
    prop_assert_eq!(reader.text(), decoder.text());
    prop_assert_eq!(reader.hundred().map(f32::to_bits), decoder.hundred().map(f32::to_bits));
    prop_assert_eq!(reader.last_with_a_slot(), decoder.last_with_a_slot());
    prop_assert_eq!(reader.first_without(), decoder.first_without());
    prop_assert_eq!(reader.farthest().map(f64::to_bits), decoder.farthest().map(f64::to_bits));
    prop_assert_eq!(reader.choice(), decoder.choice());
    prop_assert_eq!(reader.far_choice(), decoder.far_choice());
    prop_assert_eq!(reader.child().map(|child| child.as_bytes()), decoder.child().map(|child| child.as_bytes()));
    prop_assert!(reader.children().map(|c| c.as_bytes()).eq(decoder.children().map(|c| c.as_bytes())));
    macro_rules! repeated {
        ($($getter:ident)*) => {$(
            let (mut scanned, mut indexed) = (reader.$getter(), decoder.$getter());
            let (at_least, at_most) = scanned.size_hint();
            let values: Vec<_> = scanned.by_ref().collect();
            prop_assert!(at_least <= values.len() && values.len() <= at_most.unwrap());
            let (at_least, at_most) = indexed.size_hint();
            prop_assert!(at_least <= values.len() && values.len() <= at_most.unwrap());
            prop_assert_eq!(values, indexed.by_ref().collect::<Vec<_>>());
            prop_assert_eq!(scanned.rest_of_packed(), indexed.rest_of_packed());
        )*};
    }
    repeated!(ids numbers offsets words longs hundreds without);

    // Without a schema, by the rules of the spec.
    let last = plain.iter().rev().find(|(id, value)| *id == 1 && !matches!(value, Value::Bytes(_)));
    let last = last.map(|(id, value)| Field { id: *id, value: *value }.as_u64());
    prop_assert_eq!(View::new(bytes).last::<kind::Uint64>(1), last);
    prop_assert_eq!(decoder.id(), last);
    let known = [1, 2, 3, 4, 5, 6, 7, 100, 999, 1000, 536_870_911];
    let unknown: Vec<u32> = plain.iter().map(|(id, _)| *id).filter(|id| !known.contains(id)).collect();
    prop_assert_eq!(decoder.unknown_fields().map(|field| field.id).collect::<Vec<_>>(), unknown);

    let mut buffer = HeapBuffer::new();
    let mut message = buffer.message();
    Fields::new(bytes).for_each(|field| field.write_to(&mut message));
    drop(message);
    let again = buffer.to_vec();
    prop_assert_eq!(plain_fields(&again), (plain, 0));
    Ok(())
}

/// Makes a field, mostly one of the sample, sometimes with a redundant tag or length, sometimes not
/// whole.
fn a_field() -> impl Strategy<Value = Vec<u8>> {
    let id = prop_oneof![
        8 => 1..=9u64,
        2 => prop::sample::select(vec![99, 100, 998, 999, 1000, 16_777_216, 536_870_911, 1 << 29, 1 << 60]),
        1 => any::<u64>().prop_map(|id| id >> 3),
    ];
    let varint = |v: u64, padding: usize| {
        let mut bytes = [0; 10];
        let n = encode_varint(v, &mut bytes);
        let mut bytes = bytes[..n].to_vec();
        let padding = padding.min(10 - n);
        if padding > 0 {
            bytes[n - 1] |= 0x80;
            bytes.resize(n + padding, 0x80);
            bytes[n + padding - 1] = 0;
        }
        bytes
    };
    let number = prop_oneof![0..300u64, any::<u64>(), any::<u64>().prop_map(|v| v >> 20)];
    let payload = prop::collection::vec(any::<u8>(), 0..20);
    let padding = prop_oneof![8 => Just(0), 1 => 1..10usize];
    (id, 0..30u8, number, payload, padding.clone(), padding).prop_map(move |(id, kind, v, payload, tag_pad, pad)| {
        let tag = |wire_type: u64| varint(id << 3 | wire_type, tag_pad);
        match kind {
            0..=11 => [tag(0), varint(v, pad)].concat(),
            12..=20 => [tag(2), varint(payload.len() as u64, pad), payload].concat(),
            21..=23 => [tag(5), (v as u32).to_le_bytes().to_vec()].concat(),
            24..=26 => [tag(1), v.to_le_bytes().to_vec()].concat(),
            27 => [tag(2), varint(v, pad), payload].concat(),
            28 => tag(v & 7),
            _ => [tag(v & 7), payload].concat(),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        assert_all_agree(&bytes)?;
    }

    #[test]
    fn any_fields(fields in prop::collection::vec(a_field(), 0..30), cut in 0..1000usize) {
        let bytes = fields.concat();
        assert_all_agree(&bytes)?;
        assert_all_agree(&bytes[..cut.min(bytes.len())])?;
    }

    #[test]
    fn any_varint(bytes in prop::collection::vec(prop_oneof![0x80..=0xffu8, any::<u8>()], 0..14)) {
        prop_assert_eq!(decode_varint(&bytes), plain_varint(&bytes));
    }
}
