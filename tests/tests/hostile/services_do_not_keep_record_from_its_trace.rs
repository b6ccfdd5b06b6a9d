//! A service that answers wrongly, without end or not at all does not cost a recording more than
//! what it keeps back.

use esatto_tests::fake::{CONSUMER_METHODS, Call, FakeService, Methods, first};
use esatto_tests::wire::Proto;
use esatto_tests::{DEADLINE, Harness, Implementation, Signal, esatto_bin};
use std::os::unix::net::UnixListener;
use std::sync::mpsc;
use std::thread;

const CONFIG: &str = "buffers { size_kb: 64 } flush_timeout_ms: 100 data_source_stop_timeout_ms: 100 data_sources { \
                      config { name: \"x\" } }";

fn all_methods() -> Methods {
    first(CONSUMER_METHODS.len(), &CONSUMER_METHODS)
}

fn without(method: &str) -> Methods {
    all_methods().into_iter().filter(|(_, name)| *name != method).collect()
}

/// Plays a service. `answer` handles a call and returns true, or leaves it to a truthful service
/// with one event of a program.
fn serve(
    listener: &UnixListener,
    methods: &Methods,
    mut answer: impl FnMut(&mut FakeService, &Call) -> bool,
) -> FakeService {
    let mut service = FakeService::accept(listener, methods);
    let mut enabled = None;
    while let Some(call) = service.call() {
        if answer(&mut service, &call) {
            continue;
        }
        match call.method {
            "EnableTracing" => enabled = Some(call),
            "DisableTracing" => {
                service.reply(&call, &Proto::new());
                service.reply(&enabled.take().expect("a session"), &Proto::new().int(1, 1));
            }
            "ReadBuffers" => {
                // An event of a program.
                let packet = Proto::new().int(8, 1).int(10, 2).message(11, &Proto::new().int(9, 3));
                let slice = Proto::new().bytes(1, &packet.0).int(2, 1);
                service.reply(&call, &Proto::new().message(2, &slice));
            }
            "ObserveEvents" => {}
            _ => service.reply(&call, &Proto::new()),
        }
    }
    service
}

/// Returns whether the command asks for the counts again, so that the session runs.
fn is_second_question(service: &FakeService, call: &Call) -> bool {
    let asked = service.calls.iter().filter(|name| **name == "GetTraceStats").count();
    call.method == "GetTraceStats" && asked == 2
}

fn reject(service: &mut FakeService, call: &Call) {
    service.peer.send(&Proto::new().int(2, call.id).message(6, &Proto::new().int(1, 0)).frame());
}

/// Records with such a service until SIGINT. Returns the exit status and the lines of the command.
fn record(
    methods: Methods,
    mut answer: impl FnMut(&mut FakeService, &Call) -> bool + Send + 'static,
) -> (Option<i32>, String, Harness) {
    let harness = Harness::new();
    let listener = UnixListener::bind(harness.consumer_socket()).expect("a socket");
    let mut program = harness.record(Implementation::Ours, "trace", CONFIG).program;
    let (is_running, running) = mpsc::channel();
    let answer = move |service: &mut FakeService, call: &Call| {
        if is_second_question(service, call) {
            is_running.send(()).expect("the test waits");
        }
        answer(service, call)
    };
    let service = thread::spawn(move || serve(&listener, &methods, answer));
    running.recv_timeout(DEADLINE).expect("the session runs");
    program.signal(Signal::INT);
    let status = program.wait().code();
    service.join().expect("the service has played its part");
    (status, program.log(), harness)
}

#[test]
fn if_it_does_not_tell_its_programs() {
    let (status, log, harness) = record(all_methods(), |_, call| call.method == "QueryServiceState");
    assert_eq!(status, Some(0), "{log}");
    assert!(log.contains("Wrote") && !log.contains("No program"), "{log}");
    assert!(std::fs::metadata(harness.path("trace")).expect("a trace").len() > 0);
}

#[test]
fn if_it_tells_of_programs_without_end() {
    let (status, log, _) = record(all_methods(), |service, call| {
        if call.method != "QueryServiceState" {
            return false;
        }
        for _ in 0..100 {
            service.reply_to(call.id, &Proto::new().message(1, &Proto::new()), true, None);
        }
        true
    });
    assert_eq!(status, Some(0), "{log}");
}

#[test]
fn if_it_cannot_tell_its_programs() {
    let (status, log, _) = record(without("QueryServiceState"), |_, _| false);
    assert_eq!(status, Some(0), "{log}");
    assert!(!log.contains("No program"), "{log}");
}

#[test]
fn unless_it_refuses_to_deliver_it() {
    let (status, log, _) = record(all_methods(), |service, call| {
        let is_read = call.method == "ReadBuffers";
        if is_read {
            reject(service, call);
        }
        is_read
    });
    assert_eq!(status, Some(1), "{log}");
    assert!(log.contains("the service did not deliver the trace"), "{log}");
}

#[test]
fn signals_are_heard_while_it_answers_without_end() {
    let (status, log, _) = record(all_methods(), |service, call| {
        if is_second_question(service, call) {
            // It does nothing else until the command ends.
            let reply = Proto::new().int(1, 1).int(2, 1).message(3, &Proto::new());
            let frames = Proto::new().int(2, call.id).message(6, &reply).frame().repeat(1000);
            service.peer.flood(&frames, 1 << 40);
            return true;
        }
        false
    });
    assert_eq!(status, Some(1), "{log}");
}

fn list(
    methods: Methods,
    answer: impl FnMut(&mut FakeService, &Call) -> bool + Send + 'static,
) -> (Option<i32>, String) {
    let harness = Harness::new();
    let listener = UnixListener::bind(harness.consumer_socket()).expect("a socket");
    let mut list = harness.start("list", harness.command(esatto_bin()).arg("list"));
    let service = thread::spawn(move || serve(&listener, &methods, answer));
    let status = list.wait().code();
    service.join().expect("the service has played its part");
    (status, list.log())
}

#[test]
fn list_names_the_reason() {
    let (status, log) = list(without("QueryServiceState"), |_, _| false);
    assert!(status == Some(1) && log.contains("it is too old for that"), "{log}");
    let (status, log) = list(all_methods(), |service, call| {
        reject(service, call);
        true
    });
    assert!(status == Some(1) && log.contains("the service refused the query"), "{log}");
}
