//! Cases of `bool.gidl`, `integer.gidl`, `float.gidl`, `enums_strict.gidl`, `enums_flexible.gidl`,
//! `bits_strict.gidl` and `bits_flexible.gidl`.

use std::fmt::Debug;

use esatto_fidl::{Reason, Wire, decode};
use esatto_fidl_tests::test_conformance::*;

use crate::support::{bytes, decode_failure, decode_success, encode_failure, encode_success, success};

#[test]
fn bools_are_0_or_1() {
    success("BoolTrue", &BoolHolder::new(true), "01 00*7");
    success("BoolFalse", &BoolHolder::new(false), "00*8");
    decode_failure::<BoolHolder>("BadInvalidBoolean", "10 00*7", Reason::Bool(0x10));
}

#[test]
fn integers_are_little_endian() {
    success("ByteZero", &Uint8Holder::new(0), "00*8");
    success("Byte255", &Uint8Holder::new(255), "ff 00*7");
    success("Int8Min", &Int8Holder::new(-128), "80 00*7");
    success("Int8Zero", &Int8Holder::new(0), "00*8");
    success("Int8Max", &Int8Holder::new(127), "7f 00*7");
    success("Int16Min", &Int16Holder::new(-32768), "00 80 00*6");
    success("Int16Zero", &Int16Holder::new(0), "00*8");
    success("Int16Max", &Int16Holder::new(32767), "ff 7f 00*6");
    success("Int32Min", &Int32Holder::new(i32::MIN), "00*3 80 00*4");
    success("Int32Zero", &Int32Holder::new(0), "00*8");
    success("Int32Max", &Int32Holder::new(i32::MAX), "ff*3 7f 00*4");
    success("Int64Min", &Int64Holder::new(i64::MIN), "00*7 80");
    success("Int64Zero", &Int64Holder::new(0), "00*8");
    success("Int64Max", &Int64Holder::new(i64::MAX), "ff*7 7f");
    success("Uint8Zero", &Uint8Holder::new(0), "00*8");
    success("Uint8Max", &Uint8Holder::new(255), "ff 00*7");
    success("Uint16Zero", &Uint16Holder::new(0), "00*8");
    success("Uint16Max", &Uint16Holder::new(65535), "ff*2 00*6");
    success("Uint32Zero", &Uint32Holder::new(0), "00*8");
    success("Uint32Max", &Uint32Holder::new(u32::MAX), "ff*4 00*4");
    success("Uint64Zero", &Uint64Holder::new(0), "00*8");
    success("Uint64Max", &Uint64Holder::new(u64::MAX), "ff*8");
}

/// Numbers that are equal need not have the same bits.
fn float(name: &str, value: f32, text: &str) {
    success(name, &Float32Holder::new(value), text);
    assert_eq!(decode::<f32>(&bytes(text), Vec::new()).unwrap().to_bits(), value.to_bits(), "{name}");
}

fn double(name: &str, value: f64, text: &str) {
    success(name, &Float64Holder::new(value), text);
    assert_eq!(decode::<f64>(&bytes(text), Vec::new()).unwrap().to_bits(), value.to_bits(), "{name}");
}

