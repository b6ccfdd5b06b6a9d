//! Losses in the process that no trace can show are counted.

#![cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
#![allow(missing_docs, reason = "tests")]

use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use esatto::producer::Endpoint;
use esatto::producer::shm::Region;
use esatto::{BufferExhausted, Tracing, losses};
use esatto_protozero::Fields;
use esatto_schema::TracePacketWriter;

/// Makes an endpoint with its own memory, and a service that does not answer.
fn endpoint() -> (Endpoint, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    (Endpoint::builder("loses").offer_memory().over(ours).expect("is a socket"), theirs)
}

#[test]
fn sequences_beyond_the_last_id_are_counted() {
    let (endpoint, _service) = endpoint();
    let writers: Vec<_> = (0..32_767).map(|_| endpoint.create_writer(1, BufferExhausted::Drop)).collect();
    assert!(writers.iter().all(|writer| !writer.is_null()));
    assert_eq!(losses().sequences, 0);
    for lost in 1..=3 {
        assert!(endpoint.create_writer(1, BufferExhausted::Drop).is_null());
        assert_eq!(losses().sequences, lost);
    }
}

#[test]
fn chunks_that_the_service_takes_away_are_counted() {
    let (endpoint, _service) = endpoint();
    let arbiter = endpoint.arbiter().expect("there is memory");
    let mut writer = arbiter.create_startup_writer(1);
    let mut write = |text: &str| {
        writer.new_packet().typed::<TracePacketWriter<'_>>().for_testing().str(text);
        let page = arbiter.region().atomic_u32(0);
        let word = page.load(Ordering::Relaxed);
        if text == "lost" {
            page.store(0, Ordering::Relaxed);
        }
        writer.flush();
        word
    };
    assert_ne!(write("lost"), 0, "the page is in use");
    assert_eq!(losses().chunks, 1);
    write("kept");
    assert_eq!(losses().chunks, 1);
    // The next packet of the writer marks the loss.
    let mut payload = vec![0; 256];
    arbiter.region().read_into(16, &mut payload);
    let size = usize::from(payload[0]);
    let packet = Fields::new(&payload[1..=size]);
    let dropped = packet.clone().find(|field| field.id == 42).map(|field| field.as_u64());
    assert_eq!(dropped, Some(1), "{:?}", &payload[..32]);
}

#[test]
fn dropped_triggers_are_counted() {
    let folder = std::env::temp_dir().join("esatto-nowhere");
    let socket = folder.join("nobody").display().to_string();
    let tracing = Tracing::builder().socket(socket).start().expect("the control thread starts");
    for _ in 0..100 {
        tracing.activate_triggers(&["one", "two"], Duration::from_secs(600));
    }
    // 64 requests wait; 36 with two names each are dropped.
    let begin = Instant::now();
    while losses().triggers < 72 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", losses());
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(10));
    assert_eq!(losses().triggers, 72);
}
