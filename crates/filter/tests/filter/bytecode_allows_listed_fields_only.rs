//! Filtered messages.

use crate::util::{Message, case_71, program};
use esatto_filter::{Action, Builder, Error, Filter, MessageId, Program, Version};

#[test]
fn case_71_only_allowed_fields_remain_three_times_in_a_row() {
    let mut filter = Filter::new(case_71());
    let inner = Message::default().fixed32(1, 7).fixed32(2, f32::EPSILON.to_bits()).varint(4, 1).bytes(5, b"");
    let message = Message::default()
        .varint(1, i64::from(i32::MIN) as u64)
        .bytes(2, b"no")
        .varint(3, u64::MAX)
        .fixed64(4, 1)
        .message(6, inner)
        .bytes(11, b"yes")
        .fixed64(20, f64::MIN_POSITIVE.to_bits())
        .varint(21, 1);
    let inner = Message::default().fixed32(2, f32::EPSILON.to_bits()).bytes(5, b"");
    let expected = Message::default()
        .varint(1, i64::from(i32::MIN) as u64)
        .varint(3, u64::MAX)
        .message(6, inner)
        .bytes(11, b"yes")
        .fixed64(20, f64::MIN_POSITIVE.to_bits());
    for _ in 0..3 {
        assert_eq!(filter.filter_to_vec(&message.0).unwrap(), expected.0);
    }
}

#[test]
fn case_72_unknown_fields_below_a_simple_permission_survive() {
    let message = Message::default().message(3, Message::default().varint(999, 1).bytes(1, b"x"));
    assert_eq!(Filter::new(case_71()).filter_to_vec(&message.0).unwrap(), message.0);
    // Even if they are no fields: nothing below is read.
    let message = Message::default().bytes(3, b"\xff\xff");
    assert_eq!(Filter::new(case_71()).filter_to_vec(&message.0).unwrap(), message.0);
}

#[test]
fn case_73_the_root_can_be_a_nested_message() {
    let program = program(|builder| {
        builder.nested(2, MessageId(1))?.pass(3)?.end_message();
        builder.pass(1)?.nested(4, MessageId(2))?.end_message();
        builder.pass(5)?.end_message();
        Ok(())
    });
    let message = Message::default().varint(1, 1).varint(3, 3).varint(5, 5);
    for (path, kept) in [(&[][..], 3), (&[2], 1), (&[2, 4], 5)] {
        let mut filter = Filter::new(program.clone()).with_root(path).unwrap();
        let expected = Message::default().varint(kept, kept.into());
        assert_eq!(filter.filter_to_vec(&message.0).unwrap(), expected.0, "{path:?}");
    }
    for (path, message, field) in [(&[1][..], 0, 1), (&[3], 0, 3), (&[2, 1], 1, 1), (&[2, 4, 5], 2, 5)] {
        let error = Filter::new(program.clone()).with_root(path).unwrap_err();
        assert!(
            matches!(error, Error::Root { message: m, field: f } if (m, f) == (MessageId(message), field)),
            "{path:?}: {error}"
        );
    }
}

#[test]
fn lengths_keep_the_size_that_the_old_one_needs() {
    // 130 bytes need a length of two bytes. The rest needs one, and is padded.
    let inner = Message::default().varint(2, 1).bytes(1, &[0; 126]);
    assert_eq!(inner.0.len(), 130);
    let message = Message::default().message(6, inner);
    assert_eq!(Filter::new(case_71()).filter_to_vec(&message.0).unwrap(), b"\x32\x82\x00\x10\x01");
    // A length that was padded is not padded again.
    assert_eq!(Filter::new(case_71()).filter_to_vec(b"\x32\x82\x80\x00\x10\x01").unwrap(), b"\x32\x02\x10\x01");
}

#[test]
fn varints_tags_and_lengths_become_short() {
    let mut filter = Filter::new(case_71());
    assert_eq!(filter.filter_to_vec(b"\x88\x80\x00\x81\x80\x80\x00").unwrap(), b"\x08\x01");
    assert_eq!(filter.filter_to_vec(b"\x8a\x00\x82\x80\x00ab").unwrap(), b"\x0a\x02ab");
    // Only one bit of the tenth byte of a varint counts.
    let longest = [&b"\x08"[..], &[0xff; 9], &[0x7f]].concat();
    let expected = [&b"\x08"[..], &[0xff; 9], &[0x01]].concat();
    assert_eq!(filter.filter_to_vec(&longest).unwrap(), expected);
}

#[test]
fn empty_messages_are_kept_as_such() {
    let mut filter = Filter::new(case_71());
    assert_eq!(filter.filter_to_vec(b"").unwrap(), b"");
    assert_eq!(filter.filter_to_vec(b"\x32\x00").unwrap(), b"\x32\x00");
    // A message that becomes empty stays.
    assert_eq!(filter.filter_to_vec(b"\x32\x02\x08\x01").unwrap(), b"\x32\x00");
}

