//! Counts of the fields that a filter has met.

use crate::util::{Message, case_71, program};
use esatto_filter::{Filter, MessageId, Usage};

fn counts(filter: &Filter) -> Vec<(Vec<u8>, i64)> {
    filter.usage().expect("it was asked for").iter().map(|(path, count)| (path.to_vec(), count)).collect()
}

#[test]
fn allowed_fields_count_up_and_dropped_fields_down() {
    let mut filter = Filter::new(case_71()).with_usage();
    let message = Message::default()
        .varint(1, 1)
        .varint(1, 2)
        .bytes(2, b"no")
        .message(6, Message::default().varint(2, 1).varint(4, 1))
        .message(6, Message::default())
        .fixed32(300, 1)
        .varint(0, 1);
    for _ in 0..2 {
        filter.filter_to_vec(&message.0).unwrap();
    }
    let expected: [(&[u8], i64); 6] =
        [(b"\x01", 4), (b"\x02", -2), (b"\x06", 4), (b"\x06\x02", 2), (b"\x06\x04", -2), (b"\xac\x02", -2)];
    assert_eq!(counts(&filter), expected.map(|(path, count)| (path.to_vec(), count)));
    assert_eq!(Usage::fields(b"\x06\xac\x02").collect::<Vec<_>>(), [6, 300]);
}

#[test]
fn a_path_begins_at_the_root_of_the_filter() {
    let program = program(|builder| {
        builder.nested(1, MessageId(1))?.end_message();
        builder.nested(2, MessageId(1))?.end_message();
        Ok(())
    });
    let mut filter = Filter::new(program).with_root(&[1]).unwrap().with_usage();
    let message = Message::default().message(2, Message::default().message(2, Message::default().varint(3, 1)));
    filter.filter_to_vec(&message.0).unwrap();
    assert_eq!(counts(&filter), [(vec![2], 1), (vec![2, 2], 1), (vec![2, 2, 3], -1)]);
}

#[test]
fn nothing_is_counted_unless_asked() {
    assert!(Filter::new(case_71()).usage().is_none());
}

#[test]
fn input_cannot_make_the_counts_grow_without_end() {
    let mut filter = Filter::new(case_71()).with_usage();
    for round in 0..8 {
        let fields = 0..20_000;
        let message = fields.fold(Message::default(), |message, field| message.varint(round * 20_000 + field + 1, 0));
        filter.filter_to_vec(&message.0).unwrap();
    }
    assert_eq!(counts(&filter).len(), 64 * 1024);
}
