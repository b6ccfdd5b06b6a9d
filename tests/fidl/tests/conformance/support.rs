//! How the cases are judged, and how their bytes are written.

use std::fmt::Debug;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use esatto_fidl::{Handle, Reason, Wire, decode, encode, encode_with_handles};

/// Returns bytes. A word is a byte in hex, `BYTE*COUNT`, `NUMBER:WIDTH` in little-endian, or a
/// text in quotes without spaces.
pub(crate) fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in text.split_ascii_whitespace() {
        let byte = |hex| u8::from_str_radix(hex, 16).unwrap_or_else(|_| panic!("{word}"));
        if let Some(text) = word.strip_prefix('\'') {
            bytes.extend_from_slice(text.trim_end_matches('\'').as_bytes());
        } else if let Some((hex, count)) = word.split_once('*') {
            bytes.resize(bytes.len() + count.parse::<usize>().unwrap(), byte(hex));
        } else if let Some((number, width)) = word.split_once(':') {
            let number = match number.strip_prefix("0x") {
                Some(hex) => i128::from_str_radix(hex, 16).unwrap(),
                None => number.parse().unwrap(),
            };
            bytes.extend_from_slice(&number.to_le_bytes()[..width.parse().unwrap()]);
        } else {
            bytes.push(byte(word));
        }
    }
    bytes
}

pub(crate) fn success<T: Wire<Value = T> + PartialEq + Debug>(name: &str, value: &T, text: &str) {
    encode_success(name, value, text);
    decode_success(name, value, text);
}

pub(crate) fn encode_success<T: Wire<Value = T>>(name: &str, value: &T, text: &str) {
    let mut encoded = Vec::new();
    encode::<T>(value, &mut encoded).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(encoded, bytes(text), "{name}");
}

pub(crate) fn decode_success<T: Wire<Value = T> + PartialEq + Debug>(name: &str, value: &T, text: &str) {
    let decoded = decode::<T>(&bytes(text), Vec::new()).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(decoded, *value, "{name}");
}

/// The bytes become a value that encodes to other bytes, because a part is unknown.
pub(crate) fn reencode<T: Wire<Value = T>>(name: &str, text: &str, again: &str) {
    let decoded = decode::<T>(&bytes(text), Vec::new()).unwrap_or_else(|error| panic!("{name}: {error}"));
    encode_success(name, &decoded, again);
}

pub(crate) fn encode_failure<T: Wire<Value = T>>(name: &str, value: &T, reason: Reason) {
    let mut encoded = vec![7];
    let mut handles = Vec::new();
    let error = encode_with_handles::<T>(value, &mut encoded, &mut handles).expect_err(name);
    assert_eq!(error.reason(), reason, "{name}");
    assert_eq!((encoded.as_slice(), handles.len()), (&[7][..], 0), "{name}");
}

pub(crate) fn decode_failure<T: Wire<Value: Debug>>(name: &str, text: &str, reason: Reason) {
    decode_failure_with_handles::<T>(name, 0, text, reason);
}

/// The bytes with another byte at `offset` are refused.
pub(crate) fn bad_padding<T: Wire<Value: Debug>>(name: &str, text: &str, offset: usize) {
    let mut bytes = bytes(text);
    assert_eq!(bytes[offset], 0, "{name}");
    bytes[offset] = 0xee;
    let error = decode::<T>(&bytes, Vec::new()).expect_err(name);
    assert_eq!((error.reason(), error.offset()), (Reason::Padding(0xee), offset), "{name}");
}

/// Ends of sockets, the others of which are handles of a message.
pub(crate) struct Handles(Vec<UnixStream>);

impl Handles {
    fn new(count: usize) -> (Self, Vec<OwnedFd>) {
        let pairs = (0..count).map(|_| UnixStream::pair().unwrap());
        let (ours, theirs): (Vec<_>, Vec<_>) = pairs.unzip();
        ours.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        (Self(ours), theirs.into_iter().map(OwnedFd::from).collect())
    }

    fn assert_closed(&self, name: &str) {
        for mut socket in &self.0 {
            let read = socket.read(&mut [0]).map_err(|error| error.kind());
            assert_ne!(read, Err(ErrorKind::WouldBlock), "{name}: a handle is open");
        }
    }
}

/// Returns the names of the files that are open, the same for duplicates.
fn files(fds: &[BorrowedFd<'_>]) -> Vec<std::path::PathBuf> {
    fds.iter().map(|fd| std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap()).collect()
}

/// `value` makes a value of that many handles. Its bytes name them in the order of `order`.
pub(crate) fn success_with_handles<T: Wire<Value = T>>(
    name: &str,
    order: &[usize],
    value: impl FnOnce(Vec<Handle>) -> T,
    text: &str,
) {
    let (_ours, theirs) = Handles::new(order.len());
    let expected = files(&order.iter().map(|index| theirs[*index].as_fd()).collect::<Vec<_>>());
    let value = value(theirs.into_iter().map(Handle::from).collect());
    let (mut encoded, mut handles) = (Vec::new(), Vec::new());
    encode_with_handles::<T>(&value, &mut encoded, &mut handles).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!((&encoded, files(&handles)), (&bytes(text), expected.clone()), "{name}");

    // Handles are not comparable, but what they encode to is.
    let copies = handles.iter().map(|handle| handle.try_clone_to_owned().unwrap()).collect();
    let decoded = decode::<T>(&encoded, copies).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (mut again, mut handles) = (Vec::new(), Vec::new());
    encode_with_handles::<T>(&decoded, &mut again, &mut handles).unwrap();
    assert_eq!((again, files(&handles)), (encoded, expected), "{name}");
}

/// The value has none of the handles: they are closed. It encodes to `again`.
pub(crate) fn drops_handles<T: Wire<Value = T> + Debug>(name: &str, count: usize, text: &str, again: &str) {
    let (ours, theirs) = Handles::new(count);
    let decoded = decode::<T>(&bytes(text), theirs).unwrap_or_else(|error| panic!("{name}: {error}"));
    ours.assert_closed(name);
    encode_success(name, &decoded, again);
}

/// As `drops_handles`, but the value has no encoding.
pub(crate) fn drops_handles_of_unknown<T: Wire<Value = T> + Debug>(name: &str, count: usize, text: &str, ordinal: u64) {
    let (ours, theirs) = Handles::new(count);
    let decoded = decode::<T>(&bytes(text), theirs).unwrap_or_else(|error| panic!("{name}: {error}"));
    ours.assert_closed(name);
    encode_failure(name, &decoded, Reason::UnknownOrdinal(ordinal));
}

pub(crate) fn encode_failure_with_handles<T: Wire<Value = T>>(
    name: &str,
    count: usize,
    value: impl FnOnce(Vec<Handle>) -> T,
    reason: Reason,
) {
    let (ours, theirs) = Handles::new(count);
    let value = value(theirs.into_iter().map(Handle::from).collect());
    encode_failure(name, &value, reason);
    drop(value);
    ours.assert_closed(name);
}

pub(crate) fn decode_failure_with_handles<T: Wire<Value: Debug>>(name: &str, count: usize, text: &str, reason: Reason) {
    let (ours, theirs) = Handles::new(count);
    let error = decode::<T>(&bytes(text), theirs).expect_err(name);
    assert_eq!(error.reason(), reason, "{name}");
    ours.assert_closed(name);
}