#[test]
fn a_wire_type_that_does_not_fit_the_action_is_dropped() {
    let program = program(|builder| {
        builder.nested(1, MessageId(0))?.string(2, Default::default())?.end_message();
        Ok(())
    });
    let message = Message::default().varint(1, 1).fixed32(1, 1).fixed64(1, 1).varint(2, 1).fixed32(2, 1).bytes(2, b"x");
    let expected = Message::default().bytes(2, b"x");
    assert_eq!(Filter::new(program).filter_to_vec(&message.0).unwrap(), expected.0);
}

#[test]
fn a_program_that_was_never_loaded_allows_nothing() {
    let mut filter = Filter::new(Program::default());
    let message = Message::default().varint(1, 1).message(2, Message::default().varint(1, 1));
    assert_eq!(filter.filter_to_vec(&message.0).unwrap(), b"");
    assert!(filter.with_root(&[1]).is_err());
}

#[test]
fn fields_are_found_on_both_sides_of_128() {
    let program = program(|builder| {
        builder.pass_range(126..=130)?.nested(135, MessageId(0))?.pass_range(1000..=1002)?.end_message();
        Ok(())
    });
    let allowed: Vec<u32> = (0..2000).filter(|field| program.action(MessageId::ROOT, *field).is_some()).collect();
    assert_eq!(allowed, [126, 127, 128, 129, 130, 135, 1000, 1001, 1002]);
    assert_eq!(program.action(MessageId::ROOT, 135), Some(Action::Enter(MessageId(0))));
    assert_eq!(program.action(MessageId(1), 126), None, "there is no such message");
    assert_eq!(program.action(MessageId(u32::MAX), 126), None);
}

#[test]
fn a_range_cannot_smuggle_fields_through_tags_that_wrap() {
    // Fields 2^29 − 1 to 2^29 + 4 in bytecode that no builder makes. The last ones would become
    // fields 0 to 4.
    let huge = ((1 << 29) - 1) << 3 | 2;
    let mut bytes = crate::bytecode_that_is_wrong_is_refused::encode(&[huge, 6, 0]);
    let program = Program::load(&bytes).unwrap();
    assert_eq!(program.action(MessageId::ROOT, (1 << 29) - 1), Some(Action::Pass));
    assert_eq!(program.action(MessageId::ROOT, 1 << 29), None);
    bytes = Message::default().raw_varint(((1u64 << 29) + 3) << 3).raw_varint(1).0;
    assert_eq!(Filter::new(program).filter_to_vec(&bytes).unwrap(), b"");
}

#[test]
fn deep_nesting_needs_no_stack() {
    let recursive = program(|builder| {
        builder.nested(1, MessageId(0))?.pass(2)?.end_message();
        Ok(())
    });
    let mut message = Message::default().varint(2, 1).varint(3, 1);
    let mut expected = Message::default().varint(2, 1);
    let mut levels = 0;
    // Building takes quadratic time, so not millions.
    while message.0.len() < 20_000 {
        message = Message::default().message(1, message);
        levels += 1;
    }
    let filtered = Filter::new(recursive).filter_to_vec(&message.0).unwrap();
    assert!(levels > 5000 && filtered.len() + 2 == message.0.len());
    for _ in 0..levels {
        expected = Message::default().message(1, expected);
    }
    let depth = |mut bytes: &[u8]| {
        let mut depth = 0;
        while let Some(field) = esatto_protozero::Fields::new(bytes).next().filter(|field| field.id == 1) {
            bytes = field.as_bytes();
            depth += 1;
        }
        (depth, bytes.to_vec())
    };
    assert_eq!(depth(&filtered), (levels, b"\x10\x01".to_vec()));
    assert_eq!(depth(&expected.0), depth(&filtered));
}

#[test]
fn a_program_says_what_it_allows() {
    let text = case_71().to_string();
    assert_eq!(text, "message 0\n  1\n  3\n  6 is message 1\n  11 to 20\nmessage 1\n  2\n  5\n");
    assert!(format!("{:?}", case_71()).contains("Enter(MessageId(1))"));
}

#[test]
fn a_builder_refuses_fields_out_of_order_and_unfinished_messages() {
    let mut builder = Builder::new(Version::V2);
    assert!(matches!(builder.pass(0), Err(Error::FieldOrder { field: 0 })));
    assert!(matches!(builder.pass(1 << 29), Err(Error::FieldOrder { .. })));
    assert!(matches!(builder.build(), Err(Error::Unfinished)));
    builder.pass_range(5..=9).unwrap();
    assert!(matches!(builder.pass(9), Err(Error::FieldOrder { field: 9 })));
    #[expect(clippy::reversed_empty_ranges, reason = "that is the mistake")]
    let empty = 20..=19;
    assert!(matches!(builder.pass_range(empty), Err(Error::FieldOrder { field: 20 })));
    assert!(matches!(builder.pass_range(20..=u32::MAX), Err(Error::FieldOrder { field: 20 })));
    assert!(matches!(builder.build(), Err(Error::Unfinished)));
    builder.nested(30, MessageId(1)).unwrap().end_message();
    assert!(matches!(builder.build(), Err(Error::NoSuchMessage { message: MessageId(1), messages: 1 })));
    builder.end_message();
    assert_eq!(Program::load(&builder.build().unwrap().bytecode).unwrap().message_count(), 2);
}
