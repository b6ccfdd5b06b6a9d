//! Cases of `transformer1.gidl` and `transformer2.gidl`: unions and tables in all places. Left are
//! those of `transformer1.gidl` after `Sandwich7Case1`, and those of `transformer2.gidl` after
//! `Regression7TableUnionXUnion`.

use esatto_fidl_tests::test_conformance::*;

use crate::support::{success, success_with_handles};

const BEFORE: u32 = 0x0403_0201;
const AFTER: u32 = 0x0807_0605;

fn around(union: &str, rest: &str) -> String {
    format!("01 02 03 04 00*4 {union} 05 06 07 08 00*4 {rest}")
}

fn head() -> TransactionHeader {
    TransactionHeader::new(0xf3f2_f1f0, [0xf4, 0xf5, 0xf6], 0xf7, 0xfffe_fdfc_fbfa_f9f8)
}

const HEAD: &str = "f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 fa fb fc fd fe ff";
const SMALL: &str = "3:8 09 0a 0b 0c 00*2 1:2";

fn small() -> Union4 {
    Union4::Variant(0x0c0b_0a09)
}

fn sandwich1() -> Sandwich1 {
    Sandwich1::new(BEFORE, small(), AFTER)
}

/// Returns bytes that count up.
fn up(first: u8, count: u8) -> String {
    (first..first + count).map(|byte| format!("{byte:x} ")).collect()
}

#[test]
fn unions_between_other_members() {
    success("Sandwich1Case1", &sandwich1(), &around(SMALL, ""));
    let message = Sandwich1Message::new(head(), sandwich1());
    success("Sandwich1Case1WithHdr", &message, &format!("{HEAD} {}", around(SMALL, "")));
    let value = Sandwich1Maybe::new(BEFORE, Some(Box::new(small())), AFTER);
    success("Sandwich1WithOptUnionPresent", &value, &around(SMALL, ""));
    let value = Sandwich1Maybe::new(BEFORE, None, AFTER);
    success("Sandwich1WithOptUnionAbsent", &value, &around("0:8 0:8", ""));
    let value = Sandwich2::new(BEFORE, Union6::Variant([0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5]), AFTER);
    success("Sandwich2Case1", &value, &around("4:8 8:8", "a0 a1 a2 a3 a4 a5 00*2"));
    let value = Size16::new(8_119_191_415_388_800_797, 3_921_240_220_962_863_111);
    let text = "8119191415388800797:8 3921240220962863111:8";
    success("StructSize16Align8_randomly_generated", &value, text);
    let size16 = || Size16::new(0xa7a6_a5a4_a3a2_a1a0, 0xafae_adac_abaa_a9a8);
    let value = Sandwich3::new(BEFORE, Union16::Variant(size16()), AFTER);
    success("Sandwich3Case1", &value, &around("4:8 16:8", &up(0xa0, 16)));
    let sandwich4 = || Sandwich4::new(BEFORE, Union32::Variant(std::array::from_fn(|i| 0xa0 + i as u8)), AFTER);
    let text = around("4:8 32:8", &up(0xa0, 32));
    success("Sandwich4Case1", &sandwich4(), &text);
    let message = Sandwich4Message::new(TransactionHeader::new(0, [0; 3], 0, 0), sandwich4());
    success("Sandwich4Case1WithHdr", &message, &format!("00*16 {text}"));

    let sandwich5 = || Sandwich5::new(BEFORE, UnionOfUnion::Small(small()), AFTER);
    let text = around("2:8 16:8", SMALL);
    success("Sandwich5Case1", &sandwich5(), &text);
    let message = Sandwich5Message::new(head(), sandwich5());
    success("Sandwich5Case1WithHdr", &message, &format!("{HEAD} {text}"));
    let sandwich5 = || Sandwich5::new(BEFORE, UnionOfUnion::Large(Union16::Variant(size16())), AFTER);
    let text = around("5:8 32:8", &format!("4:8 16:8 {}", up(0xa0, 16)));
    success("Sandwich5Case2", &sandwich5(), &text);
    let message = Sandwich5Message::new(head(), sandwich5());
    success("Sandwich5Case2WithHdr", &message, &format!("{HEAD} {text}"));
    let value = Sandwich7::new(0x1413_1211, Some(Box::new(sandwich1())), 0x2423_2221);
    let text = format!("11 12 13 14 00*4 ff*8 21 22 23 24 00*4 {}", around(SMALL, ""));
    success("Sandwich7Case1", &value, &text);
}

