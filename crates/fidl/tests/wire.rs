//! Values that are written by hand, in the forms that the specification shows.

#![allow(missing_docs, reason = "a test")]

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use esatto_fidl::wire::{TableReader, put};
use esatto_fidl::{
    Array, Boxed, DecodeError, Decoder, EncodeError, Encoder, Handle, Header, Optional, Place, Reason, Str, Strictness,
    Vector, Wire, decode, encode, encode_with_handles,
};

#[derive(Debug, PartialEq)]
struct Pair {
    first: u8,
    second: u32,
}

impl Wire for Pair {
    type Value = Self;
    const SIZE: usize = 8;
    const ALIGN: usize = 4;
    const HAS_REST: bool = false;

    fn put(value: &Self, place: &mut [u8]) {
        put::<u8>(&value.first, place, 0);
        put::<u32>(&value.second, place, 4);
    }

    fn decode<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<Self, DecodeError> {
        let first = decoder.member::<u8>(place, 0, "Pair.first")?;
        place.zeros(1, 3)?;
        Ok(Self { first, second: decoder.member::<u32>(place, 4, "Pair.second")? })
    }
}

/// Table with a number 1, and a string 3.
#[derive(Debug, Default, PartialEq)]
struct Facts {
    number: Option<u32>,
    text: Option<String>,
}

impl Wire for Facts {
    type Value = Self;
    const SIZE: usize = 16;
    const ALIGN: usize = 8;
    const HAS_REST: bool = true;

    fn put(_: &Self, _: &mut [u8]) {}

    fn encode_rest<'v>(value: &'v Self, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        let last = if value.text.is_some() { 3 } else { usize::from(value.number.is_some()) };
        encoder.table(at, last, |encoder, table| {
            encoder.table_member::<u32>(table, 1, value.number.as_ref(), "Facts.number")?;
            encoder.table_member::<Str>(table, 3, value.text.as_ref(), "Facts.text")
        })
    }

    fn decode<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<Self, DecodeError> {
        decoder.table(place, |decoder, table: &mut TableReader<'b>| {
            Ok(Self {
                number: decoder.table_member::<u32>(table, 1, "Facts.number")?,
                text: decoder.table_member::<Str>(table, 3, "Facts.text")?,
            })
        })
    }
}

#[track_caller]
fn both<T: Wire<Value: PartialEq + std::fmt::Debug>>(value: &T::Value, bytes: &[u8]) {
    let mut encoded = Vec::new();
    encode::<T>(value, &mut encoded).unwrap();
    assert_eq!(encoded, bytes);
    assert_eq!(decode::<T>(bytes, Vec::new()).unwrap(), *value);
    for length in 0..bytes.len() {
        assert!(decode::<T>(&bytes[..length], Vec::new()).is_err(), "{length} bytes");
    }
}

#[track_caller]
fn refused<T: Wire<Value: std::fmt::Debug>>(bytes: &[u8]) -> (Reason, usize) {
    let error = decode::<T>(bytes, Vec::new()).unwrap_err();
    (error.reason(), error.offset())
}

const PRESENT: [u8; 8] = [0xff; 8];

