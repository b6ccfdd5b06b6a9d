//! Servers that break the rules.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use esatto_fidl::header::EPITAPH;
use esatto_fidl::{CallError, Method, Strictness};
use esatto_fidl_tests::test_echo::EchoSendStringRequest;
use esatto_fidl_tests::test_echo::echo::{Client, method};
use esatto_ipc::tokio::TokioIo;

use crate::raw::{Alone, KINDS, LONG, Raw, message};

/// Calls a method, which the server answers by `attack`, and then once more. Returns both errors.
fn errors(attack: impl Fn(&mut Raw, u32) + Sync, check: impl Fn(Result<(), CallError>, CallError)) {
    let alone = Alone::new();
    for kind in KINDS {
        for is_async in [false, true] {
            println!("{kind:?}, async: {is_async}");
            let (mut raw, end) = kind.pair();
            let client = Client::new(end.into()).unwrap();
            let (first, second) = thread::scope(|scope| {
                scope.spawn(|| {
                    let (txid, ordinal) = raw.receive_call();
                    assert_eq!(ordinal, method::Ping::INFO.ordinal);
                    attack(&mut raw, txid);
                    drop(raw);
                });
                match is_async {
                    true => call_twice(&client),
                    false => {
                        let first = client.ping().timeout(LONG).wait();
                        (first, client.ping().timeout(LONG).wait())
                    }
                }
            });
            check(first, second.unwrap_err());
            drop(client);
            alone.check();
        }
    }
}

fn call_twice(client: &Client) -> (Result<(), CallError>, Result<(), CallError>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let driven = client.clone();
        let io = TokioIo::duplicate(client.channel()).unwrap();
        let driving = tokio::spawn(async move { driven.channel().drive(io).await });
        let first = tokio::time::timeout(LONG, client.ping()).await.unwrap();
        let second = tokio::time::timeout(LONG, client.ping()).await.unwrap();
        driving.await.unwrap();
        (first, second)
    })
}

/// Checks that a client's call fails for this reason, and later ones too.
fn fails(expected: &str, attack: impl Fn(&mut Raw, u32) + Sync) {
    errors(attack, |first, second| {
        let first = first.unwrap_err();
        assert!(first.to_string().contains(expected), "{first}");
        assert!(!matches!(second, CallError::Timeout), "{second}");
    });
}

/// Response to `Ping`.
fn pong(txid: u32) -> Vec<u8> {
    let body = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    message(txid, Strictness::Flexible, method::Ping::INFO.ordinal, &body)
}

#[test]
fn responses_that_nobody_asked_for_end_the_connection() {
    fails("a response to no call", |raw, txid| assert!(raw.message(&pong(txid + 1))));
    fails("the response is that of another method", |raw, txid| {
        assert!(raw.message(&message(txid, Strictness::Strict, method::Later::INFO.ordinal, &[])));
    });
}

#[test]
fn a_second_response_ends_the_connection() {
    errors(
        |raw, txid| {
            assert!(raw.message(&pong(txid)));
            raw.message(&pong(txid));
            while raw.receive().is_some() {}
        },
        |first, second| {
            // The second may come before the program has taken the first.
            assert!(first.is_ok() || matches!(first, Err(CallError::Protocol(_))), "{first:?}");
            let second = second.to_string();
            assert!(second.contains("a response to no call") || second.contains("a second response"), "{second}");
        },
    );
}

#[test]
fn malformed_responses_end_the_connection() {
    fails("the magic number is 9, expected 1", |raw, txid| {
        let mut bytes = pong(txid);
        bytes[7] = 9;
        raw.message(&bytes);
    });
    fails("1 handles came that the message does not name", |raw, txid| {
        raw.with_descriptors(&pong(txid), 1);
    });
    fails("has more handles, than the limit", |raw, txid| {
        raw.with_descriptors(&pong(txid), 65);
    });
    fails("the message is longer", |raw, txid| {
        let mut bytes = pong(txid);
        bytes.resize(65_537, 0);
        raw.message(&bytes);
    });
    for len in 1..pong(1).len() {
        fails("cannot decode", |raw, txid| assert!(raw.message(&pong(txid)[..len])));
    }
}

#[test]
fn a_server_may_close_at_every_byte() {
    for len in 0..40 {
        errors(
            |raw, txid| {
                let frame = raw.frame(&pong(txid), 0);
                if len > 0 {
                    raw.bytes(&frame[..len.min(frame.len())], 0);
                }
            },
            |first, second| {
                let is_whole = first.is_ok();
                assert!(is_whole || len < 40, "{first:?}");
                assert!(!matches!(first, Err(CallError::Timeout)), "{first:?}");
                assert!(!matches!(second, CallError::Timeout), "{second}");
            },
        );
    }
}

#[test]
fn unknown_strict_events_end_the_connection() {
    for kind in KINDS {
        let (raw, end) = kind.pair();
        let client = Client::new(end.into()).unwrap();
        raw.with_descriptors(&message(0, Strictness::Strict, 77, &[]), 1);
        let error = client.wait_event(Some(LONG)).unwrap_err();
        assert!(matches!(error, CallError::Protocol("an unknown event")), "{error}");
        assert!(client.ping().timeout(LONG).wait().is_err());
    }
}

#[test]
fn a_server_that_sends_without_a_pause_does_not_delay_deadlines() {
    for kind in KINDS {
        let (raw, end) = kind.pair();
        let client = Client::new(end.into()).unwrap();
        let has_ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                // Bindings ignore control messages that they do not know.
                let control = message(0, Strictness::Flexible, 1 << 63 | 7, &[]);
                let frames = raw.frame(&control, 0);
                while raw.bytes(&frames, 0) {
                    if has_ended.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            let begin = Instant::now();
            let pause = Duration::from_millis(50);
            for _ in 0..3 {
                assert!(matches!(client.ping().timeout(pause).wait(), Err(CallError::Timeout)));
                assert!(client.wait_event(Some(pause)).unwrap().is_none());
            }
            // Neither do they keep a thread of a runtime from other tasks.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let io = TokioIo::duplicate(client.channel()).unwrap();
                let driving = tokio::time::timeout(pause, client.channel().drive(io));
                assert!(driving.await.is_err());
            });
            assert!(begin.elapsed() < LONG);
            has_ended.store(true, Ordering::Relaxed);
            drop(client);
        });
    }
}

#[test]
fn an_epitaph_is_told_to_a_client_whose_messages_were_not_read() {
    let alone = Alone::new();
    for kind in KINDS {
        for is_one_way in [false, true] {
            let (raw, end) = kind.pair();
            let client = Client::new(end.into()).unwrap();
            client.forget().unwrap();
            raw.message(&message(0, Strictness::Strict, EPITAPH, &[0xe8, 0xff, 0xff, 0xff, 0, 0, 0, 0]));
            drop(raw);
            let error = match is_one_way {
                true => client.send_string(&EchoSendStringRequest::new("text".to_owned())).unwrap_err(),
                false => client.ping().wait().unwrap_err(),
            };
            assert!(matches!(error, CallError::Epitaph(-24)), "{kind:?}: {error}");
        }
    }
    alone.check();
}
