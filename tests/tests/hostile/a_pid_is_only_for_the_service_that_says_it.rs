//! A service tells a program by which pid it knows it. Another service of the program does not see
//! that pid in its trace.

use std::os::unix::net::UnixListener;

use esatto::Tracing;
use esatto_protozero::{Fields, Value};
use esatto_tests::fake::{self, FakeProducerPort, PRODUCER_METHODS};
use esatto_tests::sdk::{Recorder, Scenario};
use esatto_tests::wire::{self, Proto};

esatto_tests::scenario!([in_process] Scenario::new(record));

/// Field of the answer to InitializeConnection.
const PEER_PID: u32 = 4001;
const STRANGE_PID: u64 = 4_242_424;

/// Commands to producers.
const START: u32 = 1;
const FLUSH: u32 = 5;
const SETUP: u32 = 6;

esatto::categories! {
    static TEST = "test";
}

fn record(recorder: &Recorder) {
    let socket = recorder.path("service");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let builder = Tracing::builder().in_process().categories(CATEGORIES).socket(socket.display().to_string());
    let _tracing = builder.start().expect("the control thread starts");
    let introduction = Proto::new().int(PEER_PID, STRANGE_PID);
    let mut port = FakeProducerPort::accept(&listener, &fake::first(12, &PRODUCER_METHODS), introduction);
    port.serve_until("RegisterDataSource", 1);
    port.setup_tracing();
    let config = Proto::new().bytes(1, b"track_event").int(2, 1);
    for command in [SETUP, START] {
        port.command(command, &Proto::new().int(1, 1).message(2, &config));
    }
    port.serve_until("NotifyDataSourceStarted", 1);

    let session = recorder.start(esatto::track_events(1024));
    esatto::instant!(TEST, "here");
    let trace = session.stop().expect("stops");
    let packets: Vec<_> = Fields::new(&trace)
        .filter_map(|field| match field.value {
            Value::Bytes(packet) if field.id == 1 => Some(packet),
            _ => None,
        })
        .collect();
    assert_eq!(pids(&packets), [u64::from(std::process::id()); 2]);

    port.command(FLUSH, &Proto::new().int(1, 1).int(2, 1));
    while port.flushed.is_empty() {
        assert!(port.serve());
    }
    let packets = port.packets();
    assert_eq!(pids(&packets), [STRANGE_PID; 2]);
}

/// The pids in the descriptors of threads and processes.
fn pids(packets: &[impl AsRef<[u8]>]) -> Vec<u64> {
    let tracks = packets.iter().filter_map(|packet| wire::last(packet.as_ref(), 60));
    let described = tracks.filter_map(|track| wire::last(track, 3).or_else(|| wire::last(track, 4)));
    described.map(|descriptor| wire::int(descriptor, 1)).collect()
}
