//! Fields of all kinds.

use esatto_protozero::{Fields, Value};

use super::page_builder::PageBuilder;
use super::session::{Outcome, Session};
use crate::ftrace::{GenericEncoding, ParseStatus};

const COMMON: &str = "format:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

/// Makes a format file; fields are declaration, offset, size, sign.
fn format(name: &str, fields: &[(&str, u32, u32, u8)]) -> Vec<u8> {
    let mut file = format!("name: {name}\nID: 7\n{COMMON}");
    for (declaration, offset, size, signed) in fields {
        file += &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
    }
    file.into_bytes()
}

/// Data of an event of thread 33: `fields` begin at offset 8.
fn data(fields: &[u8]) -> Vec<u8> {
    let mut data = [&7_u32.to_le_bytes()[..], &33_i32.to_le_bytes(), fields].concat();
    data.resize(data.len().next_multiple_of(4), 0);
    data
}

fn encode(session: Session, data: &[u8]) -> Outcome {
    session.encode(&PageBuilder::at(1).long_event(1, data).build())
}

/// Number and value of a field: a number, or bytes as an error.
type FieldValue = (u32, Result<u64, Vec<u8>>);

/// Returns number and value of the fields of the first event's message.
fn message(outcome: &Outcome) -> (u32, Vec<FieldValue>) {
    let event = outcome.bundles().flat_map(|bundle| bundle.event()).next().expect("an event");
    let message = Fields::new(event.as_bytes()).find(|field| field.id > 2).expect("a message");
    let fields = Fields::new(message.as_bytes()).map(|field| match field.value {
        Value::Bytes(bytes) => (field.id, Err(bytes.to_vec())),
        _ => (field.id, Ok(field.as_u64())),
    });
    (message.id, fields.collect())
}

#[test]
fn a_generic_event_has_a_message_that_the_bundle_describes() {
    let fields = [("short a", 8, 2, 1), ("struct x b", 12, 3, 0), ("u64 c", 16, 8, 0), ("char d[4]", 24, 4, 0)];
    let session = Session::new().with_format("my", "event", &format("event", &fields));
    let values = [&(-2_i16).to_le_bytes()[..], &[0; 6], &u64::MAX.to_le_bytes(), b"ab\0d"].concat();
    let outcome = encode(session, &data(&values));
    let expected = vec![(1, Ok(u64::MAX - 1)), (2, Ok(u64::MAX)), (3, Err(b"ab".to_vec()))];
    assert_eq!(message(&outcome), (65536, expected));

    let bundle = outcome.bundles().next().unwrap();
    let descriptor = bundle.generic_event_descriptors().next().unwrap();
    assert_eq!((descriptor.field_id(), descriptor.group_name()), (Some(65536), Some(&b"my"[..])));
    let described = descriptor.event_descriptor().unwrap();
    let mut names = Vec::new();
    for field in Fields::new(described).filter(|field| field.id == 2) {
        let of = |number| Fields::new(field.as_bytes()).find(|field| field.id == number).unwrap();
        names.push((of(1).as_bytes().to_vec(), of(3).as_u64(), of(5).as_u64()));
    }
    assert_eq!(names, [(b"a".to_vec(), 1, 3), (b"c".to_vec(), 2, 4), (b"d".to_vec(), 3, 9)]);
}

#[test]
fn the_older_encoding_names_each_field() {
    let fields = [("int a", 8, 4, 1), ("u32 b", 12, 4, 0), ("char c[4]", 16, 4, 0)];
    let mut session = Session::new().with_format("my", "event", &format("event", &fields));
    session.options.generic_encoding = GenericEncoding::Named;
    let outcome = encode(session, &data(b"\xff\xff\xff\xff\x05\0\0\0hey\0"));
    let event = outcome.bundles().flat_map(|bundle| bundle.event()).next().unwrap();
    let generic = event.generic().unwrap();
    assert_eq!(generic.event_name(), Some(&b"event"[..]));
    let fields: Vec<_> = generic.field().map(|f| (f.int_value(), f.uint_value(), f.str_value())).collect();
    assert_eq!(fields, [(Some(-1), None, None), (None, Some(5), None), (None, None, Some(&b"hey"[..]))]);
    assert!(outcome.bundles().next().unwrap().generic_event_descriptors().next().is_none());
}

