//! Cases of `handles.gidl`, `ported_from_walker_handles.gidl`, `protocol_endpoints.gidl` and, with
//! handles, of `ported_from_walker_vectors.gidl`. Types and rights of handles do not exist here.

use esatto_fidl::{ClientEnd, Handle, Reason, ServerEnd};
use esatto_fidl_tests::test_conformance::*;

use crate::support::{
    decode_failure, decode_failure_with_handles, drops_handles, encode_failure_with_handles, success_with_handles,
};

fn one(mut handles: Vec<Handle>) -> Handle {
    assert_eq!(handles.len(), 1);
    handles.remove(0)
}

fn array<const N: usize>(handles: Vec<Handle>) -> [Handle; N] {
    handles.try_into().unwrap()
}

/// Takes every second handle of `maybe`, whose others are absent.
fn every_second<const N: usize>(first: usize, handles: Vec<Handle>) -> [Option<Handle>; N] {
    let mut handles = handles.into_iter();
    std::array::from_fn(|index| if index % 2 == first { handles.next() } else { None })
}

#[test]
fn handles_are_all_ones_in_place() {
    let present = "ff*4 00*4";
    success_with_handles("SingleHandle", &[0], |h| One::new(one(h)), present);
    success_with_handles("SinglePresentHandle", &[0], |h| One::new(one(h)), present);
    decode_failure::<One>("AbsentNonOptionalHandle", "00*8", Reason::Absent);
    success_with_handles("SingleOptionalHandlePresent", &[0], |h| MaybeOne::new(Some(one(h))), present);
    success_with_handles("SingleOptionalHandleAbsent", &[], |_| MaybeOne::new(None), "00*8");
    success_with_handles("SingleAbsentHandle", &[], |_| MaybeOne::new(None), "00*8");
    let reason = Reason::Presence(0xabab_abab);
    decode_failure::<MaybeOne>("SingleHandleMissingAndInvalidPresenceIndicator", "ab*4 00*4", reason);
    decode_failure_with_handles::<MaybeOne>("SingleHandleInvalidPresenceIndicator", 1, "ab*4 00*4", reason);
    for offset in 0..4 {
        let name = format!("SinglePresentHandleCheckTrailingPadding_{offset}");
        let text = format!("ff*4 00*{offset} aa 00*{}", 3 - offset);
        decode_failure_with_handles::<One>(&name, 1, &text, Reason::Padding(0xaa));
    }
    let value = |h| {
        let [untyped, event, channel] = array(h);
        Subtypes::new(untyped, event, channel)
    };
    success_with_handles("MultipleHandleSubtypes", &[0, 1, 2], value, "ff*12 00*4");
    let value = |h| {
        let [a, b, c] = array(h);
        Mixed::new(0, a, 1, b, c, 2)
    };
    success_with_handles("MultiplePresentHandles", &[0, 1, 2], value, "0:4 ff*4 1:8 ff*4 ff*4 2:8");
    let value = |_| MaybeMixed::new(0, None, 1, None, None, 2);
    success_with_handles("MultipleAbsentHandles", &[], value, "0:4 00*4 1:8 00*8 2:8");
}

#[test]
fn all_handles_and_no_others_must_come() {
    let present = "ff*4 00*4";
    decode_failure_with_handles::<One>("TooManyHandlesSpecifiedError", 2, present, Reason::TooManyHandles(1));
    decode_failure_with_handles::<One>("TooManyHandles", 2, present, Reason::TooManyHandles(1));
    decode_failure::<One>("TooFewHandles", present, Reason::TooFewHandles);
    let text = "ff*4 00*4 00*8";
    decode_failure_with_handles::<One>("TooManyBytesSpecifiedError", 2, text, Reason::TooManyBytes(8));
    let name = "ArrayOfPresentHandlesTooFewError";
    decode_failure_with_handles::<Four>(name, 2, "ff*16", Reason::TooFewHandles);
    let name = "ArrayOfNonnullableHandlesSomeAbsentError";
    decode_failure_with_handles::<Four>(name, 3, "ff*12 00*4", Reason::Absent);
    let name = "ArrayOfNullableHandlesWithInsufficientHandlesError";
    let text = "ff*4 00*4 ff*4 00*4 ff*4 00*4";
    decode_failure_with_handles::<MaybeFive>(name, 2, text, Reason::TooFewHandles);
}

