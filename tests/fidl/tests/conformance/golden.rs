//! Cases of `golden.gidl`, without rights of handles.

use esatto_fidl::Reason;
use esatto_fidl_tests::test_conformance::*;

use crate::support::{decode_failure, drops_handles, encode_failure, success, success_with_handles};

#[test]
fn one_value_of_each_kind() {
    let abcd = || "abcd".to_owned();
    success("GoldenBoolStruct", &BoolHolder::new(true), "1:1 00*7");
    success("GoldenIntStruct", &Int16Holder::new(1), "1:2 00*6");
    success("GoldenUintStruct", &Uint16Holder::new(1), "1:2 00*6");
    success("GoldenFloatStruct", &Float32Holder::new(0.0), "0:4 00*4");
    success("GoldenDoubleStruct", &Float64Holder::new(0.0), "0:8");
    success("GoldenStringStruct", &Text::new(abcd()), "4:8 ff*8 'abcd' 00*4");
    success("GoldenNullableStringStructNonNull", &MaybeText::new(Some(abcd())), "4:8 ff*8 'abcd' 00*4");
    success("GoldenNullableStringStructNull", &MaybeText::new(None), "0:8 00*8");
    success("GoldenEnumStruct", &OpenInt16::from_primitive(1), "1:2 00*6");
    success("GoldenBitsStruct", &StrictBits16::A, "1:2 00*6");
    success("GoldenTableStruct", &Inlined { f: Some(1) }, "1:8 ff*8 1:4 0:2 1:2");
    success("GoldenUnionStruct", &OneVariant::X(1), "1:8 1:4 0:2 1:2");
    let union = MaybeSample::new(Some(Box::new(Sample::U(1))));
    success("GoldenNullableUnionStructNonNull", &union, "1:8 1:4 0:2 1:2");
    success("GoldenNullableUnionStructNull", &MaybeSample::new(None), "0:8 0:8");
    success("GoldenByteArrayStruct", &ByteArray::new([1, 2, 3, 4]), "01 02 03 04 00*4");
    let array = SmallArray::new([Int16Holder::new(1), Int16Holder::new(2)]);
    success("GoldenStructArrayStruct", &array, "01 00 02 00 00*4");
    let bytes = Bytes::new([1, 2, 3, 4].repeat(3));
    success("GoldenByteVectorStruct", &bytes, "12:8 ff*8 01 02 03 04 01 02 03 04 01 02 03 04 00*4");
    let vector = SmallVector::new(vec![Int16Holder::new(1), Int16Holder::new(2)]);
    success("GoldenStructVectorStruct", &vector, "2:8 ff*8 01 00 02 00 00*4");
    let bytes = MaybeBytes::new(Some(vec![1, 2, 3, 4]));
    success("GoldenByteNullableVectorStructNonNull", &bytes, "4:8 ff*8 01 02 03 04 00*4");
    success("GoldenNullableByteVectorStructNull", &MaybeBytes::new(None), "0:8 00*8");
    let boxed = BoolBox::new(Some(Box::new(BoolHolder::new(true))));
    success("GoldenNullableStructNonNull", &boxed, "ff*8 1:1 00*7");
    success("GoldenNullableStructNull", &BoolBox::new(None), "00*8");
    let value = |mut handles: Vec<_>| MaybeOne::new(handles.pop());
    success_with_handles("GoldenNullableHandleStructNonNull", &[0], value, "ff*4 00*4");
    success_with_handles("GoldenNullableHandleStructNull", &[], value, "00*8");
    let reason = Reason::TooMany { count: 3, max: 2 };
    encode_failure("GoldenStringWithMaxSize2", &Text2::new("abc".to_owned()), reason);
    decode_failure::<Text>("GoldenStringStructNullBody", "3:8 00*8", Reason::LengthOfAbsent(3));
    drops_handles::<Inlined>("GoldenTableUnknownDropped", 1, "2:8 ff*8 00*8 ff*4 1:2 1:2", "0:8 ff*8");
}