#[test]
fn floats_keep_all_their_bits() {
    float("Float32PositiveZero", 0.0, "00*8");
    float("Float32NegativeZero", -0.0, "00*3 80 00*4");
    float("Float32PositiveOne", 1.0, "00 00 80 3f 00*4");
    float("Float32NegativeOne", -1.0, "00 00 80 bf 00*4");
    float("Float32Min", f32::MIN, "ff ff 7f ff 00*4");
    float("Float32Max", f32::MAX, "ff ff 7f 7f 00*4");
    float("Float32SmallestNormalizedPositive", 1.175_494_4e-38, "00 00 80 00 00*4");
    float("Float32SmallestNormalizedNegative", -1.175_494_4e-38, "00 00 80 80 00*4");
    float("Float32LargestDenormalizedPositive", 1.175_494_2e-38, "ff ff 7f 00 00*4");
    float("Float32LargestDenormalizedNegative", -1.175_494_2e-38, "ff ff 7f 80 00*4");
    float("Float32SmallestDenormalizedPositive", 1e-45, "01 00*7");
    float("Float32SmallestDenormalizedNegative", -1e-45, "01 00 00 80 00*4");
    float("Float32PositiveInfinity", f32::INFINITY, "00 00 80 7f 00*4");
    float("Float32NegativeInfinity", f32::NEG_INFINITY, "00 00 80 ff 00*4");
    encode_success("Float32QuietNaN", &Float32Holder::new(f32::from_bits(0x7fc0_0000)), "00 00 c0 7f 00*4");
    encode_success("Float32SignallingNaN", &Float32Holder::new(f32::from_bits(0x7fa0_0000)), "00 00 a0 7f 00*4");
    double("Float64PositiveZero", 0.0, "00*8");
    double("Float64NegativeZero", -0.0, "00*7 80");
    double("Float64PositiveOne", 1.0, "00*6 f0 3f");
    double("Float64NegativeOne", -1.0, "00*6 f0 bf");
    double("Float64Min", f64::MIN, "ff*6 ef ff");
    double("Float64Max", f64::MAX, "ff*6 ef 7f");
    double("Float64SmallestNormalizedPositive", 2.225_073_858_507_201_4e-308, "00*6 10 00");
    double("Float64SmallestNormalizedNegative", -2.225_073_858_507_201_4e-308, "00*6 10 80");
    double("Float64LargestDenormalizedPositive", 2.225_073_858_507_201e-308, "ff*6 0f 00");
    double("Float64LargestDenormalizedNegative", -2.225_073_858_507_201e-308, "ff*6 0f 80");
    double("Float64SmallestDenormalizedPositive", 5.0e-324, "01 00*7");
    double("Float64SmallestDenormalizedNegative", -5.0e-324, "01 00*6 80");
    double("Float64PositiveInfinity", f64::INFINITY, "00*6 f0 7f");
    double("Float64NegativeInfinity", f64::NEG_INFINITY, "00*6 f0 ff");
    encode_success("Float64QuietNaN", &Float64Holder::new(f64::from_bits(0x7ff8 << 48)), "00*6 f8 7f");
    encode_success("Float64SignallingNaN", &Float64Holder::new(f64::from_bits(0x7ff4 << 48)), "00*6 f4 7f");
}

fn strict<T: Wire<Value = T> + PartialEq + Debug>(type_: &str, value: T, text: &str, unknown: (&str, i128)) {
    success(&format!("StrictEnum{type_}Struct"), &value, text);
    let name = format!("StrictEnum{type_}StructUnknownValue");
    decode_failure::<T>(&name, unknown.0, Reason::UnknownEnum(unknown.1));
}

#[test]
fn strict_enums_have_no_other_values() {
    strict("Int8", StrictInt8::One, "01 00*7", ("aa 00*7", -0x56));
    strict("Int16", StrictInt16::One, "02 01 00*6", ("aa*2 00*6", -0x5556));
    strict("Int32", StrictInt32::One, "04 03 02 01 00*4", ("aa*4 00*4", -0x5555_5556));
    strict("Int64", StrictInt64::One, "08 07 06 05 04 03 02 01", ("aa*8", -0x5555_5555_5555_5556));
    strict("Uint8", StrictUint8::One, "01 00*7", ("aa 00*7", 0xaa));
    strict("Uint16", StrictUint16::One, "02 01 00*6", ("aa*2 00*6", 0xaaaa));
    strict("Uint32", StrictUint32::One, "04 03 02 01 00*4", ("aa*4 00*4", 0xaaaa_aaaa));
    strict("Uint64", StrictUint64::One, "08 07 06 05 04 03 02 01", ("aa*8", 0xaaaa_aaaa_aaaa_aaaa));
    success("VectorOfEnumStruct", &EnumVector::new(vec![StrictInt16::One]), "1:8 ff*8 02 01 00*6");
}