#[test]
fn arrays_and_boxes_have_handles() {
    let value = |h: Vec<Handle>| {
        let [a, b, c] = array(h);
        Three::new([c, a, b])
    };
    success_with_handles("ArrayOfHandles", &[2, 0, 1], value, "ff*12 00*4");
    success_with_handles("ArrayOfPresentHandles", &[0, 1, 2, 3], |h| Four::new(array(h)), "ff*16");
    let value = |h| MaybeThree::new(every_second(1, h));
    success_with_handles("ArrayOfOptionalHandles", &[0], value, "00*4 ff*4 00*4 00*4");
    let value = |h| MaybeFive::new(every_second(0, h));
    success_with_handles("ArrayOfNullableHandles", &[0, 1, 2], value, "ff*4 00*4 ff*4 00*4 ff*4 00*4");
    let value = |h: Vec<Handle>| {
        let mut handles = h.into_iter();
        ThreeByFour::new(std::array::from_fn(|_| std::array::from_fn(|_| handles.next().unwrap())))
    };
    success_with_handles("ArrayOfArrayOfPresentHandles", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], value, "ff*48");
    let value = |h| BoxOfFour::new(Some(Box::new(Four::new(array(h)))));
    success_with_handles("OutOfLineArrayOfNonnullableHandles", &[0, 1, 2, 3], value, "ff*8 ff*16");

    let value = |h| BoxOfOne::new(Some(Box::new(One::new(one(h)))));
    success_with_handles("BoxOfSingleHandlePresentBox", &[0], value, "ff*8 ff*4 00*4");
    success_with_handles("BoxOfSingleHandleAbsentBox", &[], |_| BoxOfOne::new(None), "00*8");
    let value = |h| BoxOfMaybeOne::new(Some(Box::new(MaybeOne::new(Some(one(h))))));
    success_with_handles("BoxOfSingleOptionalHandlePresentBoxPresentHandle", &[0], value, "ff*8 ff*4 00*4");
    let value = |_| BoxOfMaybeOne::new(Some(Box::new(MaybeOne::new(None))));
    success_with_handles("BoxOfSingleOptionalHandlePresentBoxAbsentHandle", &[], value, "ff*8 00*8");
    success_with_handles("BoxOfSingleOptionalHandleAbsentBox", &[], |_| BoxOfMaybeOne::new(None), "00*8");
    let value = |h| MaybeUnionOfHandle::new(Some(Box::new(UnionOfHandle::H(one(h)))));
    success_with_handles("StructOfOptionalUnionOfHandlePresent", &[0], value, "1:8 ff*4 1:2 1:2");
    let value = |_| MaybeUnionOfHandle::new(None);
    success_with_handles("StructOfOptionalUnionOfHandleAbsent", &[], value, "0:8 0:8");
}

