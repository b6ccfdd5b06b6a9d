//! Calls of all kinds between a blocking client and both forms of a server, over a socket pair.

use esatto_ipc::{CallError, Code, Error};

use crate::sample_store::{SOON, both_forms, get, note, watch};
use crate::store;

#[test]
fn a_unary_call_returns_its_reply() {
    for (_, channel, server) in both_forms() {
        let client = store::Client::new(&channel);
        let mut request = get("a");
        request.payload = Some(vec![7; 100_000]);
        let reply = client.get(&request).timeout(SOON).wait().unwrap();
        assert_eq!((reply.value, reply.payload), (request.key, request.payload));
        assert_eq!(client.get(&get("b")).wait().unwrap().value.unwrap().to_str(), Some("b"));
        drop((client, channel));
        assert!(matches!(*server.join().unwrap(), Error::Disconnected));
    }
}

#[test]
fn a_failure_has_code_text_and_details() {
    for (_, channel, _) in both_forms() {
        let client = store::Client::new(&channel);
        let error = client.get(&get("missing")).wait().unwrap_err();
        assert_eq!(error.to_string(), "Store.Get failed: no such key (NOT_FOUND)");
        assert_eq!((error.code(), error.status().unwrap().details()), (Code::NotFound, &b"\x01\x02"[..]));
        let error = client.get(&get("huge")).wait().unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
        let mut request = get("large");
        request.payload = Some(vec![0; 200_000]);
        let error = client.get(&request).wait().unwrap_err();
        assert!(matches!(error, CallError::TooLarge { method: "Store.Get", .. }), "{error}");
        client.get(&get("a")).wait().unwrap();
    }
}

#[test]
fn a_stream_returns_all_replies_in_order() {
    for (_, channel, _) in both_forms() {
        let client = store::Client::new(&channel);
        for (count, size) in [(0, 0), (1, 0), (1000, 0), (100, 100_000)] {
            let mut numbers = Vec::new();
            for event in client.watch(&watch(count, size)).timeout(SOON) {
                let event = event.unwrap();
                assert_eq!(event.payload.unwrap().len(), size as usize);
                numbers.push(event.number.unwrap());
            }
            assert!(numbers.into_iter().eq(0..count));
        }
        assert_eq!((channel.open_calls(), channel.unexpected()), (0, 0));
    }
}

#[test]
fn a_one_way_call_alone_arrives() {
    for (sample, channel, server) in both_forms() {
        store::Client::new(&channel).note(&note("only")).send().unwrap();
        drop(channel);
        server.join().unwrap();
        assert_eq!(*sample.notes.lock().unwrap(), ["only"]);
    }
}

#[test]
fn one_way_calls_arrive_before_later_calls() {
    for (sample, channel, _) in both_forms() {
        let client = store::Client::new(&channel);
        for i in 0..100 {
            client.note(&note(&i.to_string())).send().unwrap();
        }
        client.get(&get("a")).wait().unwrap();
        assert!(sample.notes.lock().unwrap().iter().cloned().eq((0..100).map(|i| i.to_string())));
    }
}
