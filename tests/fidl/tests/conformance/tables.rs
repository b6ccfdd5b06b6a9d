//! Cases of `tables.gidl`, for bindings that drop unknown members.

use esatto_fidl::Reason;
use esatto_fidl_tests::test_conformance::*;

use crate::support::{decode_failure, decode_success, drops_handles, reencode, success, success_with_handles};

#[test]
fn values_up_to_4_bytes_are_in_their_envelope() {
    success("TableFieldInlined", &Inlined { f: Some(123) }, "1:8 ff*8 123:4 0:2 1:2");
    let value = |mut handles: Vec<_>| InlinedHandle { f: handles.pop() };
    success_with_handles("TableFieldInlinedHandle", &[0], value, "1:8 ff*8 ff*4 1:2 1:2");
    success("TableFieldOutOfLine", &OutOfLine { f: Some(123) }, "1:8 ff*8 8:8 123:8");

    let text = "1:8 ff*8 123:4 0:2 ff 00";
    decode_failure::<Inlined>("TableFieldBadInlineMarkerLower", text, Reason::EnvelopeMarker(0xff));
    let text = "1:8 ff*8 123:4 0:2 01 ee";
    decode_failure::<Inlined>("TableFieldBadInlineMarkerUpper", text, Reason::EnvelopeMarker(0xee01));
    let text = "1:8 ff*8 8:4 0:2 fe ff 123:8";
    decode_failure::<OutOfLine>("TableFieldOutOfLineBadOutlinedMarker", text, Reason::EnvelopeMarker(0xfffe));
    let text = "1:8 ff*8 8:8 123:8";
    decode_failure::<Inlined>("TableOutOfLineEnvelopeWhenInlineRequired", text, Reason::EnvelopePlace);
    let text = "1:8 ff*8 8:4 0:2 1:2";
    decode_failure::<OutOfLine>("TableInlineEnvelopeWhenOutOfLineRequired", text, Reason::EnvelopePlace);
}

#[test]
fn absent_members_before_the_last_have_empty_envelopes() {
    let value = TwoEnums { unsigned: Some(Unsigned::ONE), always: Some(false), ..TwoEnums::default() };
    let text = "3:8 ff*8 0:8 1:6 1:2 0:6 1:2";
    success("TableFieldUnsetFlexibleEnumInlinedSigned", &value, text);
    let value = TwoEnums { signed: Some(Signed::ONE), always: Some(false), ..TwoEnums::default() };
    let text = "3:8 ff*8 1:6 1:2 0:8 0:6 1:2";
    success("TableFieldUnsetFlexibleEnumInlinedUnsigned", &value, text);

    success("EmptyTable", &NoMembers::default(), "0:8 ff*8");
    success("SimpleTableEmpty", &Pair::default(), "0:8 ff*8");
    let both = || Pair { x: Some(42), y: Some(67) };
    let text = "8:8 00*24 8:8 42:8 67:8";
    success("SimpleTableXAndY", &both(), &format!("5:8 ff*8 {text}"));
    success("SimpleTableJustX", &Pair { x: Some(42), y: None }, "1:8 ff*8 8:8 42:8");
    success("SimpleTableJustY", &Pair { x: None, y: Some(67) }, "5:8 ff*8 00*32 8:8 67:8");
    let value = TextAndNumber { foo: Some("hello".to_owned()), bar: Some(27), ..TextAndNumber::default() };
    let name = "TableWithStringAndVectorNoVectorContent";
    success(name, &value, "2:8 ff*8 24:8 27:6 1:2 5:8 ff*8 'hello' 00*3");
    let value = PairThenNumber::new(both(), 0xdead_beef_dead_beef);
    success("SimpleTableThenUint64", &value, &format!("5:8 ff*8 0xdeadbeefdeadbeef:8 {text}"));
    let value = Reversed { x: Some(0xaa), y: Some(0xbb), z: Some(0xcc) };
    success("ReverseOrdinalTable", &value, "4:8 ff*8 8:8 8:8 0:8 8:8 cc 00*7 bb 00*7 aa 00*7");
    let value = Gaps { second: Some(1), fourth: Some(2) };
    success("TableWithGaps", &value, "4:8 ff*8 0:8 1:6 1:2 0:8 2:6 1:2");
}

