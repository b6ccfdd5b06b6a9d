//! Cases of `union.gidl` and, of `conformance.gidl`, those of unions, for bindings that drop
//! unknown members.

use std::fmt::Debug;

use esatto_fidl::{Reason, Wire};
use esatto_fidl_tests::test_conformance::*;

use crate::support::{
    decode_failure, decode_failure_with_handles, decode_success, drops_handles_of_unknown, encode_failure, success,
    success_with_handles,
};

/// An unknown member, whose bytes must include the padding.
const UNKNOWN: &str = "1234:8 24:4 0:2 0:2 ab*20 00*4";

#[test]
fn ordinals_name_members() {
    let value = |text: &str| ShortText::Text(text.to_owned());
    success("UnionWithBoundString", &value("abcd"), "1:8 24:8 4:8 ff*8 'abcd' 00*4");
    encode_failure("UnionWithBoundString_ExceedsBounds", &value("abcdef"), Reason::TooMany { count: 6, max: 5 });
    success("UnionMigration_SingleVariant", &OneVariant::X(42), "1:8 42:4 0:2 1:2");
    success("UnionMigration_Uint8Union_1", &ByteOrEmpty::Byte(42), "1:8 42:4 0:2 1:2");
    success("UnionMigration_Uint8Union_2", &ByteOrEmpty::Empty(Empty::new()), "2:8 0:4 0:2 1:2");
    success("ReverseOrdinalUnion", &ReversedUnion::X(42), "4:8 8:8 42:8");
    success("StrictXUnion", &Strict::U(0xdead_beef), "1:8 ef be ad de 00*2 1:2");
}

#[test]
fn small_values_are_in_the_envelope() {
    success_with_handles("UnionEnvelopeInlining_SmallValue_Inlined", &[], |_| Places::Small(100), "1:8 100:6 1:2");
    let name = "UnionEnvelopeInlining_LargeValue_Outlined";
    success_with_handles(name, &[], |_| Places::Large(100), "2:8 8:8 100:8");
    let name = "UnionEnvelopeInlining_HandleValue_Inlined";
    success_with_handles(name, &[0], |mut handles| Places::Handle(handles.remove(0)), "3:8 ff*4 1:2 1:2");
    let name = "UnionEnvelopeInlining_SmallValue_BadInlineMarkerLower";
    decode_failure::<Places>(name, "1:8 100:4 0:2 ff 00", Reason::EnvelopeMarker(0xff));
    let name = "UnionEnvelopeInlining_SmallValue_BadInlineMarkerUpper";
    decode_failure::<Places>(name, "1:8 100:4 0:2 01 ee", Reason::EnvelopeMarker(0xee01));
    let name = "UnionEnvelopeInlining_LargeValue_BadOutlinedMarker";
    decode_failure::<Places>(name, "2:8 8:4 0:2 fe ff 100:8", Reason::EnvelopeMarker(0xfffe));
    let name = "UnionOutOfLineEnvelopeWhenInlineRequired";
    decode_failure::<Places>(name, "1:8 8:8 100:8", Reason::EnvelopePlace);
    let name = "UnionInlineEnvelopeWhenOutOfLineRequired";
    decode_failure::<Places>(name, "2:8 8:4 0:2 1:2", Reason::EnvelopePlace);
    let reason = Reason::EnvelopeHandles { counted: 1, actual: 0 };
    decode_failure::<Places>("EnvelopeHandleCountExceedsMessageHandleCount", "1:8 0:4 1:2 1:2", reason);
    let name = "EnvelopeByteCountExceedsMessageByteCount";
    decode_failure::<Places>(name, "100:8 8:4 0:2 00*2", Reason::TooFewBytes);
    // No binding can say more than that an envelope out of line has bytes.
    let reason = Reason::EnvelopeBytes { counted: 0, actual: 8 };
    decode_failure::<Places>("EnvelopeHandleCountExceedsMessageHandleCountUnknown", "100:8 0:4 1:2 00*2", reason);
}

