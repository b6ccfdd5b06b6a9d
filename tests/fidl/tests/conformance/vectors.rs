//! Cases of `vectors.gidl` and, without handles, of `ported_from_walker_vectors.gidl`.

use esatto_fidl::Reason;
use esatto_fidl_tests::test_conformance::*;

use crate::support::{decode_failure, encode_failure, success};

const WRONG_MARKER: Reason = Reason::Presence(1 << 56);
const UNBOUNDED: u64 = u32::MAX as u64;

fn too_many(count: u64, max: u64) -> Reason {
    Reason::TooMany { count, max }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn presence_and_length_agree() {
    let (absent, wrong) = ("0:8 00*8", "3:8 00*7 01");
    decode_failure::<Bytes>("EmptyVectorWithNullPtrBody", absent, Reason::Absent);
    success("EmptyOptionalVectorWithNullPtrBody", &MaybeBytes::new(None), absent);
    decode_failure::<Bytes>("NonEmptyVectorWithNullPtrBody", "3:8 00*8", Reason::LengthOfAbsent(3));
    decode_failure::<MaybeBytes>("NonEmptyOptionalVectorWithNullPtrBody", "3:8 00*8", Reason::LengthOfAbsent(3));
    decode_failure::<Bytes>("VectorWrongPointerValue", wrong, WRONG_MARKER);
    decode_failure::<MaybeBytes>("OptionalVectorWrongPointerValue", wrong, WRONG_MARKER);
    decode_failure::<Bytes>("VectorCountExceedsLimitByALot", "ff*8 ff*8", too_many(u64::MAX, UNBOUNDED));
    let bytes = "0x100000000:8 ff*8";
    decode_failure::<Bytes>("VectorCountExceedsLimitByOne", bytes, too_many(1 << 32, UNBOUNDED));
    decode_failure::<Bytes>("VectorCountExceedsTotalMessageSize", "25:8 ff*8 ab*8", Reason::TooFewBytes);
    decode_failure::<Bytes>("VectorCountExceedsRemainingMessageSize", "9:8 ff*8 ab*8", Reason::TooFewBytes);
    decode_failure::<Words>("VectorWithHugeCount", "1073741828:8 ff*8 00*16", Reason::TooFewBytes);

    let four = || vec![1, 2, 3, 4];
    let bytes = "4:8 ff*8 1:4 2:4 3:4 4:4";
    success("PresentNonnullableVectorOfUint32", &Words::new(four()), bytes);
    success("PresentNullableVectorOfUint32", &MaybeWords::new(Some(four())), bytes);
    decode_failure::<Words>("AbsentNonnullableVectorOfUint32Error", absent, Reason::Absent);
    let name = "AbsentNullableVectorOfUint32NonZeroLengthError";
    decode_failure::<MaybeWords>(name, "4:8 00*8", Reason::LengthOfAbsent(4));
    success("AbsentNullableVectorOfUint32", &MaybeWords::new(None), absent);
    success("PresentNonnullableBoundedVectorOfUint32", &Words32::new(four()), bytes);
    success("PresentNullableBoundedVectorOfUint32", &MaybeWords32::new(Some(four())), bytes);
    let name = "AbsentNonnullableBoundedVectorOfUint32Error";
    decode_failure::<Words>(name, "4:8 00*8", Reason::LengthOfAbsent(4));
    success("AbsentNullableBoundedVectorOfUint32", &MaybeWords32::new(None), absent);
}

#[test]
fn elements_follow_each_other() {
    success("VectorWithLimit_randomly_generated", &Bytes2::new(vec![113, 200]), "2:8 ff*8 113:1 200:1 00*6");
    let value = Bytes::new(vec![218, 190, 69, 67, 101, 72, 44, 22]);
    success("VectorWrapper_randomly_generated", &value, "8:8 ff*8 da be 45 43 65 48 2c 16");
    success("EmptyByteVector", &Bytes::new(Vec::new()), "0:8 ff*8");
    success("SmallVectorNon8ByteAligned", &Bytes::new(vec![1, 2, 3]), "3:8 ff*8 01 02 03 00*5");
    let value = Bytes::new(vec![1, 2, 3, 4, 5, 6, 7, 8]);
    success("SmallVector8ByteAligned", &value, "8:8 ff*8 01 02 03 04 05 06 07 08");
    success("LargeVectorNon8ByteAligned", &Bytes::new(vec![1; 514]), "514:8 ff*8 01*514 00*6");
    success("LargeVector8ByteAligned", &Bytes::new(vec![1; 512]), "512:8 ff*8 01*512");
    let value = BytesVector::new(vec![vec![1, 2, 3], vec![4, 5], vec![6, 7, 8, 9]]);
    let bytes = "3:8 ff*8 3:8 ff*8 2:8 ff*8 4:8 ff*8 01 02 03 00*5 04 05 00*6 06 07 08 09 00*4";
    success("VectorOfByteVector", &value, bytes);
    let value = Texts::new(texts(&["hello, world!", "this is fine", "bbbbbbbb", "aaa"]));
    let bytes = "4:8 ff*8 13:8 ff*8 12:8 ff*8 8:8 ff*8 3:8 ff*8 \
        'hello,' 20 'world!' 00*3 'this' 20 'is' 20 'fine' 00*4 62*8 61*3 00*5";
    success("VectorOfStrings_AFewStrings", &value, bytes);
    let value = ManyVectors {
        v1: vec![1, 2],
        v2: vec![3, 3],
        v3: vec![5, 6, 7, 8],
        v4: texts(&["hello, world!", "this is fine", "aaa"]),
        v5: vec![-1, -2],
        v6: vec![-3, -4, -5],
        v7: vec![-6, -7, -8, -9],
        v8: vec![-10],
        v9: vec![true, false, true],
    };
    let bytes = "2:8 ff*8 2:8 ff*8 4:8 ff*8 3:8 ff*8 2:8 ff*8 3:8 ff*8 4:8 ff*8 1:8 ff*8 3:8 ff*8 \
        1:2 2:2 00*4 3:4 3:4 5:8 6:8 7:8 8:8 13:8 ff*8 12:8 ff*8 3:8 ff*8 \
        'hello,' 20 'world!' 00*3 'this' 20 'is' 20 'fine' 00*4 61*3 00*5 \
        -1:1 -2:1 00*6 -3:2 -4:2 -5:2 00*2 -6:4 -7:4 -8:4 -9:4 -10:8 01 00 01 00*5";
    success("LotsOfVectors_AFewVectors", &value, bytes);
    for count in [15, 16] {
        let value = BytesVector::new((1..=count).map(|byte| vec![byte; 512]).collect());
        let heads = "512:8 ff*8 ".repeat(usize::from(count));
        let bodies: String = (1..=count).map(|byte| format!("{byte:x}*512 ")).collect();
        success(&format!("ByteVectors{count}"), &value, &format!("{count}:8 ff*8 {heads} {bodies}"));
    }
    let value = TwoWords::new(
        vec![2_109_779_047, 1_880_292_994, 1_717_719_637, 310_643_115, 985_910_586, 701_234_169, 2_618_282_161],
        vec![
            842_458_034,
            4_060_234_085,
            845_176_054,
            82_316_015,
            2_030_863_917,
            140_317_742,
            2_650_810_212,
            3_263_465_718,
        ],
    );
    let bytes = "7:8 ff*8 8:8 ff*8 \
        2109779047:4 1880292994:4 1717719637:4 310643115:4 985910586:4 701234169:4 2618282161:4 00*4 \
        842458034:4 4060234085:4 845176054:4 82316015:4 2030863917:4 140317742:4 2650810212:4 3263465718:4";
    success("MultipleNonnullableVectorsOfUint32s_randomly_generated", &value, bytes);
}

#[test]
fn bounds_of_vectors_hold_everywhere() {
    encode_failure("VectorExceedsLimit", &Bytes2::new(vec![1, 2, 3]), too_many(3, 2));
    let vector = |bytes: &[u8]| Bytes2Vector::new(vec![bytes.to_vec()]);
    success("VectorWithLimitInVector", &vector(&[113, 200]), "1:8 ff*8 2:8 ff*8 113:1 200:1 00*6");
    encode_failure("VectorWithLimitInVectorExceedsLimit", &vector(&[113, 200, 234]), too_many(3, 2));
    let bytes = "1:8 ff*8 3:8 ff*8 113:1 200:1 234:1 00*5";
    decode_failure::<Bytes2Vector>("VectorWithLimitInVectorExceedsLimit", bytes, too_many(3, 2));
    let array = |bytes: &[u8]| Bytes2Array::new([Some(vec![11, 22]), Some(bytes.to_vec())]);
    let bytes = "2:8 ff*8 2:8 ff*8 11:1 22:1 00*6 33:1 44:1 00*6";
    success("VectorWithLimitInArray", &array(&[33, 44]), bytes);
    encode_failure("VectorWithLimitInArrayExceedsLimit", &array(&[33, 44, 55]), too_many(3, 2));
    let bytes = "2:8 ff*8 3:8 ff*8 11:1 22:1 00*6 33:1 44:1 55:1 00*5";
    decode_failure::<Bytes2Array>("VectorWithLimitInArrayExceedsLimit", bytes, too_many(3, 2));
    let table = |bytes: &[u8]| Bytes2Table { v: Some(bytes.to_vec()) };
    success("VectorWithLimitInTable", &table(&[11, 22]), "1:8 ff*8 24:8 2:8 ff*8 11:1 22:1 00*6");
    encode_failure("VectorWithLimitInTableExceedsLimit", &table(&[11, 22, 33]), too_many(3, 2));
    let bytes = "1:8 ff*8 24:8 3:8 ff*8 11:1 22:1 33:1 00*5";
    decode_failure::<Bytes2Table>("VectorWithLimitInTableExceedsLimit", bytes, too_many(3, 2));
    let union = |bytes: &[u8]| Bytes2Union::V(bytes.to_vec());
    success("VectorWithLimitInUnion", &union(&[11, 22]), "1:8 24:8 2:8 ff*8 11:1 22:1 00*6");
    encode_failure("VectorWithLimitInUnionExceedsLimit", &union(&[11, 22, 33]), too_many(3, 2));
    let bytes = "1:8 24:8 3:8 ff*8 11:1 22:1 33:1 00*5";
    decode_failure::<Bytes2Union>("VectorWithLimitInUnionExceedsLimit", bytes, too_many(3, 2));

    let value = TwoShortWords::new(
        vec![1_025_582_817, 2_776_683_438],
        vec![1_151_223_630, 483_621_226, 3_773_133_636, 3_428_471_921, 3_913_167_363, 3_828_621_297, 1_893_799_997],
    );
    let bytes = "2:8 ff*8 7:8 ff*8 1025582817:4 2776683438:4 \
        1151223630:4 483621226:4 3773133636:4 3428471921:4 3913167363:4 3828621297:4 1893799997:4 00*4";
    success("MultipleBoundedNonnullableVectorsOfUint32s_randomly_generated", &value, bytes);
    let bytes = "4:8 ff*8 4:8 ff*8 1:4 2:4 3:4 4:4 1:4 2:4 3:4 4:4";
    let name = "PresentNonnullableBoundedVectorOfUint32ShortError";
    decode_failure::<TwoShortWords>(name, bytes, too_many(4, 2));
    let name = "PresentNullableBoundedVectorOfUint32ShortError";
    decode_failure::<MaybeTwoShortWords>(name, bytes, too_many(4, 2));
}