#[test]
fn unions_of_sequences() {
    let case = |name: &str, union: UnionWithVector, bytes: &str, rest: &str| {
        let value = |_| Sandwich6::new(BEFORE, union, AFTER);
        success_with_handles(name, &[], value, &around(bytes, rest));
    };
    success("StructSize3Align2_randomly_generated", &Triple2::new(8940, 203), "8940:2 203:1 00*5");
    let union = UnionWithVector::Bytes(vec![0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5]);
    case("Sandwich6Case1", union, "2:8 24:8", "6:8 ff*8 a0 a1 a2 a3 a4 a5 00*2");
    case("Sandwich6Case1AbsentVector", UnionWithVector::Bytes(Vec::new()), "2:8 16:8", "0:8 ff*8");
    let union = UnionWithVector::S("soft migrations rock!".to_owned());
    case("Sandwich6Case2", union, "3:8 40:8", "21:8 ff*8 'soft' 20 'migrations' 20 'rock!' 00*3");
    let triple = |bytes: &[u8; 3]| Triple::new(*bytes);
    let union = UnionWithVector::Triples(vec![triple(b"sof"), triple(b" mi"), triple(b"rat")]);
    case("Sandwich6Case3", union, "4:8 32:8", "3:8 ff*8 'sof' 20 'mirat' 00*7");
    let triples = vec![Triple2::new(0x6f73, 0x66), Triple2::new(0x6d20, 0x69), Triple2::new(0x6172, 0x74)];
    let text = "3:8 ff*8 'sof' 00 20 'mi' 00 'rat' 00 00*4";
    case("Sandwich6Case4", UnionWithVector::Triples2(triples), "5:8 32:8", text);
    let value = |handles| Sandwich6::new(BEFORE, UnionWithVector::Handles(handles), AFTER);
    let text = around("6:8 32:4 3:2 0:2", "3:8 ff*8 ff*12 00*4");
    success_with_handles("Sandwich6Case5", &[0, 1, 2], value, &text);
    let union = UnionWithVector::Array([Triple::new([0xa1, 0xa2, 0xa3]), Triple::new([0xa4, 0xa5, 0xa6])]);
    case("Sandwich6Case6", union, "7:8 8:8", "a1 a2 a3 a4 a5 a6 00*2");
    let union = UnionWithVector::Array2([Triple2::new(0xa2a1, 0xa3), Triple2::new(0xa5a4, 0xa6)]);
    case("Sandwich6Case7", union, "8:8 8:8", "a1 a2 a3 00 a4 a5 a6 00");
    case("Sandwich6Case8", UnionWithVector::Unions(vec![small()]), "9:8 32:8", &format!("1:8 ff*8 {SMALL}"));
}

#[test]
fn tables_of_structs_and_unions() {
    success("TableNoFields", &NoMembers::default(), "0:8 ff*8");
    let (a, b) = (|| Triple::new([9, 10, 11]), || Triple::new([0x19, 0x1a, 0x1b]));
    let triples = "09 0a 0b 00 00*2 1:2 19 1a 1b 00 00*2 1:2";
    let value = ReservedSandwich { s1: Some(a()), s2: Some(b()) };
    success("TableStructWithReservedSandwich", &value, &format!("3:8 ff*8 0:8 {triples}"));
    let value = NumberSandwich { i: Some(0x0403_0201), s1: Some(a()), s2: Some(b()), i2: Some(0x0d0c_0b0a) };
    let text = format!("4:8 ff*8 01 02 03 04 00*2 1:2 {triples} 0a 0b 0c 0d 00*2 1:2");
    success("TableStructWithUint32Sandwich", &value, &text);
    let hello = || Some(UnionWithVector::S("hello".to_owned()));
    let value = |_| UnionReserved { uv: hello() };
    let text = "2:8 ff*8 0:8 40:8 3:8 24:8 5:8 ff*8 'hello' 00*3";
    success_with_handles("TableUnionWithVectorReservedSandwich", &[], value, text);
    let value = |_| UnionStructs { s1: Some(Triple::new([1, 2, 3])), uv: hello(), s2: Some(Triple::new([4, 5, 6])) };
    let text = "3:8 ff*8 01 02 03 00 00*2 1:2 40:8 04 05 06 00 00*2 1:2 3:8 24:8 5:8 ff*8 'hello' 00*3";
    success_with_handles("TableUnionWithVectorStructSandwich", &[], value, text);

    let value = UnionLevel1 {
        member: Some(UnionLevel2::Variant(UnionLevel3::Variant(UnionLevel4 {
            member: Some(UnionLevel5::Variant(UnionLevel6::Tiny(8))),
        }))),
    };
    let text = "3:8 ff*8 0:8 0:8 0x60:8 3:8 0x50:8 1:8 0x40:8 2:8 ff*8 0:8 0x20:8 1:8 0x10:8 3:8 8:6 1:2";
    success("Regression7TableUnionXUnion", &value, text);
}

