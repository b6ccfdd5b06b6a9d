//! Clients that break the rules, beside one that keeps them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use esatto_fidl::body::{Body, Payload};
use esatto_fidl::socket::{MAX_MESSAGE_BYTES, MAX_MESSAGE_HANDLES};
use esatto_fidl::{CallError, Header, Method, Responder, Strictness, endpoints};
use esatto_fidl_tests::test_echo::echo::{Client, Methods, method, serve};
use esatto_fidl_tests::test_echo::*;
use esatto_fidl_tests::test_shapes::{Choice, Options};
use esatto_ipc::tokio::TokioIo;

use crate::raw::{Alone, KINDS, Kind, LONG, Raw, message};

/// Methods of the server, which all its connections share.
#[derive(Clone, Default)]
struct Answers {
    one_ways: Arc<AtomicUsize>,
    /// Milliseconds that a one-way method takes.
    slowness: Arc<AtomicU64>,
    /// Threads that answer need it.
    gate: Arc<Mutex<()>>,
}

impl Methods for Answers {
    fn echo_string(&mut self, request: EchoEchoStringRequest, responder: Responder<method::EchoString>) {
        let _ = responder.send(&EchoEchoStringResponse { response: request.value });
    }

    fn send_string(&mut self, _: EchoSendStringRequest) {
        thread::sleep(Duration::from_millis(self.slowness.load(Ordering::Relaxed)));
        self.one_ways.fetch_add(1, Ordering::Relaxed);
    }

    fn divide(&mut self, _: EchoDivideRequest, responder: Responder<method::Divide>) {
        let _ = responder.send(&Err(DivisionError::ByZero));
    }

    fn later(&mut self, _: Choice, responder: Responder<method::Later>) {
        let gate = Arc::clone(&self.gate);
        thread::spawn(move || {
            drop(gate.lock().unwrap());
            responder.send(&Options::default())
        });
    }

    fn ping(&mut self, responder: Responder<method::Ping>) {
        let _ = responder.send(&());
    }

    fn forget(&mut self) {}

    fn pass(&mut self, request: EchoPassRequest, responder: Responder<method::Pass>) {
        let _ = responder.send(&EchoPassResponse { file: Some(request.file) });
    }

    fn fail(&mut self, responder: Responder<method::Fail>) {
        responder.close_with(-24);
    }

    fn unknown_method(&mut self, _: u64) {}
}

/// Ways to run a server.
#[derive(Clone, Copy, Debug)]
enum Style {
    /// A thread for each connection.
    Threads,
    /// Both connections on one thread of tokio.
    Tokio,
}

/// Runs a server with a hostile client and another one, which is served all the time. `attack`
/// returns when the hostile client's connection shall end. Returns its reason.
fn reason(kind: Kind, style: Style, answers: &Answers, attack: impl FnOnce(&mut Raw)) -> Result<(), CallError> {
    let (mut hostile, hostile_end) = kind.pair();
    let (client, end) = endpoints().unwrap();
    let mut servers = [hostile_end.into(), end].map(|end| serve(end, answers.clone()).unwrap());
    let (sender, receiver) = mpsc::channel();
    let threads = match style {
        Style::Threads => servers
            .into_iter()
            .enumerate()
            .map(|(number, mut server)| {
                let sender = sender.clone();
                thread::spawn(move || {
                    let result = server.run();
                    drop(server);
                    sender.send((number, result)).unwrap();
                })
            })
            .collect(),
        Style::Tokio => vec![thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let ios = [0, 1].map(|number| TokioIo::duplicate(&servers[number]).unwrap());
                let ([hostile, good], [hostile_io, good_io]) = (&mut servers, ios);
                tokio::join!(async { sender.send((0, hostile.drive(hostile_io).await)).unwrap() }, async {
                    sender.send((1, good.drive(good_io).await)).unwrap()
                },);
            });
        })],
    };
    let client = Client::new(client).unwrap();
    client.ping().timeout(LONG).wait().unwrap();
    attack(&mut hostile);
    // Other clients are served on, before and after the hostile one is gone.
    client.ping().timeout(LONG).wait().unwrap();
    drop(hostile);
    client.ping().timeout(LONG).wait().unwrap();
    drop(client);
    let mut results = [receiver.recv_timeout(LONG).unwrap(), receiver.recv_timeout(LONG).unwrap()];
    results.sort_by_key(|(number, _)| *number);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let [(_, hostile), (_, good)] = results;
    good.unwrap();
    hostile
}

fn both_styles(test: impl Fn(Kind, Style)) {
    let alone = Alone::new();
    for kind in KINDS {
        for style in [Style::Threads, Style::Tokio] {
            println!("{kind:?}, {style:?}");
            test(kind, style);
            alone.check();
        }
    }
}

