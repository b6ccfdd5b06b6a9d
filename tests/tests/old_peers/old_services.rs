//! Our application and our command against services that lack later features.

use esatto_tests::fake::{CONSUMER_METHODS, FakeProducerPort, FakeService, Methods, PRODUCER_METHODS, first};
use esatto_tests::raw::packet;
use esatto_tests::wire::{self, Proto};
use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation};
use std::os::unix::net::UnixListener;

/// Three rounds of one thread.
const WORKLOAD: Workload = Workload { threads: 1, rounds: 3, pause_us: 0 };
/// Track events of that: a frame, a drawing and an upload, each begun and ended, a tick and a
/// count; and the last one.
const EVENTS: usize = 3 * 8 + 1;

/// Behaviour of a service of a certain age.
struct Age {
    methods: Methods,
    /// The answer to InitializeConnection.
    introduction: Proto,
    /// True if it sends setup_data_source.
    sets_up: bool,
}

fn config() -> Proto {
    Proto::new().bytes(1, "track_event").int(2, 1).int(4, 1)
}

/// Our application is recorded by such a service, which gets every event.
fn is_served(age: &Age) -> FakeProducerPort {
    let harness = Harness::new();
    let listener = UnixListener::bind(harness.producer_socket()).expect("a socket");
    let mut application = harness.application(Implementation::Ours, WORKLOAD);
    let mut port = FakeProducerPort::accept(&listener, &age.methods, age.introduction.clone());
    port.serve_until("RegisterDataSource", 1);
    // A command that does not exist yet.
    port.command(15, &Proto::new().int(1, 7).bytes(2, "from the future"));
    // A flush before anything else, of unknown instances.
    port.command(5, &Proto::new().int(1, 4711).int(1, 4712).int(2, 1));
    while port.flushed.is_empty() && port.service.calls.iter().filter(|call| **call == "CommitData").count() == 0 {
        assert!(port.serve(), "the application goes: {:?}", port.service.calls);
    }
    assert_eq!(port.flushed, [1], "every flush is acknowledged");
    port.setup_tracing();
    let instance = Proto::new().int(1, 7).message(2, &config());
    if age.sets_up {
        port.command(6, &instance);
    }
    port.command(1, &instance);
    // It records, and ends by itself.
    while port.serve() {}
    port.scrape();
    application.wait_ok();
    let events = port.packets().iter().filter(|packet| wire::last(packet, 11).is_some()).count();
    assert_eq!(events, EVENTS, "track events: {:?}", port.service.calls);
    port
}

fn of(count: usize) -> Age {
    let direct_patching = Proto::new().int(1, 0).int(2, 1);
    Age { methods: first(count, &PRODUCER_METHODS), introduction: direct_patching, sets_up: true }
}

#[test]
fn a_producer_of_a_service_of_2018() {
    let age = Age { introduction: Proto::new(), sets_up: false, ..of(5) };
    let port = is_served(&age);
    assert!(port.service.calls.iter().all(|call| PRODUCER_METHODS[..5].contains(call)));
}

#[test]
fn a_producer_of_a_service_without_sync() {
    let port = is_served(&Age { introduction: Proto::new(), ..of(10) });
    assert!(port.service.calls.contains(&"NotifyDataSourceStarted"), "it can be told");
    assert!(port.service.calls.contains(&"RegisterTraceWriter"), "it can be told");
}

#[test]
fn a_producer_of_a_service_without_update_data_source() {
    let port = is_served(&of(11));
    assert!(!port.service.calls.contains(&"UpdateDataSource"));
}

#[test]
fn a_producer_of_a_service_with_numbers_of_its_own() {
    let mut age = of(12);
    for (number, (id, _)) in age.methods.iter_mut().rev().enumerate() {
        *id = 100 + number as u64;
    }
    is_served(&age);
}

#[test]
fn a_producer_of_a_service_that_says_more_than_is_known() {
    let mut age = of(12);
    age.methods.push((13, "MethodOfTheFuture"));
    age.introduction = age.introduction.int(3, 0).bytes(77, "later");
    is_served(&age);
}

/// `esatto record` with a service that has so many methods. The trace has the packets that the
/// service sends.
fn records(methods: &Methods) -> Vec<&'static str> {
    let harness = Harness::new();
    let listener = UnixListener::bind(harness.consumer_socket()).expect("a socket");
    let config = "buffers { size_kb: 64 } duration_ms: 50 data_sources { config { name: \"x\" } }";
    let mut recording = harness.record(Implementation::Ours, "trace", config);
    let mut service = FakeService::accept(&listener, methods);
    let sent = [packet(1, "one"), packet(2, &"two".repeat(1000))];
    while let Some(call) = service.call() {
        match call.method {
            // It ended, as its duration is over. Services of 2018 gave no reason.
            "EnableTracing" => {
                assert!(wire::last(&call.args, 1).is_some(), "a config");
                service.reply(&call, &Proto::new().int(1, 1));
            }
            "ReadBuffers" => {
                // The second packet in two slices, in two replies.
                let (head, tail) = sent[1].split_at(500);
                let slice = |bytes: &[u8], is_last| Proto::new().bytes(1, bytes).int(2, is_last);
                let body = Proto::new().message(2, &slice(&sent[0], 1)).message(2, &slice(head, 0));
                service.reply_to(call.id, &body, true, None);
                service.reply_to(call.id, &Proto::new().message(2, &slice(tail, 1)), true, None);
                service.reply_to(call.id, &Proto::new(), false, None);
            }
            _ => service.reply(&call, &Proto::new()),
        }
    }
    let trace = std::fs::read(recording.finish()).expect("the trace");
    assert_eq!(wire::all(&trace, 1), sent.iter().map(Vec::as_slice).collect::<Vec<_>>());
    service.calls
}

#[test]
fn a_consumer_of_services_of_every_age() {
    for count in [5, 11, 13, 14, 15] {
        let calls = records(&first(count, &CONSUMER_METHODS));
        assert!(calls.contains(&"EnableTracing") && calls.contains(&"ReadBuffers"), "{count}: {calls:?}");
    }
}

#[test]
fn a_consumer_of_a_service_with_numbers_of_its_own() {
    let methods = first(15, &CONSUMER_METHODS).into_iter().map(|(id, name)| (1000 - id, name)).collect();
    records(&methods);
}
