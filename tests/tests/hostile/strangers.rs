//! Services that run as another user.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use esatto::schema::TracePacketReader;
use esatto_protozero::{Fields, Value};
use esatto_tests::fake::{self, FakeProducerPort, PRODUCER_METHODS};
use esatto_tests::sdk::Stage;
use esatto_tests::wire::Proto;
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

/// The program connects. Whatever changes in the folder of the stage makes it try at once.
pub(crate) fn accept(stage: &Stage, listener: &UnixListener) -> FakeProducerPort {
    let is_here = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_here.load(Ordering::Relaxed) {
                stage.save("poke", "");
                std::fs::remove_file(stage.path("poke")).expect("is there");
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        let mut port = FakeProducerPort::accept(listener, &fake::first(12, &PRODUCER_METHODS), Proto::new());
        is_here.store(true, Ordering::Relaxed);
        port.serve_until("RegisterDataSource", 1);
        port
    })
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