#[test]
fn unions_of_strings_in_arrays() {
    let text = |text: &str| StringUnion::S(text.to_owned());
    let maybe = |string| Some(Box::new(text(string)));
    let value =
        UnionArrays::new([text("one"), text("two"), text("three")], [maybe("four"), maybe("five"), maybe("six")]);
    let heads = "2:8 24:8 ".repeat(6);
    let bodies = "3:8 ff*8 'one' 00*5 3:8 ff*8 'two' 00*5 5:8 ff*8 'three' 00*3 \
        4:8 ff*8 'four' 00*4 4:8 ff*8 'five' 00*4 3:8 ff*8 'six' 00*5";
    success("ArrayStruct", &value, &format!("{heads} {bodies}"));
    success("TransformerEmptyStruct", &Empty::new(), "00*8");
    success("EmptyStructUnion", &ByteOrEmpty::Empty(Empty::new()), "2:8 0:6 1:2");
}

#[test]
fn out_of_line_objects_follow_in_order() {
    let union = |byte| Union32::Variant([byte; 32]);
    let word = |byte: u8| u64::from_le_bytes([byte; 8]);
    let boxed = || Some(Box::new(Uint64Holder::new(word(0xee))));
    let value = Stressor {
        f1: word(0x11),
        f2: word(0x22),
        u1: union(0x33),
        f3: word(0x44),
        f4: word(0x55),
        u2: union(0x66),
        f5: word(0x77),
        f6: word(0x88),
        u3: union(0x99),
        f7: word(0xaa),
        p1: boxed(),
        f8: word(0xbb),
        p2: boxed(),
        f9: word(0xdd),
    };
    let text = "11*8 22*8 4:8 32:8 44*8 55*8 4:8 32:8 77*8 88*8 4:8 32:8 aa*8 ff*8 bb*8 ff*8 dd*8 \
        33*32 66*32 99*32 ee*16";
    success("NoCodingTablesStressor", &value, text);
    let (before, after) = (|| "soft migrations rock!".to_owned(), || "hard transitions suck!".to_owned());
    let vector = |union: &str| {
        format!(
            "21:8 ff*8 1:8 ff*8 22:8 ff*8 'soft' 20 'migrations' 20 'rock!' 00*3 {} \
             'hard' 20 'transitions' 20 'suck!' 00*2",
            around(union, "")
        )
    };
    let value = OutOfLine1::new(before(), vec![sandwich1()], after());
    success("OutOfLineSandwich1Case1", &value, &vector(SMALL));
    let maybe = |union| OutOfLineMaybe::new(before(), vec![Sandwich1Maybe::new(BEFORE, union, AFTER)], after());
    success("OutOfLineSandwich1WithOptUnionPresent", &maybe(Some(Box::new(small()))), &vector(SMALL));
    success("OutOfLineSandwich1WithOptUnionAbsent", &maybe(None), &vector("0:8 0:8"));
}

#[test]
fn mixed_numbers_keep_their_places() {
    let value = Regression4::new(1, 2, Triple::new([9, 10, 11]), 3, 4, 5, 6);
    success("Regression4", &value, "01 00*3 2:4 09 0a 0b 03 4:2 00*2 5:8 06 00*7");
    let value = Regression5::new(1, Enum32::Member, Enum8::Member, 0x1615, 0x6463_6261_605f_5e5d, 8);
    let rest = "08 00 15 16 00*4 5d 5e 5f 60 61 62 63 64 08 00*7";
    success("Regression5Enums", &value, &format!("01 00*3 2f 30 31 32 {rest}"));
    let bits = Bits32::LOW_1 | Bits32::LOW_2 | Bits32::HIGH_1 | Bits32::HIGH_2;
    let value = Regression6::new(1, bits, Bits8::MEMBER, 0x1615, 0x6463_6261_605f_5e5d, 8);
    success("Regression6Bits", &value, &format!("01 00*3 03 00 00 30 {rest}"));
    let a = || Some(Box::new(Union6::Variant([0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6])));
    let b = || Some(Box::new(Union6::Variant([0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6])));
    let text = "4:8 8:8 0:8 0:8 4:8 8:8 a1 a2 a3 a4 a5 a6 00*2 b1 b2 b3 b4 b5 b6 00*2";
    success("Regression8OptUnionSize12Aligned4", &ThreeUnions::new(a(), None, b()), text);
}
