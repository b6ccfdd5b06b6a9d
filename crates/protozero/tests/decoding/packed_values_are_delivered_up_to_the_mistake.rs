use esatto_protozero::{Repeated, kind};

use crate::hex;
use crate::sample::SampleDecoder;

#[test]
fn case_47_packed_varints() {
    let message = hex("12 0E 2A FF01 00 FFFFFFFFFFFFFFFFFF01");
    let mut numbers = SampleDecoder::decode(&message).numbers();
    assert_eq!(numbers.by_ref().collect::<Vec<_>>(), [42, 255, 0, -1]);
    assert!(!numbers.is_malformed());

    // Upstream's iterators return repeated `sint`s undecoded. Here they are numbers.
    let message = hex("1A 03 01 02 03");
    assert_eq!(SampleDecoder::decode(&message).offsets().collect::<Vec<_>>(), [-1, 1, -2]);
}

#[test]
fn case_48_packed_fixed_values() {
    let words = hex("22 0C 01000000 FFFFFFFF 00000080");
    let mut values = SampleDecoder::decode(&words).words();
    assert_eq!(values.by_ref().collect::<Vec<_>>(), [1, u32::MAX, 0x8000_0000]);
    assert!(!values.is_malformed());

    let longs = hex("2A 10 0100000000000000 FFFFFFFFFFFFFFFF");
    let mut values = SampleDecoder::decode(&longs).longs();
    assert_eq!(values.by_ref().collect::<Vec<_>>(), [1, -1]);
    assert!(!values.is_malformed());

    let cut = hex("22 0B 01000000 FFFFFFFF 000000");
    let mut values = SampleDecoder::decode(&cut).words();
    assert_eq!(values.by_ref().collect::<Vec<_>>(), [1, u32::MAX], "what is whole is delivered");
    assert_eq!((values.is_malformed(), values.rest_of_packed().len()), (true, 3));

    let cut = hex("2A 0F 0100000000000000 FFFFFFFFFFFFFF");
    let mut values = SampleDecoder::decode(&cut).longs();
    assert_eq!((values.by_ref().collect::<Vec<_>>(), values.is_malformed()), (vec![1], true));
}

#[test]
fn case_49_an_empty_packed_field() {
    let message = hex("1200");
    let decoder = SampleDecoder::decode(&message);
    let mut numbers = decoder.numbers();
    assert_eq!((numbers.next(), numbers.is_malformed()), (None, false));
    // There is no `has`: to distinguish an empty field from a missing one, read the fields.
    assert!(decoder.fields().first(2).is_some());
}

#[test]
fn case_50_a_packed_varint_that_is_cut_off_or_overlong() {
    for digits in ["12 04 01 AC02 80", "12 0E 01 AC02 FFFFFFFFFFFFFFFFFFFF01"] {
        let message = hex(digits);
        let mut numbers = SampleDecoder::decode(&message).numbers();
        assert_eq!(numbers.by_ref().collect::<Vec<_>>(), [1, 300]);
        assert!(numbers.is_malformed());
        assert_eq!(numbers.next(), None, "and it stays there");
    }
}

#[test]
fn case_51_unpacked_values_of_a_packed_field_are_read_too() {
    // Upstream's packed iterator would be empty. Protobuf requires that parsers accept both, also
    // mixed.
    let message = hex("1001 1002");
    assert_eq!(SampleDecoder::decode(&message).numbers().collect::<Vec<_>>(), [1, 2]);
    let message = hex("1001 12020203 0809 1200 1004 120105");
    let mut numbers = SampleDecoder::decode(&message).numbers();
    assert_eq!(numbers.by_ref().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert!(!numbers.is_malformed());
}

#[test]
fn the_number_of_fixed_values_is_known_before() {
    let payload = [0; 40];
    assert_eq!(Repeated::<kind::Float>::of_packed(&payload).size_hint(), (10, Some(10)));
    assert_eq!(Repeated::<kind::Double>::of_packed(&payload).size_hint(), (5, Some(5)));
    assert_eq!(Repeated::<kind::Bool>::of_packed(&payload).size_hint(), (0, Some(40)));
    let mut values = Repeated::<kind::Fixed64>::of_packed(&payload[..23]);
    assert_eq!(values.next(), Some(0));
    assert_eq!(values.size_hint(), (1, Some(1)));
}
