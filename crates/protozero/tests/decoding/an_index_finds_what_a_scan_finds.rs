use esatto_protozero::{DecodeError, Fields, HeapBuffer};

use crate::hex;
use crate::sample::{SampleDecoder, SampleReader};

#[test]
fn case_40_the_last_occurrence_wins_and_all_can_be_walked() {
    let bytes = hex("080A 1014 181E 080B 1015 1016");
    let decoder = SampleDecoder::decode(&bytes);
    assert_eq!(decoder.id(), Some(11));
    assert_eq!(decoder.numbers().last(), Some(22));
    assert_eq!(decoder.ids().collect::<Vec<_>>(), [10, 11], "also if the schema says that it is singular");
    assert_eq!(decoder.numbers().collect::<Vec<_>>(), [20, 21, 22]);
    assert_eq!(decoder.offsets().collect::<Vec<_>>(), [15]);
}

#[test]
fn case_41_two_thousand_occurrences_are_iterated_in_order() {
    let mut buffer = HeapBuffer::new();
    let mut message = buffer.message();
    for i in 0..2000 {
        message.varint(2, i);
    }
    drop(message);
    let bytes = buffer.to_vec();
    assert!(SampleDecoder::decode(&bytes).numbers().eq(0..2000));
}

#[test]
fn case_46_a_decoder_can_be_moved() {
    let bytes = hex("0805 3202 6869");
    let mut decoders = vec![SampleDecoder::decode(&[]); 3];
    {
        let decoder = Box::new(SampleDecoder::decode(&bytes));
        decoders[1] = *decoder;
    }
    decoders.swap(0, 1);
    assert_eq!((decoders[0].id(), decoders[0].text()), (Some(5), Some(&b"hi"[..])));
    assert_eq!(decoders[1].id(), None);
    // A slot for each of the nine fields up to 999, and no pointer except that to the bytes.
    assert_eq!(size_of::<SampleDecoder<'_>>(), 9 * 8 + size_of::<&[u8]>() + size_of::<usize>());
}

#[test]
fn case_54_a_field_with_a_large_number_is_repeated() {
    let bytes = hex("A00601 0801 A00602 A20603030405 A00606");
    let decoder = SampleDecoder::decode(&bytes);
    assert_eq!(decoder.hundreds().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(decoder.id(), Some(1));
}

#[test]
fn fields_without_a_slot_are_found_by_scanning() {
    let bytes = hex("B83E03 C03E01 F9FFFFFF0F 000000000000F83F C03E00");
    let (reader, decoder) = (SampleReader::new(&bytes), SampleDecoder::decode(&bytes));
    assert_eq!((reader.last_with_a_slot(), decoder.last_with_a_slot()), (Some(-2), Some(-2)));
    assert_eq!((reader.first_without(), decoder.first_without()), (Some(false), Some(false)));
    assert_eq!((reader.farthest(), decoder.farthest()), (Some(1.5), Some(1.5)));
    assert_eq!(decoder.without().collect::<Vec<_>>(), [true, false]);
}

#[test]
fn an_occurrence_of_another_wire_type_does_not_count() {
    let bytes = hex("0805 0A0178 320179 3007");
    let (reader, decoder) = (SampleReader::new(&bytes), SampleDecoder::decode(&bytes));
    assert_eq!((reader.id(), decoder.id()), (Some(5), Some(5)));
    assert_eq!((reader.text(), decoder.text()), (Some(&b"y"[..]), Some(&b"y"[..])));
    assert_eq!((reader.hundred(), decoder.hundred()), (None, None));
    assert_eq!(SampleDecoder::decode(b"\x30\x07").text(), None);
}

#[test]
fn fields_before_a_mistake_can_be_read() {
    for tail in ["08", "0A05 00", "0B", "0001", "0D0102"] {
        let bytes = [hex("0801 1002"), hex(tail)].concat();
        let decoder = SampleDecoder::decode(&bytes);
        assert_eq!((decoder.id(), decoder.numbers().collect::<Vec<_>>()), (Some(1), vec![2]));
        assert_eq!(decoder.check(), Err(DecodeError { offset: 4 }), "{tail}");
        assert_eq!(SampleReader::new(&bytes).check(), decoder.check());
        assert_eq!(SampleReader::parse(&bytes).err(), Some(DecodeError { offset: 4 }));
    }
    assert_eq!(SampleDecoder::decode(b"\x08\x01").check(), Ok(()));
}

#[test]
fn a_oneof_tells_which_member_came_last() {
    let choice = |digits: &str| {
        let bytes = hex(digits);
        let (reader, decoder) = (SampleReader::new(&bytes), SampleDecoder::decode(&bytes));
        assert_eq!(reader.choice(), decoder.choice());
        assert_eq!(reader.far_choice(), decoder.far_choice());
        let (choice, far_choice) = (decoder.choice(), decoder.far_choice());
        (choice.map(|field| field.id), far_choice.map(|field| field.id))
    };
    assert_eq!(choice(""), (None, None));
    assert_eq!(choice("1001"), (None, None));
    assert_eq!(choice("0801 320178 1001"), (Some(6), Some(1)));
    assert_eq!(choice("320178 A00601 0801"), (Some(1), Some(1)));
    assert_eq!(choice("0801 F9FFFFFF0F 0000000000000000 A00601"), (Some(100), Some(536_870_911)));
}

#[test]
fn unknown_fields_are_those_that_the_schema_does_not_have() {
    let bytes = hex("4001 0802 4A0178 C03E01 F0FFFFFF0F03 08");
    let decoder = SampleDecoder::decode(&bytes);
    let unknown: Vec<_> = decoder.unknown_fields().collect();
    assert_eq!(unknown.iter().map(|field| field.id).collect::<Vec<_>>(), [8, 9, 536_870_910]);
    let mut buffer = HeapBuffer::new();
    let mut message = buffer.message();
    unknown.iter().for_each(|field| field.write_to(&mut message));
    drop(message);
    assert_eq!(buffer.to_vec(), hex("4001 4A0178 F0FFFFFF0F03"), "they can be passed on");
}

#[test]
fn nested_messages_are_read_on_demand() {
    // The first child is malformed inside, which shows only if it is read.
    let bytes = hex("3A0108 3A02 0807 3A04 3A02 0809");
    let decoder = SampleDecoder::decode(&bytes);
    assert_eq!(decoder.check(), Ok(()));
    let children: Vec<_> = decoder.children().map(SampleReader::decoder).collect();
    assert_eq!(children.iter().map(|child| child.check().is_ok()).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(children[1].id(), Some(7));
    assert_eq!(decoder.child().and_then(|child| child.decoder().child()).and_then(|child| child.id()), Some(9));
}

#[test]
fn skipped_fields_do_not_change_the_places() {
    // Before and between the occurrences is a field whose number is too large.
    let bytes = hex("8080808010 01 0805 8080808010 02 1001 8080808010 03 0806 8080808010 04 1002 8080808010 05");
    let decoder = SampleDecoder::decode(&bytes);
    assert_eq!((decoder.id(), decoder.ids().collect::<Vec<_>>()), (Some(6), vec![5, 6]));
    assert_eq!(decoder.numbers().collect::<Vec<_>>(), [1, 2]);
    assert_eq!((decoder.check(), Fields::new(&bytes).count()), (Ok(()), 4));
}

#[test]
fn an_empty_message_has_nothing() {
    let decoder = SampleReader::default().decoder();
    assert_eq!((decoder.id(), decoder.text(), decoder.check()), (None, None, Ok(())));
    assert_eq!((decoder.numbers().next(), decoder.children().count(), decoder.unknown_fields().count()), (None, 0, 0));
    assert!(decoder.as_bytes().is_empty());
}
