//! FIDL: the bytes of messages, and the texts of schemas.

use std::fmt::Debug;
use std::fs::File;
use std::os::fd::OwnedFd;

use esatto_fidl::{Reason, Wire, decode, encode_with_handles};
use esatto_fidl_codegen::{Config, Error};
use esatto_fidl_tests::{test_conformance as conformance, test_shapes as shapes};

/// A byte with the number of handles, and a message. Decoded as several types, it is an error, or a
/// value that encodes to the same bytes. Only unknown members get lost.
pub fn fidl_decode(bytes: &[u8]) {
    let Some((handles, bytes)) = bytes.split_first() else { return };
    let handles = usize::from(handles % 4);
    judge::<shapes::Tree>(bytes, handles);
    judge::<shapes::Nested>(bytes, handles);
    judge::<shapes::Holder>(bytes, handles);
    judge::<conformance::Arrays>(bytes, handles);
    judge::<conformance::ManyVectors>(bytes, handles);
    judge::<conformance::Vectors>(bytes, handles);
    judge::<conformance::UnionInTable>(bytes, handles);
    judge::<conformance::UnionStructs>(bytes, handles);
    judge::<conformance::Sandwich6>(bytes, handles);
    judge::<conformance::SeveralMaybe>(bytes, handles);
    judge::<conformance::EmptyTwiceVector>(bytes, handles);
    judge::<conformance::TableLink>(bytes, handles);
    judge::<conformance::Zoo>(bytes, handles);
}

fn judge<T: Wire<Value = T> + Debug>(bytes: &[u8], handles: usize) {
    let files = (0..handles).map(|_| OwnedFd::from(File::open("/dev/null").expect("a file that exists")));
    let Ok(value) = decode::<T>(bytes, files.collect()) else { return };
    let (mut again, mut fds) = (Vec::new(), Vec::new());
    match encode_with_handles::<T>(&value, &mut again, &mut fds) {
        Ok(()) if again == bytes => assert_eq!(fds.len(), handles),
        Ok(()) => {
            assert!(again.len() <= bytes.len() && fds.len() <= handles, "{value:?}");
            let copies = fds.iter().map(|fd| fd.try_clone_to_owned().expect("a duplicate")).collect();
            let value = decode::<T>(&again, copies).expect("our own encoding");
            let mut third = Vec::new();
            encode_with_handles::<T>(&value, &mut third, &mut Vec::new()).expect("a value that was encoded before");
            assert_eq!(third, again);
        }
        Err(error) => assert!(matches!(error.reason(), Reason::UnknownOrdinal(_)), "{error}"),
    }
}

/// A file of Fuchsia's compiler: an error, or code, and the same again.
pub fn fidl_ir(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    same_twice(&Config::new().ir_text("fuzz.json", text));
}

/// A schema: an error at a place in it, or code, and the same again.
pub fn fidl_schema(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    same_twice(&Config::new().text("fuzz.fidl", text));
}

fn same_twice(config: &Config) {
    match config.generate() {
        Ok(code) => assert_eq!(config.generate().ok(), Some(code)),
        Err(error) => {
            assert!(!matches!(error, Error::Io { .. } | Error::NoFiles), "{error}");
            assert_eq!(config.generate().expect_err("the same again").to_string(), error.to_string());
        }
    }
}
