//! Cases of `alignment.gidl`, `empty_struct.gidl`, `memcpy_compatibility.gidl` and, of
//! `conformance.gidl`, those of sizes.

use esatto_fidl::Reason;
use esatto_fidl_tests::test_conformance::*;

use crate::support::{bad_padding, decode_failure, success};

#[test]
fn small_structs_follow_each_other() {
    success("ThreeByte_randomly_generated", &ThreeBytes::new(78, 228, 31), "78:1 228:1 31:1 00*5");
    let three = || [ThreeBytes::new(1, 2, 3), ThreeBytes::new(4, 5, 6), ThreeBytes::new(7, 8, 9)];
    let [a, b, c] = three();
    let packed = "01 02 03 04 05 06 07 08 09 00*7";
    success("3ByteObjectAlignmentInStruct", &ThreeThrice::new(a, b, c), packed);
    let vector = ThreeVector::new(three().to_vec());
    success("3ByteObjectAlignmentInVector", &vector, &format!("3:8 ff*8 {packed}"));
    success("3ByteObjectAlignmentInArray", &ThreeArray::new(three()), packed);

    success("FiveByte_randomly_generated", &FiveBytes::new(3_372_452_902, 104), "3372452902:4 104:1 00*3");
    let five = || [FiveBytes::new(0x0102_0304, 5), FiveBytes::new(0x0607_0809, 10), FiveBytes::new(0x0b0c_0d0e, 15)];
    let [a, b, c] = five();
    let padded = "04 03 02 01 05 00*3 09 08 07 06 0a 00*3 0e 0d 0c 0b 0f 00*3";
    success("5ByteObjectAlignmentInStruct", &FiveThrice::new(a, b, c), padded);
    success("5ByteObjectAlignmentInVector", &FiveVector::new(five().to_vec()), &format!("3:8 ff*8 {padded}"));
    success("5ByteObjectAlignmentInArray", &FiveArray::new(five()), padded);

    let up = UpToDown::new(1, 0x0203, 0x0405_0607, 0x0809_0a0b_0c0d_0e0f);
    success("Uint8Uint16Uint32Uint64", &up, "01 00 03 02 07 06 05 04 0f 0e 0d 0c 0b 0a 09 08");
    let down = DownToUp::new(0x0809_0a0b_0c0d_0e0f, 0x0405_0607, 0x0203, 1);
    success("Uint64Uint32Uint16Uint8", &down, "0f 0e 0d 0c 0b 0a 09 08 07 06 05 04 03 02 01 00");
}

#[test]
fn nested_structs_keep_their_padding() {
    let value = OuterDense4::new(Dense4::new(1, 2, 3, 4), 5);
    success("TwoLayerStructNoPaddingAlign4", &value, "1:2 2:1 3:1 4:4 5:4 00*4");
    let value = OuterPadded4::new(Padded4::new(1, 2, 3), 4);
    success("TwoLayerStructInnerPaddingAlign4", &value, "1:2 2:1 00 3:4 4:4 00*4");
    bad_padding::<OuterPadded4>("TwoLayerStructInnerPaddingAlign4BadPadding", "1:2 2:1 00 3:4 4:4 00*4", 3);
    let value = OuterDense8::new(Dense8::new(1, 2, 3, 4), 5);
    success("TwoLayerStructNoPaddingAlign8", &value, "1:4 2:2 3:2 4:8 5:8");
    let value = OuterPadded8::new(Padded8::new(1, 2, 3), 4);
    success("TwoLayerStructInnerPaddingAlign8", &value, "1:4 2:2 00*2 3:8 4:8");
    bad_padding::<OuterPadded8>("TwoLayerStructInnerPaddingAlign8BadPadding", "1:4 2:2 00*2 3:8 4:8", 6);
    let value = OuterBool::new(WithBool::new(true, 2, 3, 4), 5);
    success("TwoLayerStructInnerBool", &value, "1:1 2:1 3:2 4:4 5:8");
    let text = "100:1 2:1 3:2 4:4 5:8";
    decode_failure::<OuterBool>("TwoLayerStructInnerBoolBadValue", text, Reason::Bool(100));
    let value = PaddedArray::new([Padded4::new(1, 2, 3), Padded4::new(4, 5, 6)]);
    let text = "1:2 2:1 00 3:4 4:2 5:1 00 6:4";
    success("CorrectArrayWithInternalPadding", &value, text);
    bad_padding::<PaddedArray>("BadPaddedArrayWithInternalPadding", text, 11);
}

#[test]
fn empty_structs_have_one_zero_byte() {
    let one = Reason::Padding(1);
    let empty = Empty::new;
    success("EmptyStruct", &empty(), "00*8");
    decode_failure::<Empty>("EmptyStructNonZeroBytes", "01 00*7", one);
    success("AnEmptyStructInStruct", &EmptyOnce::new(empty()), "00*8");
    decode_failure::<EmptyOnce>("AnEmptyStructInStructNonZeroBytes", "01 00*7", one);
    let twice = || EmptyTwice::new(empty(), empty());
    success("TwoEmptyStructsInStruct", &twice(), "00*8");
    decode_failure::<EmptyTwice>("TwoEmptyStructsInStructNonZeroBytes", "00 01 00*6", one);
    let four = || [empty(), empty(), empty(), empty()];
    success("EmptyStructsInArrayInStruct", &EmptyArray::new(four()), "00*8");
    decode_failure::<EmptyArray>("EmptyStructsInArrayInStructNonZeroBytes", "00*3 01 00*4", one);
    success("EmptyStructsInVectorInStruct", &EmptyVector::new(four().to_vec()), "4:8 ff*8 00*8");
    decode_failure::<EmptyVector>("EmptyStructsInVectorInStructNonZeroBytes", "4:8 ff*8 00*3 01 00*4", one);
    let vector = EmptyTwiceVector::new(vec![twice(), twice(), twice()]);
    success("TwoEmptyStructsInStructInVectorInStruct", &vector, "3:8 ff*8 00*8");
    let name = "TwoEmptyStructsInStructInVectorInStructNonZeroBytes";
    decode_failure::<EmptyTwiceVector>(name, "3:8 ff*8 00*5 01 00*2", one);
    success("OptionalEmptyStructPresent", &EmptyBox::new(Some(Box::new(empty()))), "ff*8 00*8");
    success("OptionalEmptyStructAbsent", &EmptyBox::new(None), "00*8");
    let marker = Reason::Presence(0xabab_abab_abab_abab);
    decode_failure::<EmptyBox>("OptionalEmptyStructInvalidPresenceIndicator", "ab*8", marker);
    let between = EmptyBetween::new("before".to_owned(), empty(), "after".to_owned());
    success("EmptyStructSandwich", &between, "6:8 ff*8 00*8 5:8 ff*8 'before' 00*2 'after' 00*3");
}

#[test]
fn messages_have_no_other_bytes() {
    decode_failure::<Empty>("UnconsumedBytesInline", "00*8 00*8", Reason::TooManyBytes(8));
    let text = "ff*8 ff*8 01 00*7 2:8 00*8";
    decode_failure::<Boxes8>("UnconsumedBytesOutOfLine", text, Reason::TooManyBytes(8));
    decode_failure::<Empty>("PayloadTooSmall", "00", Reason::TooFewBytes);
}
