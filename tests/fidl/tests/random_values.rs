//! Random values come back from their bytes, and bytes have at most one value.

#![allow(missing_docs, deprecated, reason = "a test")]

use std::fmt::Debug;

use esatto_fidl::{Reason, Wire, decode, encode};
use esatto_fidl_tests::test_conformance::{
    self as conformance, Arrays, Chain, Int32Holder, Int64Holder, ManyVectors, MaybeTwoShortTexts, Pair, Sample,
    Simple, UnionInTable, UnionOfVector, Vectors,
};
use esatto_fidl_tests::test_shapes::{Choice, Color, Empty, Holder, Inner, Level, Mode, Open, Options, Point, Tree};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

fn encoded<T: Wire<Value = T>>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode::<T>(value, &mut bytes).unwrap();
    bytes
}

fn comes_back<T: Wire<Value = T> + PartialEq + Debug>(value: &T) {
    let bytes = encoded(value);
    assert_eq!(bytes.len() % 8, 0);
    assert_eq!(decode::<T>(&bytes, Vec::new()).unwrap(), *value);
    assert!(decode::<T>(&bytes[..bytes.len() - 8], Vec::new()).is_err());
}

/// If the bytes are a value, it encodes to the same bytes. Unknown members are dropped.
fn judge<T: Wire<Value = T> + Debug>(bytes: &[u8], has_unknown: bool) {
    let Ok(value) = decode::<T>(bytes, Vec::new()) else { return };
    let mut again = Vec::new();
    match encode::<T>(&value, &mut again) {
        Ok(()) if has_unknown && again != bytes => {
            // An unknown member in its envelope takes no bytes of its own.
            assert!(again.len() <= bytes.len(), "{value:?}");
            let value = decode::<T>(&again, Vec::new()).unwrap();
            assert_eq!(encoded(&value), again);
        }
        Ok(()) => assert_eq!(again, bytes, "{value:?}"),
        Err(error) => assert!(has_unknown && matches!(error.reason(), Reason::UnknownOrdinal(_)), "{error}"),
    }
}

/// Changes at some places. A number replaces a byte, removes or repeats a word, or cuts.
fn mutated(mut bytes: Vec<u8>, mutations: &[(usize, u16)]) -> Vec<u8> {
    for &(place, change) in mutations {
        if bytes.is_empty() {
            break;
        }
        let place = place % bytes.len();
        let word = place / 8 * 8..(place / 8 * 8 + 8).min(bytes.len());
        match change {
            0..256 => bytes[place] = change.to_le_bytes()[0],
            256..300 => bytes[place] = 0,
            300..350 => bytes[place] = 0xff,
            350..400 => bytes[place] = bytes[place].wrapping_add(1),
            400..420 => drop(bytes.drain(word)),
            420..440 => {
                let copy = bytes[word.clone()].to_vec();
                bytes.splice(word.start..word.start, copy);
            }
            _ => bytes.truncate(word.start),
        }
    }
    bytes
}

fn mutations() -> impl Strategy<Value = Vec<(usize, u16)>> {
    vec((any::<usize>(), 0..445_u16), 1..5)
}

fn text(max: usize) -> impl Strategy<Value = String> {
    vec(prop_oneof!["[a-z]".prop_map(|text| text.chars().next().unwrap()), any::<char>()], 0..=max).prop_map(
        move |chars| {
            let mut text = String::new();
            for character in chars {
                if text.len() + character.len_utf8() <= max {
                    text.push(character);
                }
            }
            text
        },
    )
}

prop_compose! {
    fn point()(x in any::<i32>(), y in any::<i64>(), valid in any::<bool>()) -> Point {
        Point { x, y, valid }
    }
}

fn options() -> impl Strategy<Value = Options> {
    let color = of(prop_oneof![Just(Color::Red), Just(Color::DarkBlue)]);
    let inner = of(any::<u16>().prop_map(|bits| Inner { mode: Mode::from_bits_retain(bits) }));
    let flat = (color, inner).prop_map(|(color, inner)| Options { color, inner, more: None });
    flat.prop_recursive(8, 8, 1, |more| {
        more.prop_map(|more| Options { more: Some(Box::new(more)), ..Options::default() })
    })
}

fn choice() -> impl Strategy<Value = Choice> {
    let number = any::<f32>().prop_filter("a number", |number| !number.is_nan());
    prop_oneof![text(8).prop_map(Choice::Text), number.prop_map(Choice::Number), Just(Choice::Nothing(Empty::new())),]
}

fn open() -> impl Strategy<Value = Open> {
    let flat = prop_oneof![choice().prop_map(Open::Choice), any::<bool>().prop_map(Open::Unknown)];
    flat.prop_recursive(8, 8, 1, |inner| inner.prop_map(|inner| Open::Self_(Box::new(inner))))
}

fn holder() -> impl Strategy<Value = Holder> {
    (choice(), of(open()), any::<i32>()).prop_map(|(choice, open, level)| {
        let mut holder = Holder::new(choice, open.map(Box::new));
        holder.r#type = Level::from_primitive(level);
        holder
    })
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = options().prop_map(|options| Tree::new(None, Vec::new(), options));
    leaf.prop_recursive(6, 30, 4, |tree| {
        (of(tree.clone()), vec(tree, 0..4), options())
            .prop_map(|(left, children, options)| Tree::new(left.map(Box::new), children, options))
    })
}