#[test]
fn tables_have_a_head() {
    let max = u64::from(u32::MAX);
    let reason = Reason::TooMany { count: u64::MAX, max };
    decode_failure::<NoMembers>("TableCountExceedsLimitByALot", "ff*8 ff*8", reason);
    let reason = Reason::TooMany { count: 1 << 32, max };
    decode_failure::<NoMembers>("TableCountExceedsLimitByOne", "0x100000000:8 ff*8", reason);
    decode_failure::<NoMembers>("TableCountExceedsTotalMessageSize", "25:8 ff*8 ab*8", Reason::TooFewBytes);
    decode_failure::<NoMembers>("TableCountExceedsRemainingMessageSize", "9:8 ff*8 ab*8", Reason::TooFewBytes);
    decode_failure::<NoMembers>("TableWithAbsentAlloc", "0:8 00*8", Reason::Absent);
    let reason = Reason::Presence(0xabab_abab_abab_abab);
    decode_failure::<NoMembers>("TableWithInvalidAlloc", "0:8 ab*8", reason);
}

#[test]
fn unknown_members_are_dropped() {
    let reserved = "2:8 ff*8 0:8 8:8 123:8";
    decode_success("TableFieldInlinedReservedDropped", &Inlined::default(), reserved);
    reencode::<Inlined>("TableFieldInlinedReservedDropped", reserved, "0:8 ff*8");
    let inlined = "1:8 ff*8 123:4 0:2 1:2";
    decode_success("TableFieldUnknownInlinedDropped", &Reserved::default(), inlined);
    reencode::<Reserved>("TableFieldUnknownInlinedDropped", inlined, "0:8 ff*8");
    let handle = "1:8 ff*8 ff*4 1:2 1:2";
    drops_handles::<NoHandles>("TableFieldUnknownInlinedHandleDropped", 1, handle, "0:8 ff*8");
    let out_of_line = "1:8 ff*8 8:8 123:8";
    decode_success("TableFieldUnknownOutOfLineDropped", &Reserved::default(), out_of_line);
    reencode::<Reserved>("TableFieldUnknownOutOfLineDropped", out_of_line, "0:8 ff*8");

    let both = Pair { x: Some(42), y: Some(67) };
    let known = "5:8 ff*8 8:8 00*24 8:8 42:8 67:8";
    let reserved = "5:8 ff*8 8:8 0:8 8:8 0:8 8:8 42:8 01 02 03 04 05 06 07 08 67:8";
    decode_success("ValueTableUnknownReservedDropped", &both, reserved);
    reencode::<Pair>("ValueTableUnknownReservedDropped", reserved, known);
    reencode::<ResourcePair>("ResourceTableUnknownReservedDropped", reserved, known);
    let trailing = "6:8 ff*8 8:8 00*24 8:8 8:8 42:8 67:8 01 02 03 04 05 06 07 08";
    decode_success("ValueTableUnknownTrailingDropped", &both, trailing);
    reencode::<Pair>("ValueTableUnknownTrailingDropped", trailing, known);
    reencode::<ResourcePair>("ResourceTableUnknownTrailingDropped", trailing, known);

    let trailing = "6:8 ff*8 00*32 8:8 24:4 3:4 67:8 ab*20 00*4";
    let known = "5:8 ff*8 00*32 8:8 67:8";
    drops_handles::<Pair>("ValueTableUnknownTrailingHandlesDropped", 3, trailing, known);
    drops_handles::<ResourcePair>("ResourceTableUnknownTrailingHandlesDropped", 3, trailing, known);

    let text = "2:8 ff*8 0:8 20:8 ab*20 00*4";
    let reason = Reason::EnvelopeBytes { counted: 20, actual: 24 };
    decode_failure::<Pair>("ValueTableUnknownBytesNonMultipleOf8", text, reason);
    decode_failure::<ResourcePair>("ResourceTableUnknownBytesNonMultipleOf8", text, reason);
}
