use esatto_protozero::{DecodeError, MAX_DECODE_DEPTH, Owned};

use crate::fixture::{Color, Everything, Modern, Nothing, everything};

#[test]
fn unknown_fields_follow_the_known_ones() {
    let nothing = Nothing::decode(b"\x08\x01\xa2\x06\x02hi").unwrap();
    assert_eq!(nothing.unknown_fields, b"\x08\x01\xa2\x06\x02hi");
    assert_eq!(nothing.encode(), nothing.unknown_fields);

    let modern = Modern::decode(b"\x78\x01\x10\x05").unwrap();
    assert_eq!(modern, Modern { explicit: Some(5), unknown_fields: b"\x78\x01".to_vec(), ..Modern::default() });
    assert_eq!(modern.encode(), b"\x10\x05\x78\x01");
}

#[test]
fn fields_with_large_numbers_survive() {
    let value = Everything { far_away: Some(7), ..Everything::default() };
    assert_eq!(value.encode(), b"\xf8\xff\xff\xff\x0f\x07");
    assert_eq!(Everything::decode(&value.encode()), Ok(value.clone()));
    // Of a schema that does not know the field.
    let modern = Modern::decode(&value.encode()).unwrap();
    assert_eq!(modern, Modern { unknown_fields: value.encode(), ..Modern::default() });
    assert_eq!(modern.encode(), value.encode());
}

#[test]
fn a_known_number_with_a_foreign_wire_type_is_unknown() {
    let value = Modern::decode(b"\x0a\x01x").unwrap();
    assert_eq!(value, Modern { unknown_fields: b"\x0a\x01x".to_vec(), ..Modern::default() });
}

#[test]
fn numbers_without_a_name_are_values() {
    let value = Everything::decode(b"\x80\x01\x63").unwrap();
    assert_eq!(value.color, Some(Color(99)));
    assert_eq!(Color(99).name(), None);
    assert_eq!(format!("{:?} {:?} {:?}", Color(99), Color::CRIMSON, Color::default()), "99 RED RED");
    assert_eq!(i32::from(Color::GREEN), -1);
}

#[test]
fn a_second_occurrence_of_a_message_is_merged_and_of_a_scalar_replaces() {
    let value = Everything::decode(b"\x18\x01\x18\x02\xa2\x01\x02\x08\x01\xa2\x01\x02\x10\x02").unwrap();
    assert_eq!(value.an_int32, Some(2));
    let modern = value.modern.unwrap();
    assert_eq!((modern.implicit, modern.explicit), (Some(1), Some(2)));
}

#[test]
fn errors_name_the_position() {
    assert_eq!(Modern::decode(b"\x08\x01\x08"), Err(DecodeError { offset: 2 }));
    assert_eq!(Everything::decode(b"\x18\x01\xa2\x01\x03\x08\x01\x08"), Err(DecodeError { offset: 7 }));
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels| {
        (0..levels).fold(Vec::new(), |inner: Vec<u8>, _| {
            let outer = Everything {
                unknown_fields: [&b"\x92\x01"[..], &len(inner.len()), &inner].concat(),
                ..Default::default()
            };
            outer.encode()
        })
    };
    assert!(Everything::decode(&nested(MAX_DECODE_DEPTH)).is_ok());
    assert!(Everything::decode(&nested(MAX_DECODE_DEPTH + 1)).is_err());
}

#[test]
fn keywords_of_rust_are_escaped() {
    let value = Everything {
        r#type: Some(1),
        self_: Some(2),
        message: Some("m".into()),
        unknown_fields_: Some("u".into()),
        bRequest: Some(true),
        field: Some(everything::Field { name: Some("f".into()), ..Default::default() }),
        ..Default::default()
    };
    assert_eq!(Everything::decode(&value.encode()), Ok(value));
    assert_eq!((everything::field::BREQUEST, everything::field::FAR_AWAY), (104, 536_870_911));
}

fn len(mut n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

#[test]
fn packed_values_have_to_be_whole() {
    // `packed_int32s = 63` and `packed_sfixed32s = 71`, after two bytes of something else.
    assert_eq!(Everything::decode(b"\x18\x01\xfa\x03\x02\x01\x80"), Err(DecodeError { offset: 6 }));
    assert_eq!(Everything::decode(b"\x18\x01\xba\x04\x05\x01\x00\x00\x00\x02"), Err(DecodeError { offset: 9 }));
    assert_eq!(Everything::decode(b"\xba\x04\x04\x01\x00\x00\x00").unwrap().packed_sfixed32s, [1]);
}