fn bytes(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

#[test]
fn numbers_are_little_endian_and_padded() {
    both::<u32>(&0x0102_0304, &[4, 3, 2, 1, 0, 0, 0, 0]);
    both::<bool>(&true, &[1, 0, 0, 0, 0, 0, 0, 0]);
    both::<f64>(&1.0, &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    both::<Array<u16, 3>>(&[1, 2, 3], &[1, 0, 2, 0, 3, 0, 0, 0]);
    assert_eq!(refused::<bool>(&[2, 0, 0, 0, 0, 0, 0, 0]), (Reason::Bool(2), 0));
    assert_eq!(refused::<u32>(&[4, 3, 2, 1, 0, 9, 0, 0]), (Reason::Padding(9), 5));
    assert_eq!(refused::<u32>(&[0; 16]), (Reason::TooManyBytes(8), 8));
}

#[test]
fn strings_and_vectors_are_out_of_line() {
    let hello = bytes(&[&[5, 0, 0, 0, 0, 0, 0, 0], &PRESENT, b"hello\0\0\0"]);
    both::<Str<5>>(&"hello".to_owned(), &hello);
    both::<Optional<Str>>(&Some("hello".to_owned()), &hello);
    both::<Optional<Str>>(&None, &[0; 16]);
    assert_eq!(refused::<Str<4>>(&hello), (Reason::TooMany { count: 5, max: 4 }, 0));
    assert_eq!(refused::<Str>(&[0; 16]), (Reason::Absent, 0));
    assert_eq!(refused::<Str>(&bytes(&[&[1, 0, 0, 0, 0, 0, 0, 0], &[0; 8]])), (Reason::LengthOfAbsent(1), 0));
    assert_eq!(
        refused::<Str>(&bytes(&[&[1, 0, 0, 0, 0, 0, 0, 0], &PRESENT, &[0xff, 0, 0, 0, 0, 0, 0, 0]])),
        (Reason::Utf8, 16)
    );
    let long = "abcdef".to_owned();
    assert_eq!(encode::<Str<5>>(&long, &mut Vec::new()).unwrap_err().reason(), Reason::TooMany { count: 6, max: 5 });

    let pairs = vec![Pair { first: 1, second: 2 }, Pair { first: 3, second: 4 }];
    let encoded = bytes(&[&[2, 0, 0, 0, 0, 0, 0, 0], &PRESENT, &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]]);
    both::<Vector<Pair>>(&pairs, &encoded);
    let mut padded = encoded;
    padded[25] = 7;
    assert_eq!(refused::<Vector<Pair>>(&padded), (Reason::Padding(7), 25));
}

#[test]
fn a_count_without_bytes_takes_no_memory() {
    let huge = bytes(&[&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0], &PRESENT]);
    assert_eq!(refused::<Vector<u64>>(&huge), (Reason::TooFewBytes, 0));
    assert_eq!(refused::<Vector<Vector<Str>>>(&huge), (Reason::TooFewBytes, 0));
    assert_eq!(refused::<Facts>(&huge), (Reason::TooFewBytes, 0));
    let larger = bytes(&[&[0, 0, 0, 0, 1, 0, 0, 0], &PRESENT]);
    let max = u64::from(u32::MAX);
    assert_eq!(refused::<Vector<u8>>(&larger), (Reason::TooMany { count: max + 1, max }, 0));
}

#[test]
fn boxes_are_at_most_32_levels_deep() {
    #[derive(Debug, PartialEq)]
    struct Chain(Option<Box<Self>>);
    impl Wire for Chain {
        type Value = Self;
        const SIZE: usize = 8;
        const ALIGN: usize = 8;
        const HAS_REST: bool = true;

        fn put(value: &Self, place: &mut [u8]) {
            Boxed::<Self>::put(&value.0, place);
        }

        fn encode_rest<'v>(value: &'v Self, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
            Boxed::<Self>::encode_rest(&value.0, encoder, at)
        }
        fn decode<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<Self, DecodeError> {
            Boxed::<Self>::decode(decoder, place).map(Self)
        }
    }
    let chain = |levels| (0..levels).fold(Chain(None), |inner, _| Chain(Some(Box::new(inner))));
    both::<Chain>(&chain(32), &bytes(&[&[0xff; 256], &[0; 8]]));
    assert_eq!(encode::<Chain>(&chain(33), &mut Vec::new()).unwrap_err().reason(), Reason::TooDeep);
    assert_eq!(refused::<Chain>(&bytes(&[&[0xff; 264], &[0; 8]])).0, Reason::TooDeep);
}

