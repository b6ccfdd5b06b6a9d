//! Cases of `padding.gidl`.

use esatto_fidl::Wire;
use esatto_fidl_tests::test_conformance::*;

use crate::support::{bad_padding, success};

fn gaps<T: Wire<Value = T> + PartialEq + std::fmt::Debug>(types: &str, value: &T, text: &str, bad: &[(&str, usize)]) {
    success(&format!("CorrectPaddingBetweenFields{types}"), value, text);
    for (suffix, offset) in bad {
        bad_padding::<T>(&format!("BadPaddingBetweenFields{types}{suffix}"), text, *offset);
    }
}

#[test]
fn gaps_between_members_are_zero() {
    let (low, middle, high) = ("LowerByte", "MiddleByte", "UpperByte");
    gaps("Int8Int16", &Gap8To16::new(1, 0x0203), "01 00 03 02 00*4", &[("", 1)]);
    let bad = &[(low, 1), (middle, 2), (high, 3)];
    gaps("Int8Int32", &Gap8To32::new(1, 0x0203_0405), "01 00*3 05 04 03 02", bad);
    let bad = &[(low, 1), (middle, 4), (high, 7)];
    gaps("Int8Int64", &Gap8To64::new(1, 0x0203_0405_0607_0809), "01 00*7 09 08 07 06 05 04 03 02", bad);
    let bad = &[(low, 2), (high, 3)];
    gaps("Int16Int32", &Gap16To32::new(0x0102, 0x0304_0506), "02 01 00*2 06 05 04 03", bad);
    let bad = &[(low, 2), (middle, 4), (high, 7)];
    let value = Gap16To64::new(0x0102, 0x0304_0506_0708_090a);
    gaps("Int16Int64", &value, "02 01 00*6 0a 09 08 07 06 05 04 03", bad);
    let bad = &[(low, 4), (middle, 5), (high, 7)];
    let value = Gap32To64::new(0x0102_0304, 0x0506_0708_090a_0b0c);
    gaps("Int32Int64", &value, "04 03 02 01 00*4 0c 0b 0a 09 08 07 06 05", bad);
}

/// `$value` and `$bytes` are those of a struct of `$size` bytes, `$value_9` and `$bytes_9` begin
/// with another number.
macro_rules! sizes {
    ($($size:literal $last:ident $before:ident $between:ident
        $value:expr, $bytes:literal, $value_9:expr, $bytes_9:literal;)*) => {$(
        let padding = format!("00*{}", 8 - $size);
        let large = || Some(Box::new(Size8::new(0x0102_0304_0506_0708)));
        let large_bytes = "08 07 06 05 04 03 02 01";
        // The last byte is the first one if there is one.
        let bad = |offset: usize, low: &str, high: &str| -> Vec<(String, usize)> {
            if $size == 7 { return vec![(String::new(), offset + 7)]; }
            vec![(low.to_owned(), offset + $size), (high.to_owned(), offset + 7)]
        };

        let text = format!("{} {padding}", $bytes);
        success(concat!("CorrectPaddingEndOfInlineObject", $size, "Byte"), &$last::new($value), &text);
        for (suffix, offset) in bad(0, "LowerByte", "UpperByte") {
            bad_padding::<$last>(&format!("BadPaddingEndOfInlineObject{}Byte{suffix}", $size), &text, offset);
        }

        let text = format!("ff*8 {} {padding} {large_bytes}", $bytes_9);
        let name = concat!("PaddingEndOfInlineObjectBeforeNextObject", $size, "Byte");
        success(&format!("Correct{name}"), &$before::new(large(), $value_9), &text);
        for (suffix, offset) in bad(8, "LowerByte", "UpperByte") {
            bad_padding::<$before>(&format!("Bad{name}{suffix}"), &text, offset);
        }

        let text = format!("ff*16 {} {padding} {large_bytes}", $bytes);
        let name = concat!("PaddingInBetweenOutOfLineObjects", $size, "Byte");
        success(&format!("Correct{name}"), &$between::new(Some(Box::new($value)), large()), &text);
        for (suffix, offset) in bad(16, "Lower", "Upper") {
            bad_padding::<$between>(&format!("Bad{name}{suffix}"), &text, offset);
        }
    )*};
}

