//! Values of all kinds of types, and their bytes.

#![allow(missing_docs, deprecated, reason = "a test")]

use std::fmt::Debug;

use esatto_fidl::{Reason, Wire, decode, encode};
use esatto_fidl_tests::test_shapes::*;

#[track_caller]
fn both<T: Wire<Value = T> + PartialEq + Debug>(value: &T, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut encoded = Vec::new();
    encode::<T>(value, &mut encoded).unwrap();
    assert_eq!(encoded, bytes, "{:x?}", encoded.chunks(8).collect::<Vec<_>>());
    assert_eq!(decode::<T>(&bytes, Vec::new()).unwrap(), *value);
    for length in 0..bytes.len() {
        assert!(decode::<T>(&bytes[..length], Vec::new()).is_err(), "{length} bytes");
    }
}

fn refused<T: Wire<Value: Debug>>(words: &[u64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    decode::<T>(&bytes, Vec::new()).unwrap_err().to_string()
}

const PRESENT: u64 = u64::MAX;

#[test]
fn structs_have_padding_and_defaults() {
    let point = Point::new(-1, 2);
    assert!(point.valid);
    both(&point, &[0xffff_ffff, 2, 1]);
    assert_eq!(
        refused::<Point>(&[0xff_ffff_ffff, 2, 1]),
        "cannot decode the message at byte 4: padding contains 0xff, expected 0"
    );
    assert_eq!(refused::<Point>(&[0, 2, 2]), "cannot decode Point.valid at byte 16: a bool is 2, expected 0 or 1");
    both(&Empty::new(), &[0]);
    both(&Wrapped(Point::new(1, 2)), &[1, 2, 1]);
}

#[test]
fn enums_and_bits_know_their_members() {
    both(&Color::DarkBlue, &[0x10]);
    assert!(refused::<Color>(&[2]).ends_with("the strict enum has no member 2"));
    both(&Level::LOW, &[0xffff_ffff]);
    let other = Level::from_primitive(77);
    both(&other, &[77]);
    assert!(other.is_unknown() && !Level::LOW.is_unknown() && Level::OTHER.is_unknown());
    assert_eq!(format!("{other:?} {:?}", Level::HIGH), "Level(77) HIGH");
    both(&(Mode::A | Mode::B), &[3]);
    both(&Mode::from_bits_retain(0x81), &[0x81]);
    assert_eq!(format!("{:?}", Mode::from_bits_retain(0x81)), "Mode(A | 0x80)");
    assert_eq!(Mode::from_bits_truncate(0x81), Mode::A);
    both(&Flags::TWO, &[2]);
    assert!(refused::<Flags>(&[4]).ends_with("the strict bits have no members for 0x4"));
    assert_eq!((BOTH, FAVORITE), (Mode::A | Mode::B, Color::DarkBlue));
    assert_eq!((MAX_LENGTH, NAME, RATIO, BIG), (7, "a\"b", -1500.0, u64::MAX));
}

#[test]
fn tables_may_contain_themselves() {
    both(&Options::default(), &[0, PRESENT]);
    let more = Options { color: Some(Color::Red), ..Options::default() };
    let options = Options { inner: Some(Inner::new()), more: Some(Box::new(more)), ..Options::default() };
    assert_eq!(options.inner.as_ref().unwrap().mode, Mode::A | Mode::B);
    let envelope = 1 << 48;
    both(&options, &[4, PRESENT, 0, 0, envelope | 3, 24, 1, PRESENT, envelope | 1]);
}

#[test]
fn unions_name_their_member() {
    both(&Choice::Number(1.0), &[1, 1 << 48 | 0x3f80_0000]);
    both(&Choice::Text("hi".to_owned()), &[2, 24, 2, PRESENT, 0x6968]);
    both(&Choice::Nothing(Empty {}), &[3, 1 << 48]);
    assert!(refused::<Choice>(&[9, 1 << 48]).ends_with("the union has no member 9"));
    assert!(refused::<Choice>(&[0, 0]).ends_with("a required object is absent"));
    both(&Open::Self_(Box::new(Open::Unknown(true))), &[2, 16, 3, 1 << 48 | 1]);
    let bytes: Vec<u8> = [9_u64, 1 << 48].iter().flat_map(|word| word.to_le_bytes()).collect();
    let unknown = decode::<Open>(&bytes, Vec::new()).unwrap();
    assert_eq!(unknown, Open::Unknown_ { ordinal: 9 });
    assert_eq!(encode::<Open>(&unknown, &mut Vec::new()).unwrap_err().reason(), Reason::UnknownOrdinal(9));
    let holder = Holder::new(Choice::Number(0.0), None);
    both(&holder, &[1, 1 << 48, 0, 0, 5]);
    let holder = Holder::new(Choice::Number(0.0), Some(Box::new(Open::Choice(Choice::Number(0.0)))));
    both(&holder, &[1, 1 << 48, 1, 16, 5, 1, 1 << 48]);
}

#[test]
fn trees_are_walked_depth_first() {
    let leaf = || Tree::new(None, Vec::new(), Options::default());
    let tree = Tree::new(Some(Box::new(leaf())), vec![leaf()], Options::default());
    let empty = [0, 0, PRESENT, 0, PRESENT];
    let words = [&[PRESENT, 1, PRESENT, 0, PRESENT][..], &empty, &empty].concat();
    both(&tree, &words);
}
