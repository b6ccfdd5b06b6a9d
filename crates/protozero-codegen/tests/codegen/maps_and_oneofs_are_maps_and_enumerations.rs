use esatto_protozero::{HeapBuffer, Owned};

use crate::fixture::{Everything, EverythingWriter, everything};
use crate::generated::names::{Fields, FieldsWriter, Log, LogReader_, Option_, fields};
use crate::generated::shapes::{Line, LineReader, LineWriter, flat};

#[test]
fn a_map_keeps_the_last_entry_of_a_key_and_fills_in_defaults() {
    let mut buffer = HeapBuffer::new();
    let mut w = EverythingWriter::from(buffer.message());
    w.counts_entry("k", 1).counts_entry("k", 2).counts_entry(b"\xff", -1);
    w.counts().value(7);
    w.counts().key("only");
    w.fields_by_id().key(5).value().name("five");
    drop(w);

    let value = Everything::decode(buffer.as_slice()).unwrap();
    let counts: Vec<(&[u8], i32)> = value.counts.iter().map(|(key, value)| (&key[..], *value)).collect();
    assert_eq!(counts, [(&b""[..], 7), (b"k", 2), (b"only", 0), (b"\xff", -1)]);
    assert_eq!(value.fields_by_id[&5].name.as_ref().unwrap(), "five");
    assert_eq!(Everything::decode(&value.encode()), Ok(value));
}

#[test]
fn maps_of_enumerations_bytes_and_messages() {
    let mut buffer = HeapBuffer::new();
    let mut w = LineWriter::from(buffer.message());
    w.colours_by_number_entry(-3, flat::Colour::RED).flags_entry(true, b"yes");
    w.named().key("a").value().x(1).y(-1);
    w.colours([flat::Colour::RED, flat::Colour(7)]);
    drop(w);

    let read = LineReader::new(buffer.as_slice());
    assert_eq!(read.colours_by_number().next().unwrap().value(), Some(flat::Colour::RED));
    let line = Line::decode(buffer.as_slice()).unwrap();
    assert_eq!(line.colours_by_number[&-3], flat::Colour::RED);
    assert_eq!(line.flags[&true], b"yes");
    assert_eq!(line.named[&b"a"[..]], flat::Point_ { x: Some(1), y: Some(-1), ..Default::default() });
    assert_eq!(Line::decode(&line.encode()), Ok(line));
}

#[test]
fn a_malformed_entry_is_an_error_with_its_position() {
    // An entry whose value, a message, ends too early: field 94, 6 bytes, {1: 5, 2: {1: 9 bytes}}.
    let bytes = b"\x18\x01\xf2\x05\x06\x08\x05\x12\x02\x0a\x09";
    assert_eq!(Everything::decode(bytes).unwrap_err().offset, 9);
    assert_eq!(Everything::decode(b"\xea\x05\x01\x08").unwrap_err().offset, 3);
}

#[test]
fn the_last_member_of_a_oneof_wins() {
    let mut buffer = HeapBuffer::new();
    let mut w = EverythingWriter::from(buffer.message());
    w.chosen_text("text").chosen_number(7);
    drop(w);
    let value = Everything::decode(buffer.as_slice()).unwrap();
    assert_eq!(value.choice, Some(everything::Choice::ChosenNumber(7)));
    assert_eq!(value.encode(), b"\xd8\x05\x07");
}

#[test]
fn a_message_in_a_oneof_is_merged_unless_another_member_stands_between() {
    let log = |text: &str| Log { text: Some(text.into()), ..Log::default() };
    let mut buffer = HeapBuffer::new();
    let mut w = FieldsWriter::from(buffer.message());
    w.log().text("one");
    w.log().inner().log();
    drop(w);
    let fields::ChoiceOfNames::Log(merged) = Fields::decode(buffer.as_slice()).unwrap().choice_of_names.unwrap() else {
        panic!("a log");
    };
    assert!(merged.text.unwrap() == "one" && merged.inner.is_some());

    let mut w = FieldsWriter::from(buffer.message());
    w.some(true);
    w.log().text("two");
    w.none(Option_(99));
    w.SELF().log().text("three");
    drop(w);
    let value = Fields::decode(buffer.as_slice()).unwrap();
    let reader = LogReader_ { log: Some(log("three")), ..LogReader_::default() };
    assert_eq!(value.choice_of_names, Some(fields::ChoiceOfNames::SELF(reader)));
    assert_eq!(Fields::decode(&value.encode()), Ok(value));
}

#[test]
fn a_member_with_a_foreign_wire_type_is_unknown_and_changes_nothing() {
    let value = Everything::decode(b"\xd8\x05\x07\xda\x05\x01x").unwrap();
    assert_eq!(value.choice, Some(everything::Choice::ChosenNumber(7)));
    assert_eq!(value.unknown_fields, b"\xda\x05\x01x");
}
