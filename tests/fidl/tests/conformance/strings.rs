//! Cases of `strings.gidl`, `strings_utf8.gen.gidl` (the first 24) and
//! `ported_from_walker_strings.gidl`.

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
    ];
    for (name, string, bytes) in valid {
        let length = string.len();
        success(name, &Text::new(text(string)), &format!("{length}:8 ff*8 {bytes} 00*{}", 8 - length));
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
    ];
    for (name, bytes) in invalid {
        let length = bytes.split(' ').count();
        decode_failure::<Text>(name, &format!("{length}:8 ff*8 {bytes} 00*{}", 8 - length), Reason::Utf8);
    }
}
