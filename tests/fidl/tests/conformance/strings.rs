//! Cases of `strings.gidl`, `strings_utf8.gen.gidl` and `ported_from_walker_strings.gidl`.

use esatto_fidl::Reason;
use esatto_fidl_tests::test_conformance::*;

use crate::support::{decode_failure, encode_failure, success};

const WRONG_MARKER: Reason = Reason::Presence(1 << 56);
const UNBOUNDED: u64 = u32::MAX as u64;

fn text(text: &str) -> String {
    text.to_owned()
}

fn maybe(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn too_many(count: u64, max: u64) -> Reason {
    Reason::TooMany { count, max }
}

#[test]
fn presence_and_length_agree() {
    let (absent, wrong) = ("0:8 00*8", "3:8 00*7 01");
    decode_failure::<Text>("EmptyStringWithNullPtrBody", absent, Reason::Absent);
    success("EmptyOptionalStringWithNullPtrBody", &MaybeText::new(None), absent);
    let marker = Reason::Presence(0xabab_abab_abab_abab);
    decode_failure::<MaybeText>("OptionalStringWithInvalidPresenceIndicator", "0:8 ab*8", marker);
    decode_failure::<Text>("NonEmptyStringWithNullPtrBody", "3:8 00*8", Reason::LengthOfAbsent(3));
    decode_failure::<MaybeText>("NonEmptyOptionalStringWithNullPtrBody", "3:8 00*8", Reason::LengthOfAbsent(3));
    decode_failure::<Text>("StringWrongPointerValue", wrong, WRONG_MARKER);
    decode_failure::<MaybeText>("OptionalStringWrongPointerValue", wrong, WRONG_MARKER);
    let count = u64::MAX;
    decode_failure::<Text>("StringCountExceedsLimitByALot", "ff*8 ff*8", too_many(count, UNBOUNDED));
    let count = 1 << 32;
    decode_failure::<Text>("StringCountExceedsLimitByOne", "0x100000000:8 ff*8", too_many(count, UNBOUNDED));
    decode_failure::<Text>("StringCountExceedsTotalMessageSize", "25:8 ff*8 ab*8", Reason::TooFewBytes);
    decode_failure::<Text>("StringCountExceedsRemainingMessageSize", "9:8 ff*8 ab*8", Reason::TooFewBytes);

    let hello = "6:8 ff*8 'hello!' 00*2";
    success("PresentNonnullableString", &Text::new(text("hello!")), hello);
    success("PresentNullableString", &MaybeText::new(maybe("hello!")), hello);
    decode_failure::<Text>("AbsentNonnullableStringError", absent, Reason::Absent);
    decode_failure::<Text>("InvalidAbsentNonnullableStringError", "6:8 00*8", Reason::LengthOfAbsent(6));
    success("AbsentNullableString", &MaybeText::new(None), absent);
    success("PresentNonnullableBoundedString", &Text32::new(text("hello!")), hello);
    success("PresentNullableBoundedString", &MaybeText32::new(maybe("hello!")), hello);
    decode_failure::<Text32>("AbsentNonnullableBoundedStringError", absent, Reason::Absent);
    let name = "InvalidAbsentNonnullableBoundedStringError";
    decode_failure::<Text32>(name, "6:8 00*8", Reason::LengthOfAbsent(6));
    success("AbsentNullableBoundedString", &MaybeText32::new(None), absent);
    let two = TwoTexts::new(text("hello"), text("world!!!"));
    success("MultipleNonnullableStrings", &two, "5:8 ff*8 8:8 ff*8 'hello' 00*3 'world!!!'");
}

#[test]
fn bounds_of_strings_hold_everywhere() {
    success("Length2String", &Text2::new(text("ab")), "2:8 ff*8 'ab' 00*6");
    encode_failure("StringExceedsLimit", &Text2::new(text("abc")), too_many(3, 2));

    let vector = |text| TextVector::new(vec![maybe(text)]);
    success("StringWithLimitInVector", &vector("Hi"), "1:8 ff*8 2:8 ff*8 'Hi' 00*6");
    encode_failure("StringWithLimitInVectorExceedsLimit", &vector("Hello"), too_many(5, 2));
    let bytes = "1:8 ff*8 3:8 ff*8 'Hello' 00*3";
    decode_failure::<TextVector>("StringWithLimitInVectorExceedsLimit", bytes, too_many(3, 2));
    let array = |second| TextArray::new([text("Oh"), text(second)]);
    success("StringWithLimitInArray", &array("Hi"), "2:8 ff*8 2:8 ff*8 'Oh' 00*6 'Hi' 00*6");
    encode_failure("StringWithLimitInArrayExceedsLimit", &array("Hello"), too_many(5, 2));
    let bytes = "2:8 ff*8 3:8 ff*8 'Oh' 00*6 'Hello' 00*3";
    decode_failure::<TextArray>("StringWithLimitInArrayExceedsLimit", bytes, too_many(3, 2));
    let table = |text| TextTable { s: maybe(text) };
    success("StringWithLimitInTable", &table("Hi"), "1:8 ff*8 24:8 2:8 ff*8 'Hi' 00*6");
    encode_failure("StringWithLimitInTableExceedsLimit", &table("Hello"), too_many(5, 2));
    let bytes = "1:8 ff*8 24:8 5:8 ff*8 'Hello' 00*3";
    decode_failure::<TextTable>("StringWithLimitInTableExceedsLimit", bytes, too_many(5, 2));
    let union = |string| TextUnion::S(text(string));
    success("StringWithLimitInUnion", &union("Hi"), "1:8 24:8 2:8 ff*8 'Hi' 00*6");
    encode_failure("StringWithLimitInUnionExceedsLimit", &union("Hello"), too_many(5, 2));
    let bytes = "1:8 24:8 3:8 ff*8 'Hello' 00*3";
    decode_failure::<TextUnion>("StringWithLimitInUnionExceedsLimit", bytes, too_many(3, 2));

    let two = TwoShortTexts::new(text("Vnug"), text("ESik0LJSVSfATkN6nNkOyWf8bV4Cd3BW"));
    let bytes = "4:8 ff*8 32:8 ff*8 'Vnug' 00*4 'ESik0LJSVSfATkN6nNkOyWf8bV4Cd3BW'";
    success("MultipleShortNonnullableStrings_randomly_generated", &two, bytes);
    let two = MaybeTwoShortTexts::new(maybe("9hOr"), maybe("wfBgk43fkdmteaUBINdbZg5SPcE"));
    let bytes = "4:8 ff*8 27:8 ff*8 '9hOr' 00*4 'wfBgk43fkdmteaUBINdbZg5SPcE' 00*5";
    success("MultipleShortNullableStrings_randomly_generated", &two, bytes);
    let bytes = "6:8 ff*8 6:8 ff*8 'hello' 20 00*2 'world!' 00*2";
    decode_failure::<TwoShortTexts>("PresentNonnullableBoundedStringShortError", bytes, too_many(6, 4));
    decode_failure::<MaybeTwoShortTexts>("PresentNullableBoundedStringShortError", bytes, too_many(6, 4));
}

#[test]
fn strings_are_utf8() {
    let valid = [
        ("StringsValidCase1", "\0", "00"),
        ("StringsValidCase2", "\x7f", "7f"),
        ("StringsValidCase3", "\u{80}", "c2 80"),
        ("StringsValidCase4", "\u{7ff}", "df bf"),
        ("StringsValidCase5", "\u{1000}", "e1 80 80"),
        ("StringsValidCase6", "\u{ffff}", "ef bf bf"),
        ("StringsValidCase7", "\u{10000}", "f0 90 80 80"),
        ("StringsValidCase8", "\u{10ffff}", "f4 8f bf bf"),
        ("StringsValidCase9", "\u{80}", "c2 80"),
        ("StringsValidCase10", "\u{10000}", "f0 90 80 80"),
        ("StringsValidCase11", "/", "2f"),
        ("StringsValidCase12", "\u{61d}", "d8 9d"),
        ("StringsValidCase13", "\u{5f6}", "d7 b6"),
        ("StringsValidCase14", "\u{af4}", "e0 ab b4"),
        ("StringsValidCase15", "\u{c52}", "e0 b1 92"),
        ("StringsValidCase16", "\u{1e454}", "f0 9e 91 94"),
        ("StringsValidCase17", "\u{1f978}", "f0 9f a5 b8"),
        ("StringsValidCase18", "", ""),
        ("StringsValidCase19", "a", "61"),
        ("StringsValidCase20", "\u{20ac}", "e2 82 ac"),
        ("StringsValidCase21", "\0\u{10ffff}\x7f\u{10000}\u{80}", "00 f4 8f bf bf 7f f0 90 80 80 c2 80"),
        ("StringsValidCase22", "\u{7ff}\u{ffff}\u{1000}", "df bf ef bf bf e1 80 80"),
        ("StringsValidCase23", "\u{feff}", "ef bb bf"),
        ("StringsValidCase24", "\u{1000}", "e1 80 80"),
        ("StringsValidCase25", "\r", "0d"),
        ("StringsValidCase26", "\n", "0a"),
        ("StringsValidCase27", "a", "61"),
        ("StringsValidCase28", "\u{81}", "c2 81"),
        ("StringsValidCase29", "\u{103f}", "e1 80 bf"),
        ("StringsValidCase30", "\u{4083f}", "f1 80 a0 bf"),
        ("StringsValidCase31", "\u{feff}", "ef bb bf"),
    ];
    for (name, string, bytes) in valid {
        let length = string.len();
        let padding = length.next_multiple_of(8) - length;
        success(name, &Text::new(text(string)), &format!("{length}:8 ff*8 {bytes} 00*{padding}"));
    }
    let invalid = [
        ("StringsInvalidCase1", "80"),
        ("StringsInvalidCase2", "c2 7f"),
        ("StringsInvalidCase3", "df c0"),
        ("StringsInvalidCase4", "e1 80 7f"),
        ("StringsInvalidCase5", "ef bf c0"),
        ("StringsInvalidCase6", "f0 80 80 80"),
        ("StringsInvalidCase7", "f7 bf bf c0"),
        ("StringsInvalidCase8", "c2 7f"),
        ("StringsInvalidCase9", "e1 7f 80"),
        ("StringsInvalidCase10", "e1 80 7f"),
        ("StringsInvalidCase11", "f0 7f 80 80"),
        ("StringsInvalidCase12", "f0 90 7f 80"),
        ("StringsInvalidCase13", "f0 90 80 7f"),
        ("StringsInvalidCase14", "c0 af"),
        ("StringsInvalidCase15", "e0 80 af"),
        ("StringsInvalidCase16", "f0 80 80 af"),
        ("StringsInvalidCase17", "ef"),
        ("StringsInvalidCase18", "ef bb"),
        ("StringsInvalidCase19", "df 80 80"),
        ("StringsInvalidCase20", "e0 80 80"),
        ("StringsInvalidCase21", "c3 28"),
        ("StringsInvalidCase22", "c0"),
        ("StringsInvalidCase23", "c1"),
        ("StringsInvalidCase24", "f5"),
        ("StringsInvalidCase25", "f6"),
        ("StringsInvalidCase26", "f7"),
        ("StringsInvalidCase27", "f8"),
        ("StringsInvalidCase28", "f9"),
        ("StringsInvalidCase29", "fa"),
        ("StringsInvalidCase30", "fb"),
        ("StringsInvalidCase31", "fc"),
        ("StringsInvalidCase32", "fd"),
        ("StringsInvalidCase33", "fe"),
        ("StringsInvalidCase34", "ff"),
        ("StringsInvalidCase35", "ed a0 80"),
        ("StringsInvalidCase36", "ed b0 80"),
        ("StringsInvalidCase37", "ed bf bf"),
        ("StringsInvalidCase38", "c0 80"),
        ("StringsInvalidCase39", "c1 80"),
        ("StringsInvalidCase40", "c1 81"),
        ("StringsInvalidCase41", "e0 80 80"),
        ("StringsInvalidCase42", "e0 82 80"),
        ("StringsInvalidCase43", "e0 9f bf"),
        ("StringsInvalidCase44", "f0 80 80 8d"),
        ("StringsInvalidCase45", "f0 80 82 91"),
        ("StringsInvalidCase46", "f0 80 a0 80"),
        ("StringsInvalidCase47", "f0 8f bb bf"),
        ("StringsInvalidCase48", "f8 80 80 80 bf"),
        ("StringsInvalidCase49", "fc 80 80 80 a0 a5"),
        ("StringsInvalidCase50", "f4 90 80 80"),
        ("StringsInvalidCase51", "f8 a0 bf 80 bf"),
        ("StringsInvalidCase52", "fc 9c bf 80 bf 80"),
        ("StringsInvalidCase53", "fe ff"),
        ("StringsInvalidCase54", "ff fe"),
    ];
    for (name, bytes) in invalid {
        let length = bytes.split(' ').count();
        decode_failure::<Text>(name, &format!("{length}:8 ff*8 {bytes} 00*{}", 8 - length), Reason::Utf8);
    }
}
