//! Services that run as another user.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use esatto::schema::{DataSourceConfig, TraceConfig, TracePacketReader, trace_config};
use esatto::{DataSource, Source};
use esatto_protozero::{Fields, Value};
use esatto_tests::fake::{self, FakeProducerPort, PRODUCER_METHODS};
use esatto_tests::sdk::Recorder;
use esatto_tests::wire::Proto;
use rustix::process::Uid;

/// User id without a user, other than that of the tests.
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

/// The program connects. A change in the folder of the recorder makes it try at once.
pub(crate) fn accept(recorder: &Recorder, listener: &UnixListener) -> FakeProducerPort {
    let is_here = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_here.load(Ordering::Relaxed) {
                recorder.save("poke", "");
                std::fs::remove_file(recorder.path("poke")).expect("is there");
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        let mut port = FakeProducerPort::accept(listener, &fake::first(12, &PRODUCER_METHODS), Proto::new());
        is_here.store(true, Ordering::Relaxed);
        port.serve_until("RegisterDataSource", 1);
        port
    })
}

/// A session that records the data source `com.example.numbers`.
pub(crate) fn numbers() -> TraceConfig {
    let config = DataSourceConfig { name: Some("com.example.numbers".into()), ..Default::default() };
    TraceConfig {
        buffers: vec![trace_config::BufferConfig { size_kb: Some(64 << 10), ..Default::default() }],
        data_sources: vec![trace_config::DataSource { config: Some(Box::new(config)), ..Default::default() }],
        ..Default::default()
    }
}

/// Records 0, 1, 2 and so on until it is over; returns how many.
pub(crate) fn record_numbers<D: DataSource>(source: &'static Source<D>, is_over: &AtomicBool) -> usize {
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        source.trace(|context| {
            context.packet(|packet| {
                packet.for_testing().str(number.to_string());
            });
        });
        number += 1;
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
    number
}

/// All numbers that were recorded are in the trace, in order.
#[track_caller]
pub(crate) fn assert_has_numbers(trace: &[u8], recorded: usize) {
    assert_eq!(texts(trace), (0..recorded).map(|number| number.to_string()).collect::<Vec<_>>());
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