/// Returns vectors of any numbers.
fn some<T: Arbitrary>() -> impl Strategy<Value = Vec<T>> {
    vec(any::<T>(), 0..9)
}

fn many_vectors() -> impl Strategy<Value = ManyVectors> {
    let small = (some::<u16>(), some::<u32>(), some::<u64>(), vec(text(9), 0..4), some::<i8>());
    let large = (some::<i16>(), some::<i32>(), some::<i64>(), some::<bool>());
    (small, large).prop_map(|((v1, v2, v3, v4, v5), (v6, v7, v8, v9))| ManyVectors {
        v1,
        v2,
        v3,
        v4,
        v5,
        v6,
        v7,
        v8,
        v9,
    })
}

fn short_texts() -> impl Strategy<Value = MaybeTwoShortTexts> {
    (of(text(4)), of(text(32))).prop_map(|(a, b)| MaybeTwoShortTexts::new(a, b))
}

fn arrays() -> impl Strategy<Value = Arrays> {
    let strings = ([text(9), text(9)], [of(text(9)), of(text(9))]);
    let structs = (any::<[i32; 2]>(), any::<[Option<i32>; 2]>());
    let numbers = (any::<[i32; 2]>(), any::<[[i32; 3]; 2]>());
    (numbers, strings, structs).prop_map(|((ints, nested), (strings, maybe_strings), (structs, maybe))| {
        let boxed = maybe.map(|number: Option<i32>| number.map(|number| Box::new(Int32Holder::new(number))));
        Arrays::new(ints, strings, maybe_strings, structs.map(Int32Holder::new), boxed, nested)
    })
}

fn vectors() -> impl Strategy<Value = Vectors> {
    let ints = || vec(any::<i32>(), 0..9);
    let boxed = of(any::<i32>().prop_map(|number| Box::new(Int32Holder::new(number))));
    let strings = (vec(text(9), 0..4), vec(of(text(9)), 0..4));
    let structs = (vec(any::<i32>().prop_map(Int32Holder::new), 0..9), vec(boxed, 0..9));
    (ints(), ints(), strings, structs, vec(ints(), 0..4)).prop_map(|(none, ints, strings, structs, nested)| {
        Vectors::new(none, ints, strings.0, strings.1, structs.0, structs.1, nested)
    })
}

fn sample() -> impl Strategy<Value = Sample> {
    let simple = prop_oneof![
        any::<i32>().prop_map(Simple::I32),
        any::<i64>().prop_map(Simple::I64),
        any::<i64>().prop_map(|number| Simple::S(Int64Holder::new(number))),
        text(9).prop_map(Simple::Str),
    ];
    prop_oneof![
        any::<u32>().prop_map(Sample::U),
        simple.prop_map(Sample::Su),
        any::<[Option<i64>; 2]>().prop_map(|[x, y]| Sample::St(Pair { x, y })),
    ]
}

fn union_in_table() -> impl Strategy<Value = UnionInTable> {
    (of(text(9)), of(sample()), of(text(9))).prop_map(|(before, u, after)| UnionInTable { before, u, after })
}

fn union_of_vector() -> impl Strategy<Value = UnionOfVector> {
    let leaf = Just(UnionOfVector::V(Vec::new()));
    leaf.prop_recursive(6, 30, 4, |inner| vec(inner, 0..4).prop_map(UnionOfVector::V))
}

fn chain() -> impl Strategy<Value = Chain> {
    (0..=32_usize).prop_map(|links| (0..links).fold(Chain::new(None), |chain, _| Chain::new(Some(Box::new(chain)))))
}

/// For each type: if it has tables or flexible unions, and its values.
macro_rules! types {
    ($($name:ident: $type:ty, $has_unknown:literal, $values:expr;)*) => {$(
        mod $name {
            use super::*;

            proptest! {
                #[test]
                fn values_come_back(value in $values) {
                    comes_back::<$type>(&value);
                }

                #[test]
                fn mutated_bytes_have_at_most_one_value(value in $values, mutations in mutations()) {
                    judge::<$type>(&mutated(encoded(&value), &mutations), $has_unknown);
                }

                #[test]
                fn random_bytes_have_at_most_one_value(
                    words in vec(prop_oneof![0..5_u64, Just(u64::MAX), Just(1 << 48), any::<u64>()], 0..12),
                ) {
                    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                    judge::<$type>(&bytes, $has_unknown);
                }
            }
        }
    )*};
}

types! {
    points: Point, false, point();
    options_: Options, true, options();
    choices: Choice, false, choice();
    opens: Open, true, open();
    holders: Holder, true, holder();
    trees: Tree, true, tree();
    many: ManyVectors, false, many_vectors();
    texts: MaybeTwoShortTexts, false, short_texts();
    of_arrays: Arrays, false, arrays();
    of_vectors: Vectors, false, vectors();
    tables: UnionInTable, true, union_in_table();
    unions: UnionOfVector, false, union_of_vector();
    chains: Chain, false, chain();
    gaps: conformance::UpToDown, false, any::<(u8, u16, u32, u64)>().prop_map(|(a, b, c, d)| {
        conformance::UpToDown::new(a, b, c, d)
    });
}