#[test]
fn vectors_have_handles() {
    let value = |mut h: Vec<Handle>| {
        h.rotate_right(1);
        Several::new(h)
    };
    success_with_handles("VectorOfHandles", &[2, 0, 1], value, "3:8 ff*8 ff*12 00*4");
    let value = |h| SeveralMaybe::new(Vec::from(every_second::<3>(1, h)));
    success_with_handles("VectorOfOptionalHandles", &[0], value, "3:8 ff*8 00*4 ff*4 00*4 00*4");
    let all: Vec<usize> = (0..64).collect();
    success_with_handles("ChannelMaxHandles", &all, Several::new, "64:8 ff*8 ff*256");

    let (all, text) = (&[0, 1, 2, 3], "4:8 ff*8 ff*16");
    success_with_handles("PresentNonnullableVectorOfHandles", all, Several::new, text);
    success_with_handles("PresentNullableVectorOfHandles", all, |h| MaybeSeveral::new(Some(h)), text);
    success_with_handles("AbsentNullableVectorOfHandles", &[], |_| MaybeSeveral::new(None), "0:8 00*8");
    success_with_handles("PresentNonnullableBoundedVectorOfHandles", all, UpTo32::new, text);
    success_with_handles("PresentNullableBoundedVectorOfHandles", all, |h| MaybeUpTo32::new(Some(h)), text);
    success_with_handles("AbsentNullableBoundedVectorOfHandles", &[], |_| MaybeUpTo32::new(None), "0:8 00*8");
    let (absent, wrong) = ("0:8 00*8", "4:8 00*8 00*16");
    let name = "AbsentNonnullableVectorOfHandlesError";
    decode_failure_with_handles::<Several>(name, 4, absent, Reason::Absent);
    let name = "InvalidAbsentNonnullableVectorOfHandlesError";
    decode_failure_with_handles::<Several>(name, 4, wrong, Reason::LengthOfAbsent(4));
    let name = "AbsentNonnullableBoundedVectorOfHandlesError";
    decode_failure_with_handles::<UpTo32>(name, 4, absent, Reason::Absent);
    let name = "InvalidAbsentNonnullableBoundedVectorOfHandlesError";
    decode_failure_with_handles::<UpTo32>(name, 4, wrong, Reason::LengthOfAbsent(4));
    let (text, reason) = ("4:8 ff*8 4:8 ff*8 ff*32", Reason::TooMany { count: 4, max: 2 });
    let name = "PresentNonnullableBoundedVectorOfHandlesShortError";
    decode_failure_with_handles::<TwoUpTo>(name, 8, text, reason);
    let name = "PresentNullableBoundedVectorOfHandlesShortError";
    decode_failure_with_handles::<MaybeTwoUpTo>(name, 8, text, reason);
}

#[test]
fn failures_close_all_handles() {
    let abc = || "abc".to_owned();
    let value = |h| {
        let [a, b, c] = array(h);
        Alternating::new(a, abc(), b, abc(), c)
    };
    let reason = Reason::TooMany { count: 3, max: 1 };
    let name = "HandlesBeforeAndAfterFailureAreClosed";
    encode_failure_with_handles(name, 3, value, reason);
    let text = "ff*4 00*4 3:8 ff*8 ff*4 00*4 3:8 ff*8 ff*4 00*4 'abc' 00*5 'abc' 00*5";
    decode_failure_with_handles::<Alternating>(name, 3, text, reason);
    encode_failure_with_handles("TooManyHandlesInVector", 3, UpTo2::new, Reason::TooMany { count: 3, max: 2 });
    let value = |h| TextThenHandle::new("long".to_owned(), one(h));
    let reason = Reason::TooMany { count: 4, max: 1 };
    encode_failure_with_handles("UnrelatedConstraintErrorBeforeHandle", 1, value, reason);
    let text = "1:8 ff*8 256:4 64:2 0:2 ff*256";
    drops_handles::<NoHandles>("ChannelMaxUnknownHandlesDropped", 64, text, "0:8 ff*8");
}

#[test]
fn ends_of_protocols_are_handles() {
    let client = |handle| ClientEnd::from(handle);
    let server = |handle| ServerEnd::from(handle);
    let value = |h| {
        let [a, b, c, d] = array(h);
        Ends::new(client(a), Some(client(b)), server(c), Some(server(d)))
    };
    success_with_handles("EncodeStructOfEndpoints_ExpectedRights", &[0, 1, 2, 3], value, "ff*16");
    let value = |h| {
        let [a, b] = array(h);
        Ends::new(client(a), None, server(b), None)
    };
    success_with_handles("StructOfEndpoints_Absent", &[0, 1], value, "ff*4 00*4 ff*4 00*4");
    let value = |h| {
        let [a, b] = array(h);
        EndTable { client: Some(client(a)), server: Some(server(b)) }
    };
    success_with_handles("TableOfEndpoints", &[0, 1], value, "2:8 ff*8 ff*4 1:2 1:2 ff*4 1:2 1:2");
    let value = |h| EndUnion::Client(client(one(h)));
    success_with_handles("UnionOfEndpoints_ClientEnd", &[0], value, "1:8 ff*4 1:2 1:2");
    let value = |h| EndUnion::Server(server(one(h)));
    success_with_handles("UnionOfEndpoints_ServerEnd", &[0], value, "2:8 ff*4 1:2 1:2");
}