#[test]
fn tables_hold_small_values_in_their_envelopes() {
    both::<Facts>(&Facts::default(), &bytes(&[&[0; 8], &PRESENT]));
    let number = bytes(&[&[1, 0, 0, 0, 0, 0, 0, 0], &PRESENT, &[123, 0, 0, 0, 0, 0, 1, 0]]);
    both::<Facts>(&Facts { number: Some(123), text: None }, &number);
    let text = bytes(&[
        &[3, 0, 0, 0, 0, 0, 0, 0],
        &PRESENT,
        &[0; 16],
        &[24, 0, 0, 0, 0, 0, 0, 0],
        &[2, 0, 0, 0, 0, 0, 0, 0],
        &PRESENT,
        b"hi\0\0\0\0\0\0",
    ]);
    both::<Facts>(&Facts { number: None, text: Some("hi".to_owned()) }, &text);
    // An unknown member, out of line.
    let unknown = bytes(&[&[4, 0, 0, 0, 0, 0, 0, 0], &PRESENT, &[0; 24], &[8, 0, 0, 0, 0, 0, 0, 0], &[1; 8]]);
    assert_eq!(decode::<Facts>(&unknown, Vec::new()).unwrap(), Facts::default());
    let empty = bytes(&[&[1, 0, 0, 0, 0, 0, 0, 0], &PRESENT, &[0; 8]]);
    assert_eq!(refused::<Facts>(&empty), (Reason::EmptyEnvelope, 16));
    let mut marker = number.clone();
    marker[22] = 2;
    assert_eq!(refused::<Facts>(&marker), (Reason::EnvelopeMarker(2), 22));
    marker[22] = 0;
    assert_eq!(refused::<Facts>(&marker), (Reason::EnvelopePlace, 16));
    let mut counted = text;
    counted[32] = 32;
    assert_eq!(refused::<Facts>(&counted), (Reason::EnvelopeBytes { counted: 32, actual: 24 }, 32));
    let error = decode::<Facts>(&counted, Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "cannot decode Facts.text at byte 32: an envelope counts 32 bytes, its value has 24");
}

fn pipe_end() -> OwnedFd {
    std::os::unix::net::UnixStream::pair().unwrap().0.into()
}

#[test]
fn handles_travel_beside_the_bytes() {
    let handles: Vec<Handle> = vec![pipe_end().into(), pipe_end().into()];
    let (mut encoded, mut fds) = (Vec::new(), Vec::new());
    encode_with_handles::<Vector<Handle>>(&handles, &mut encoded, &mut fds).unwrap();
    assert_eq!(encoded, bytes(&[&[2, 0, 0, 0, 0, 0, 0, 0], &PRESENT, &[0xff; 8]]));
    let sent: Vec<_> = fds.iter().map(AsRawFd::as_raw_fd).collect();
    assert_eq!(sent, handles.iter().map(|handle| handle.as_fd().as_raw_fd()).collect::<Vec<_>>());

    let owned: Vec<OwnedFd> = fds.iter().map(|fd| fd.try_clone_to_owned().unwrap()).collect();
    assert_eq!(decode::<Vector<Handle>>(&encoded, owned).unwrap().len(), 2);
    let reason = |count: usize| {
        let owned = (0..count).map(|_| pipe_end()).collect();
        decode::<Vector<Handle>>(&encoded, owned).unwrap_err().reason()
    };
    assert_eq!(reason(1), Reason::TooFewHandles);
    assert_eq!(reason(3), Reason::TooManyHandles(1));
    let mut absent = encoded;
    absent[16..20].fill(0);
    assert_eq!(decode::<Vector<Handle>>(&absent, vec![pipe_end()]).unwrap_err().reason(), Reason::Absent);
    assert_eq!(decode::<Vector<Optional<Handle>>>(&absent, vec![pipe_end()]).unwrap().len(), 2);
    absent[16] = 3;
    assert_eq!(refused::<Vector<Handle>>(&absent), (Reason::Presence(3), 16));
}

#[test]
fn headers_name_version_and_strictness() {
    let header = Header { txid: 5, strictness: Strictness::Flexible, ordinal: 0x1234 };
    let bytes = [5, 0, 0, 0, 2, 0, 0x80, 1, 0x34, 0x12, 0, 0, 0, 0, 0, 0];
    assert_eq!(header.to_bytes(), bytes);
    assert_eq!(Header::parse(&bytes).unwrap(), header);
    let reason = |index: usize, byte| {
        let mut changed = bytes;
        changed[index] = byte;
        Header::parse(&changed).unwrap_err().reason()
    };
    assert_eq!(reason(7, 0), Reason::Magic(0));
    assert_eq!(reason(4, 0), Reason::Version);
    assert_eq!(Header::parse(&[&bytes[..8], &[0; 8]].concat()).unwrap_err().reason(), Reason::ZeroOrdinal);
    assert_eq!(Header::parse(&bytes[..15]).unwrap_err().reason(), Reason::TooFewBytes);
}