#[test]
fn flexible_unions_have_unknown_members() {
    decode_success("FlexibleUnionUnknownValue", &Sample::Unknown { ordinal: 1234 }, UNKNOWN);
    let reason = Reason::UnknownOrdinal(1234);
    encode_failure("FlexibleUnionUnknownValue", &Sample::Unknown { ordinal: 1234 }, reason);
    drops_handles_of_unknown::<SampleResource>("FlexibleResourceUnionUnknownValue", 0, UNKNOWN, 1234);
    let handles = "1234:8 24:4 4:2 0:2 ab*20 00*4";
    let name = "FlexibleResourceUnionUnknownValueWithHandles";
    drops_handles_of_unknown::<SampleResource>(name, 4, handles, 1234);
    let name = "FlexibleUnionUnknownValueWithHandlesCloseHandles";
    drops_handles_of_unknown::<Sample>(name, 4, handles, 1234);
    decode_failure::<Strict>("StrictUnionUnknownValue", UNKNOWN, reason);
    decode_failure_with_handles::<Strict>("StrictUnionUnknownValueWithHandles", 4, handles, reason);

    let text = "123:8 20:8 ab*20 00*4";
    let reason = Reason::EnvelopeBytes { counted: 20, actual: 24 };
    decode_failure::<Sample>("FlexibleValueUnionUnknownBytesNonMultipleOf8", text, reason);
    decode_failure::<SampleResource>("FlexibleResourceUnionUnknownBytesNonMultipleOf8", text, reason);

    let name = "UnionEnvelopeInlining_UnknownSmallValue_Inlined";
    drops_handles_of_unknown::<Places>(name, 0, "10:8 100:4 0:2 1:2", 10);
    let name = "UnionEnvelopeInlining_UnknownLargeValue_Outlined";
    drops_handles_of_unknown::<Places>(name, 0, "10:8 8:8 100:8", 10);
    let name = "UnionEnvelopeInlining_UnknownHandleValue_Inlined";
    drops_handles_of_unknown::<Places>(name, 1, "10:8 ff*4 1:2 1:2", 10);
    let unknown = NoVariants::Unknown { ordinal: 1 };
    decode_success("EmptyFlexibleUnionDecodesUnknownSmallValue", &unknown, "1:8 ff 00*3 0:2 1:2");
    decode_success("EmptyFlexibleUnionDecodesUnknownLargeValue", &unknown, "1:8 8:8 ab*8");
}

/// Cases with ordinal 0. `O` is a struct of an optional `R`.
fn zero<R: Wire<Value: Debug>, O: Wire<Value = O> + Debug>(kind: &str, absent: &O) {
    let payload = "0:8 24:8 ab*20 00*4";
    let reason = Reason::UnknownOrdinal(0);
    decode_failure::<R>(&format!("Required{kind}UnionZeroOrdinalNoPayload"), "0:8 0:8", Reason::Absent);
    decode_failure::<R>(&format!("Required{kind}UnionZeroOrdinalWithPayload"), payload, reason);
    let name = format!("Optional{kind}UnionZeroOrdinalNoPayload");
    crate::support::encode_success(&name, absent, "0:8 0:8");
    crate::support::reencode::<O>(&name, "0:8 0:8", "0:8 0:8");
    decode_failure::<O>(&format!("Optional{kind}UnionZeroOrdinalWithPayload"), payload, reason);
}

#[test]
fn ordinal_0_means_absent() {
    zero::<Strict, _>("StrictValue", &MaybeStrict::new(None));
    zero::<StrictResource, _>("StrictResource", &MaybeStrictResource::new(None));
    zero::<Sample, _>("FlexibleValue", &MaybeSample::new(None));
    zero::<SampleResource, _>("FlexibleResource", &MaybeSampleResource::new(None));
    let reason = Reason::UnknownOrdinal(0);
    let name = "RequiredFlexibleValueUnionZeroOrdinalNoPayload";
    encode_failure(name, &Sample::Unknown { ordinal: 0 }, reason);
    let name = "RequiredFlexibleResourceUnionZeroOrdinalNoPayload";
    encode_failure(name, &SampleResource::Unknown { ordinal: 0 }, reason);
}

#[test]
fn unions_are_among_other_members() {
    let (before, after) = (|| "before".to_owned(), || "after".to_owned());
    let around = |union: &str| format!("6:8 ff*8 {union} 5:8 ff*8 'before' 00*2 'after' 00*3");
    let union = "1:8 ef be ad de 00*2 1:2";
    let sample = || Sample::U(0xdead_beef);
    success("InlineXUnionInStruct", &AroundUnion::new(before(), sample(), after()), &around(union));
    let absent = AroundMaybeUnion::new(before(), None, after());
    success("OptionalXUnionInStructAbsent", &absent, &around("0:8 0:8"));
    let present = AroundMaybeUnion::new(before(), Some(Box::new(sample())), after());
    success("OptionalXUnionInStructPresent", &present, &around(union));
    // The count is wrong, but before that the place is.
    let text = "6:8 ff*8 1:8 5:8 5:8 ff*8 'before' 00*2 ef be ad de 00*4 'after' 00*3";
    let name = "OptionalXUnionInStructPresentInvalidNumBytes";
    decode_failure::<AroundMaybeUnion>(name, text, Reason::EnvelopePlace);
    let text = around("1:8 ef be ad de 01 00 01 00");
    let reason = Reason::EnvelopeHandles { counted: 1, actual: 0 };
    decode_failure::<AroundMaybeUnion>("OptionalXUnionInStructPresentInvalidNumHandles", &text, reason);

    let table = |u| UnionInTable { before: Some(before()), u, after: Some(after()) };
    let text = "3:8 ff*8 24:8 0:8 24:8 6:8 ff*8 'before' 00*2 5:8 ff*8 'after' 00*3";
    success("XUnionInTableXUnionAbsent", &table(None), text);
    let text = |count| format!("3:8 ff*8 24:8 {count}:8 24:8 6:8 ff*8 'before' 00*2 {union} 5:8 ff*8 'after' 00*3");
    success("XUnionInTableXUnionPresent", &table(Some(sample())), &text(16));
    let reason = Reason::EnvelopeBytes { counted: 5, actual: 16 };
    decode_failure::<UnionInTable>("XUnionInTableXUnionPresentInvalidNumBytes", &text(5), reason);
}