macro_rules! flexible {
    ($($name:literal $type:ident $unknown:literal $known_bytes:literal $unknown_bytes:literal;)*) => {$(
        success(concat!("FlexibleEnum", $name), &$type::ONE, $known_bytes);
        let unknown = $type::from_primitive($unknown);
        assert!(unknown.is_unknown() && !$type::ONE.is_unknown());
        success(concat!("FlexibleEnum", $name, "UnknownValue"), &unknown, $unknown_bytes);
    )*};
}

#[test]
fn flexible_enums_keep_other_values() {
    flexible! {
        "Int8" OpenInt8 0x0f "01 00*7" "0f 00*7";
        "Int16" OpenInt16 0x0fee "02 01 00*6" "ee 0f 00*6";
        "Int32" OpenInt32 0x0fee_ddcc "04 03 02 01 00*4" "cc dd ee 0f 00*4";
        "Int64" OpenInt64 0x0fee_ddcc_bbaa_9988 "08 07 06 05 04 03 02 01" "88 99 aa bb cc dd ee 0f";
        "Uint8" OpenUint8 0xff "01 00*7" "ff 00*7";
        "Uint16" OpenUint16 0xffee "02 01 00*6" "ee ff 00*6";
        "Uint32" OpenUint32 0xffee_ddcc "04 03 02 01 00*4" "cc dd ee ff 00*4";
        "Uint64" OpenUint64 0xffee_ddcc_bbaa_9988 "08 07 06 05 04 03 02 01" "88 99 aa bb cc dd ee ff";
    }
    decode_success("EmptyFlexibleEnumDecodeUnknownValue", &NoNumbers::from_primitive(0xff), "ff 00*7");
}

macro_rules! strict_bits {
    ($($width:literal $type:ident)*) => {$(
        let (one, three, four) = (format!("1:{}", $width), format!("3:{}", $width), format!("4:{}", $width));
        let padding = format!("00*{}", 8 - $width);
        let (bits, name) = ($width * 8, "StrictBitsUint");
        success(&format!("{name}{bits}KnownValue"), &$type::A, &format!("{one} {padding}"));
        success(&format!("{name}{bits}CombinedValue"), &($type::A | $type::B), &format!("{three} {padding}"));
        let name = format!("{name}{bits}UnknownBit");
        decode_failure::<$type>(&name, &format!("{four} {padding}"), Reason::UnknownBits(4));
        encode_failure(&name, &$type::from_bits_retain(4), Reason::UnknownBits(4));
    )*};
}

#[test]
fn strict_bits_have_no_other_bits() {
    strict_bits! { 1 StrictBits8 2 StrictBits16 4 StrictBits32 8 StrictBits64 }
}

macro_rules! flexible_bits {
    ($($width:literal $type:ident $unknown:literal)*) => {$(
        let padding = format!("00*{}", 8 - $width);
        let (bits, name) = ($width * 8, "FlexibleBitsUint");
        success(&format!("{name}{bits}KnownValue"), &$type::A, &format!("1:{} {padding}", $width));
        success(&format!("{name}{bits}CombinedValue"), &($type::A | $type::B), &format!("3:{} {padding}", $width));
        let unknown = $type::from_bits_retain($unknown);
        success(&format!("{name}{bits}UnknownValue"), &unknown, &format!("{}:{} {padding}", $unknown, $width));
    )*};
}

#[test]
fn flexible_bits_keep_other_bits() {
    flexible_bits! { 1 OpenBits8 0xff 2 OpenBits16 0x1234 4 OpenBits32 0x1234_5678 8 OpenBits64 0x0102_0304_0506_0708_u64 }
    decode_success("EmptyFlexibleBitsDecodeUnknownValue", &NoBits::from_bits_retain(0xff), "ff 00*7");
    decode_success("EmptyFlexibleBitsDecodeZero", &NoBits::from_bits_retain(0), "00*8");
}
