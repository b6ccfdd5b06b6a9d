//! Services that run as another user.

use std::os::unix::net::UnixListener;
use std::path::Path;

use esatto::schema::TracePacketReader;
use esatto_protozero::{Fields, Value};
use rustix::process::Uid;

/// Nobody's, and not that of the tests.
pub(crate) const STRANGER: u32 = 65533;

/// A socket on which another user listens. Only the thread that makes it is that user, and for a
/// moment. Needs root, as other tests of this project do.
pub(crate) fn listen(path: &Path) -> UnixListener {
    let path = path.to_owned();
    let listening = std::thread::spawn(move || {
        let stranger = Uid::from_raw(STRANGER);
        rustix::thread::set_thread_res_uid(stranger, stranger, stranger).expect("the tests run as root");
        UnixListener::bind(path).expect("a socket")
    });
    listening.join().expect("does not panic")
}

/// The texts of test events in a trace, in order.
pub(crate) fn texts(trace: &[u8]) -> Vec<String> {
    let packets = Fields::new(trace).filter_map(|field| match field.value {
        Value::Bytes(packet) if field.id == 1 => Some(TracePacketReader::new(packet)),
        _ => None,
    });
    let texts = packets.filter_map(|packet| packet.for_testing()?.str().map(<[u8]>::to_vec));
    texts.map(|text| String::from_utf8(text).expect("is text")).collect()
}