#[test]
fn dynamic_fields_are_found_from_the_event_and_from_the_field() {
    let fields = [
        ("__data_loc char[] a", 8, 4, 1),
        ("__rel_loc char[] b", 12, 4, 1),
        ("__data_loc u8[] c", 16, 4, 0),
        ("__data_loc char[] empty", 20, 4, 0),
    ];
    let session = Session::new().with_format("my", "event", &format("event", &fields));
    let places = [4 << 16 | 24_u32, 3 << 16 | (28 - 16), 2 << 16 | 31, 99];
    let mut values: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()).collect();
    values.extend(b"abc\0de\0\0f");
    let outcome = encode(session, &data(&values));
    let bytes = |text: &[u8]| Err(text.to_vec());
    assert_eq!(message(&outcome).1, [(1, bytes(b"abc")), (2, bytes(b"de")), (3, bytes(b"\0f"))]);
}

#[test]
fn a_dynamic_field_outside_the_event_makes_it_invalid() {
    for (declaration, place) in [
        ("__data_loc char[] a", 1 << 16 | 12_u32),
        ("__rel_loc char[] a", 1 << 16),
        ("__data_loc u8[] a", 0xffff_ffff),
        ("__rel_loc u8[] a", 0xffff_ffff),
    ] {
        let session = Session::new().with_format("my", "event", &format("event", &[(declaration, 8, 4, 0)]));
        let outcome = encode(session, &data(&place.to_le_bytes()));
        let errors: Vec<_> = outcome.encoder.errors().numbers().collect();
        assert_eq!(errors, [ParseStatus::InvalidEvent as i32], "{declaration}");
        assert!(outcome.bundles().all(|bundle| bundle.event().next().is_none()));
    }
}

#[test]
fn narrower_fields_than_the_schema_s_are_widened_and_wider_ones_left_out() {
    // The schema has irq as int32 and ret as int32.
    let file = |irq: (&'static str, u32)| format("irq_handler_exit", &[(irq.0, 8, irq.1, 1), ("int ret", 16, 4, 1)]);
    let encode = |irq| {
        let session = Session::new().with_format("irq", "irq_handler_exit", &file(irq));
        message(&encode(session, &data(&[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0])))
    };
    let minus_two = Ok(u64::MAX - 1);
    assert_eq!(encode(("short irq", 2)), (37, vec![(1, minus_two.clone()), (2, Ok(1))]));
    assert_eq!(encode(("signed char irq", 1)), (37, vec![(1, minus_two), (2, Ok(1))]));
    assert_eq!(encode(("long irq", 8)), (37, vec![(2, Ok(1))]));
}

#[test]
fn addresses_are_written_as_indexes() {
    let fields = [("void * a", 8, 8, 0), ("void* b", 16, 8, 0), ("void * c", 24, 8, 0)];
    let session = Session::new().with_format("my", "event", &format("event", &fields));
    let values: Vec<u8> =
        [0xffff_ffff_8100_0010_u64, 5, 0xffff_ffff_8100_0010].iter().flat_map(|a| a.to_le_bytes()).collect();
    let outcome = encode(session, &data(&values));
    assert_eq!(message(&outcome).1, [(1, Ok(1)), (2, Ok(2)), (3, Ok(1))]);
}

#[test]
fn threads_and_files_are_observed() {
    let fields = [("pid_t pid", 8, 4, 1), ("dev_t dev", 12, 4, 0), ("ino_t ino", 16, 8, 0)];
    let session = Session::new().with_format("my", "event", &format("event", &fields));
    let values = [&44_u32.to_le_bytes()[..], &(8_u32 << 20 | 0x101).to_le_bytes(), &99_u64.to_le_bytes()].concat();
    let outcome = encode(session, &data(&values));
    assert_eq!(outcome.observed.tids, [33, 44]);
    assert_eq!(outcome.observed.inodes, [(0x10_0801, 99)], "major 8, minor 0x101");
}

#[test]
fn all_files_of_an_event_are_observed() {
    // The folder comes after the file, as in events of ext4; the device may come last.
    let fields = [("unsigned long i_ino", 8, 8, 0), ("ino_t parent", 16, 8, 0), ("dev_t s_dev", 24, 4, 0)];
    let session = Session::new().with_format("my", "event", &format("event", &fields));
    let values = [&7_u64.to_le_bytes()[..], &8_u64.to_le_bytes(), &(8_u32 << 20 | 1).to_le_bytes()].concat();
    let outcome = encode(session, &data(&values));
    assert_eq!(outcome.observed.inodes, [(0x801, 7), (0x801, 8)]);
}

#[test]
fn an_unreadable_print_format_is_assumed() {
    let mut session = Session::new();
    let id = session.table.look_up("ftrace", "print", || None);
    session.options.events.insert(id.unwrap());
    let mut text = [&5_u32.to_le_bytes()[..], &1_u32.to_le_bytes(), &[0; 8], b"hello\n\0"].concat();
    text.resize(24, 0);
    let outcome = encode(session, &text);
    assert_eq!(message(&outcome), (3, vec![(2, Err(b"hello\n".to_vec()))]));
}