#[test]
fn ends_of_objects_are_zero() {
    sizes! {
        1 Last1 Before1 Between1 Size1::new(1), "01", Size1::new(9), "09";
        2 Last2 Before2 Between2 Size2::new(0x0102), "02 01", Size2::new(0x090a), "0a 09";
        3 Last3 Before3 Between3 Size3::new(0x0102, 3), "02 01 03", Size3::new(0x090a, 11), "0a 09 0b";
        4 Last4 Before4 Between4
            Size4::new(0x0102_0304), "04 03 02 01", Size4::new(0x090a_0b0c), "0c 0b 0a 09";
        5 Last5 Before5 Between5
            Size5::new(0x0102_0304, 5), "04 03 02 01 05", Size5::new(0x090a_0b0c, 13), "0c 0b 0a 09 0d";
        6 Last6 Before6 Between6
            Size6::new(0x0102_0304, 0x0506), "04 03 02 01 06 05",
            Size6::new(0x090a_0b0c, 0x0d0e), "0c 0b 0a 09 0e 0d";
        7 Last7 Before7 Between7
            Size7::new(0x0102_0304, 0x0506, 7), "04 03 02 01 06 05 07",
            Size7::new(0x090a_0b0c, 0x0d0e, 15), "0c 0b 0a 09 0e 0d 0f";
    }
    success("Struct3Byte_randomly_generated", &Size3::new(25110, 93), "25110:2 93:1 00*5");
    success("Struct5Byte_randomly_generated", &Size5::new(-686_561_937, -21), "-686561937:4 -21:1 00*3");
    success("Struct6Byte_randomly_generated", &Size6::new(990_827_621, 977), "990827621:4 977:2 00*2");
    success("Struct8Byte_randomly_generated", &Size8::new(5_134_020_299_206_246_228), "5134020299206246228:8");
}

#[test]
fn envelopes_are_zero_after_the_value() {
    let text = "1:8 01 00*3 00*2 1:2";
    success("CorrectPaddedUnionStruct", &SmallUnion::One(1), text);
    bad_padding::<SmallUnion>("BadPaddedUnionStructLowerByte", text, 9);
    bad_padding::<SmallUnion>("BadPaddedUnionStructUpperByte", text, 11);
    let text = "1:8 ff*8 01 00*3 00*2 1:2";
    success("CorrectPaddedTableStruct", &SmallTable { field: Some(1) }, text);
    bad_padding::<SmallTable>("BadPaddedTableStructLowerByte", text, 17);
    bad_padding::<SmallTable>("BadPaddedTableStructUpperByte", text, 19);
    let name = "UnionInlinePadding_OnePaddingByte_InvalidPadding";
    bad_padding::<SmallUnion>(name, "3:8 01 02 03 00 00*2 1:2", 11);
    let text = "2:8 01 02 00*2 00*2 1:2";
    bad_padding::<SmallUnion>("UnionInlinePadding_TwoPaddingByte_LowerByte_InvalidPadding", text, 10);
    bad_padding::<SmallUnion>("UnionInlinePadding_TwoPaddingByte_UpperByte_InvalidPadding", text, 11);
    let text = "1:8 01 00*3 00*2 1:2";
    bad_padding::<SmallUnion>("UnionInlinePadding_ThreePaddingByte_LowerByte_InvalidPadding", text, 9);
    bad_padding::<SmallUnion>("UnionInlinePadding_ThreePaddingByte_MiddleByte_InvalidPadding", text, 10);
    bad_padding::<SmallUnion>("UnionInlinePadding_ThreePaddingByte_UpperByte_InvalidPadding", text, 11);
}

#[test]
fn sequences_are_zero_after_the_last_element() {
    let text = "6:8 ff*8 'ABCDEF' 00*2";
    bad_padding::<Text>("BadPaddedString_LowerByte", text, 22);
    bad_padding::<Text>("BadPaddedString_UpperByte", text, 23);
    let text = "6:8 ff*8 01 02 03 04 05 06 00*2";
    bad_padding::<Bytes>("BadPaddedVector_LowerByte", text, 22);
    bad_padding::<Bytes>("BadPaddedVector_UpperByte", text, 23);
    let value = Stride6Vector::new(vec![Stride6::new(1, 2, 3), Stride6::new(4, 5, 6)]);
    let text = "2:8 ff*8 1:1 00 2:2 3:2 4:1 00 5:2 6:2 00*4";
    success("PaddingAlignment2MaskMayBe4Bytes", &value, text);
    let value = Stride12Vector::new(vec![Stride12::new(1, 2, 3), Stride12::new(4, 5, 6)]);
    let text = "2:8 ff*8 1:1 00*3 2:4 3:4 4:1 00*3 5:4 6:4";
    success("PaddingAlignment4MaskMayBe8Bytes", &value, text);
}