/// Checks that the server ends this client's connection for this reason.
fn refused(expected: &str, attack: impl Fn(&mut Raw)) {
    both_styles(|kind, style| {
        let error = reason(kind, style, &Answers::default(), |raw| {
            attack(raw);
            while raw.receive().is_some() {}
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    });
}

/// Returns the bytes of a call.
fn call<M: Method<Request = Payload<T>>, T: esatto_fidl::Wire<Value = T> + 'static>(txid: u32, request: &T) -> Vec<u8> {
    let (mut bytes, mut handles) = (Vec::new(), Vec::new());
    M::Request::encode(request, &mut bytes, &mut handles).unwrap();
    message(txid, M::INFO.strictness, M::INFO.ordinal, &bytes)
}

fn echo_string(txid: u32, text: &str) -> Vec<u8> {
    call::<method::EchoString, _>(txid, &EchoEchoStringRequest::new(text.to_owned()))
}

fn send_string(text: &str) -> Vec<u8> {
    call::<method::SendString, _>(0, &EchoSendStringRequest::new(text.to_owned()))
}

fn ping(txid: u32) -> Vec<u8> {
    message(txid, Strictness::Flexible, method::Ping::INFO.ordinal, &[])
}

const UNKNOWN: u64 = 0x1234_5678;

#[test]
fn other_magic_numbers_versions_and_ordinals_are_refused() {
    let with = |at: usize, byte: u8| {
        let mut bytes = ping(1);
        bytes[at] = byte;
        bytes
    };
    refused("the magic number is 9, expected 1", |raw| assert!(raw.message(&with(7, 9))));
    refused("not in version 2 of the wire format", |raw| assert!(raw.message(&with(4, 0))));
    let zero = message(1, Strictness::Flexible, 0, &[]);
    refused("the ordinal of the message is 0", |raw| assert!(raw.message(&zero)));
}

#[test]
fn unknown_strict_methods_are_refused() {
    for txid in [0, 1] {
        let call = message(txid, Strictness::Strict, UNKNOWN, &[]);
        refused("a call of an unknown method", |raw| assert!(raw.message(&call)));
    }
}

#[test]
fn unknown_flexible_methods_are_answered() {
    both_styles(|kind, style| {
        let result = reason(kind, style, &Answers::default(), |raw| {
            raw.message(&message(0, Strictness::Flexible, UNKNOWN, b"any body"));
            raw.with_descriptors(&message(7, Strictness::Flexible, UNKNOWN, b"any body"), 3);
            let answer = raw.receive().unwrap();
            assert_eq!((answer[0], answer[16], answer[24..28].to_vec()), (7, 3, (-2_i32).to_le_bytes().to_vec()));
            raw.message(&ping(8));
            assert_eq!(raw.receive().unwrap()[0], 8);
        });
        result.unwrap();
    });
}

#[test]
fn calls_of_the_wrong_kind_are_refused() {
    let mut call = ping(0);
    refused("a two-way call waits for no response", |raw| assert!(raw.message(&call)));
    call = send_string("text");
    call[0] = 1;
    refused("a one-way call waits for a response", |raw| assert!(raw.message(&call)));
}

#[test]
fn cut_messages_are_refused() {
    let whole = echo_string(1, "twelve bytes");
    for len in 1..whole.len() {
        let cut = &whole[..len];
        refused("the message ends here", |raw| assert!(raw.message(cut)));
    }
}

#[test]
fn a_client_may_close_at_every_byte() {
    both_styles(|kind, style| {
        let (raw, _) = kind.pair();
        let whole = raw.frame(&echo_string(1, "text"), 0);
        drop(raw);
        for len in 0..=whole.len() {
            let result = reason(kind, style, &Answers::default(), |raw| {
                assert!(len == 0 || raw.bytes(&whole[..len], 0));
                // The answer, so that it need not wait for a client that is gone.
                assert!(len < whole.len() || raw.receive().is_some());
            });
            assert_eq!(result.is_ok(), len == 0 || len == whole.len(), "{len}: {result:?}");
        }
    });
}

#[test]
fn more_descriptors_than_the_message_names_are_refused() {
    refused("2 handles came that the message does not name", |raw| {
        assert!(raw.with_descriptors(&echo_string(1, "text"), 2));
    });
    refused("cannot decode", |raw| assert!(raw.with_descriptors(&ping(1), 1)));
    let too_many = MAX_MESSAGE_HANDLES + 1;
    refused("has more handles, than the limit", |raw| {
        raw.with_descriptors(&echo_string(1, "text"), too_many);
    });
}

#[test]
fn fewer_descriptors_than_announced_are_refused() {
    let mut pass = message(1, Strictness::Strict, method::Pass::INFO.ordinal, &[0xff; 4]);
    pass.extend_from_slice(&[0; 4]);
    refused("handle", |raw| {
        let frame = raw.frame(&pass, 1);
        assert!(raw.bytes(&frame, 0));
    });
}

#[test]
fn descriptors_without_a_message_on_a_stream_are_refused() {
    let check = |attack: &dyn Fn(&mut Raw)| {
        let error = reason(Kind::Stream, Style::Tokio, &Answers::default(), |raw| {
            attack(raw);
            while raw.receive().is_some() {}
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("handles came without a message that announces them"), "{error}");
    };
    let alone = Alone::new();
    let frame = |raw: &Raw, announced| raw.frame(&echo_string(1, "text"), announced);
    // A whole message that announces none, and the first half of one that announces fewer.
    check(&|raw| assert!(raw.bytes(&frame(raw, 0), 1)));
    check(&|raw| assert!(raw.bytes(&frame(raw, 1)[..20], 2)));
    // Less than a message can announce.
    check(&|raw| {
        for byte in &frame(raw, 64)[..4] {
            raw.bytes(std::slice::from_ref(byte), 60);
        }
    });
    alone.check();
}

#[test]
fn messages_above_the_limit_are_refused() {
    let longest = send_string(&"x".repeat(MAX_MESSAGE_BYTES - Header::SIZE - 16));
    assert_eq!(longest.len(), MAX_MESSAGE_BYTES);
    both_styles(|kind, style| {
        let answers = Answers::default();
        let result = reason(kind, style, &answers, |raw| {
            assert!(raw.message(&longest));
            raw.message(&ping(1));
            assert_eq!(raw.receive().unwrap()[0], 1);
        });
        result.unwrap();
        assert_eq!(answers.one_ways.load(Ordering::Relaxed), 1);
    });
    let mut longer = longest.clone();
    longer.push(0);
    refused("the message is longer", |raw| {
        raw.message(&longer);
    });
}

#[test]
fn a_transaction_id_that_is_used_twice_is_answered_twice() {
    both_styles(|kind, style| {
        let result = reason(kind, style, &Answers::default(), |raw| {
            for text in ["one", "two"] {
                raw.message(&echo_string(5, text));
            }
            for text in ["one", "two"] {
                let answer = raw.receive().unwrap();
                assert_eq!((answer[0], &answer[32..35]), (5, text.as_bytes()));
            }
        });
        result.unwrap();
    });
}

#[test]
fn a_flood_of_one_way_calls_waits_for_a_slow_method() {
    both_styles(|kind, style| {
        let answers = Answers::default();
        answers.slowness.store(20, Ordering::Relaxed);
        let call = send_string(&"x".repeat(30_000));
        let result = reason(kind, style, &answers, |raw| {
            // The pause is shorter than a call.
            let sent = raw.flood(&call, Duration::from_millis(5));
            let waiting = sent - answers.one_ways.load(Ordering::Relaxed);
            assert!(waiting * call.len() < 1 << 20, "{waiting} calls wait in memory");
            answers.slowness.store(0, Ordering::Relaxed);
            raw.message(&ping(1));
            assert_eq!(raw.receive().unwrap()[0], 1);
            assert_eq!(answers.one_ways.load(Ordering::Relaxed), sent);
        });
        result.unwrap();
    });
}

#[test]
fn a_client_that_does_not_read_waits_until_it_does() {
    both_styles(|kind, style| {
        let result = reason(kind, style, &Answers::default(), |raw| {
            let text = "x".repeat(100);
            let sent = raw.flood(&echo_string(1, &text), Duration::from_millis(300));
            assert!(sent * text.len() < 4 << 20, "{sent} calls were taken");
            for _ in 0..sent {
                assert_eq!(raw.receive().unwrap().len(), 16 + 16 + 104);
            }
        });
        result.unwrap();
    });
}

#[test]
fn a_client_that_never_reads_stops_only_itself() {
    both_styles(|kind, style| {
        let result = reason(kind, style, &Answers::default(), |raw| {
            raw.flood(&echo_string(1, "text"), Duration::from_millis(300));
        });
        assert!(matches!(result, Err(CallError::Closed)), "{result:?}");
    });
}

#[test]
fn answers_of_other_threads_do_not_wait_for_the_next_call() {
    both_styles(|kind, style| {
        let answers = Answers::default();
        let result = reason(kind, style, &answers, |raw| {
            let gate = answers.gate.lock().unwrap();
            // More than the socket takes.
            let call = call::<method::Later, _>(1, &Choice::Text("x".to_owned()));
            for _ in 0..500 {
                assert!(raw.message(&call));
            }
            raw.message(&ping(2));
            assert_eq!(raw.receive().unwrap()[0], 2);
            drop(gate);
            // The threads answer before the first answer is read.
            thread::sleep(Duration::from_millis(300));
            for _ in 0..500 {
                assert_eq!(raw.receive().unwrap()[0], 1);
            }
        });
        result.unwrap();
    });
}
