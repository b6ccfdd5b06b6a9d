//! Calls of consumers other than configuring, ending and reading: flushes of every kind, detaching
//! and attaching, and changes of a running config. Also late acknowledgements, and several sessions
//! at once.

use crate::compare;
use crate::outcome::Rules::V2;
use esatto_tests::raw::RawConsumer;
use esatto_tests::wire::{self, Proto};

/// A V2 buffer, the data source `d`, and no clock snapshot that comes in between.
fn config() -> Proto {
    let source = Proto::new().message(1, &Proto::new().bytes(1, "d"));
    let builtin = Proto::new().int(6, 60_000);
    Proto::new().message(1, &Proto::new().int(1, 256).int(8, 1)).message(2, &source).message(20, &builtin)
}

#[test]
fn a_flush_that_fails_and_one_that_does_not() {
    compare(V2, |players| {
        players.offer(&["d"]);
        players.enable(&config());
        let buffer = players.await_start().buffer;
        players.commit(buffer, 1, &[10]);
        let late = players.consumer.flush(50);
        let flush = players.await_command(5);
        assert!(!players.consumer.peer.reply_to(late).success);
        // Too late for the first, too early for the second.
        players.producer.acknowledge(wire::int(&flush, 2));
        players.flush();
        players.commit(buffer, 1, &[20]);
        players.stop_and_read();
    });
}

#[test]
fn flushes_that_are_acknowledged_together() {
    compare(V2, |players| {
        players.offer(&["d"]);
        players.enable(&config());
        let buffer = players.await_start().buffer;
        players.commit(buffer, 1, &[10]);
        let flushes = [(); 3].map(|()| players.consumer.flush(0));
        let last = [(); 3].map(|()| wire::int(&players.await_command(5), 2))[2];
        players.producer.acknowledge(last);
        for flush in flushes {
            assert!(players.consumer.peer.reply_to(flush).success);
        }
        players.stop_and_read();
    });
}

#[test]
fn flags_of_a_flush_reach_the_producer() {
    compare(V2, |players| {
        players.offer(&["d"]);
        players.enable(&config());
        let _ = players.await_start();
        // The last is out of any range.
        for flags in [0, 0x24, 0x121, 0xffff_ffff_0fed] {
            let request = Proto::new().int(1, 5000).int(2, flags);
            let (id, frame) = players.consumer.peer.call_frame("Flush", &request);
            players.consumer.peer.send(&frame);
            players.acknowledge_flush();
            assert!(players.consumer.peer.reply_to(id).success);
        }
        players.stop_and_read();
    });
}

#[test]
fn a_data_source_that_needs_no_flush() {
    compare(V2, |players| {
        players.producer.register(&Proto::new().bytes(1, "d").int(9, 1));
        players.enable(&config());
        let buffer = players.await_start().buffer;
        players.commit(buffer, 1, &[10]);
        let flush = players.consumer.flush(0);
        assert!(players.consumer.peer.reply_to(flush).success);
        players.disable_alone();
        players.stats();
        players.read();
    });
}

#[test]
fn starts_and_stops_that_are_acknowledged() {
    compare(V2, |players| {
        players.producer.register(&Proto::new().bytes(1, "d").int(2, 1).int(3, 1));
        let observe = Proto::new().int(1, 1).int(1, 2);
        let (observed, frame) = players.consumer.peer.call_frame("ObserveEvents", &observe);
        players.consumer.peer.send(&frame);
        players.enable(&config());
        let started = players.await_start();
        players.commit(started.buffer, 1, &[10]);
        let instance = Proto::new().int(1, started.instance);
        assert!(players.producer.call("NotifyDataSourceStarted", &instance).success);
        // STOPPED when it was set up, STARTED, and that all are: the latter may be one message.
        let mut told = Vec::new();
        while told.iter().filter(|field| **field == 2).count() == 0 {
            let reply = players.consumer.peer.reply_to(observed);
            let events = wire::last(&reply.body, 1).expect("events").to_vec();
            told.extend(wire::fields(&events).into_iter().map(|(field, _)| field));
        }
        players.read();
        assert!(players.consumer.peer.call("DisableTracing", &Proto::new()).success);
        let _ = players.await_command(2);
        players.commit(started.buffer, 1, &[20]);
        assert!(players.producer.call("NotifyDataSourceStopped", &instance).success);
        let reply = players.consumer.ended();
        assert!(reply.success && wire::last(&reply.body, 3).is_none());
        players.read();
    });
}

#[test]
fn a_stop_that_is_not_acknowledged() {
    compare(V2, |players| {
        players.producer.register(&Proto::new().bytes(1, "d").int(2, 1));
        players.enable(&config().int(23, 100));
        let buffer = players.await_start().buffer;
        players.commit(buffer, 1, &[10]);
        players.stop_and_read();
    });
}

#[test]
fn a_session_that_is_left_and_found_again() {
    compare(V2, |players| {
        players.offer(&["d"]);
        players.enable(&config());
        let buffer = players.await_start().buffer;
        players.commit(buffer, 1, &[10]);
        let key = Proto::new().bytes(1, "key");
        assert!(players.consumer.peer.call("Detach", &key).success);
        players.consumer = RawConsumer::connect(players.harness);
        players.commit(buffer, 1, &[20]);
        assert!(!players.consumer.peer.call("Attach", &Proto::new().bytes(1, "other")).success);
        assert!(players.consumer.peer.call("Attach", &key).success);
        players.flush();
        players.read();
        players.commit(buffer, 1, &[30]);
        players.stats();
        players.read();
        assert!(players.consumer.peer.call("FreeBuffers", &Proto::new()).success);
        let _ = players.await_command(2);
    });
}

#[test]
fn a_change_of_the_running_config() {
    compare(V2, |players| {
        let source = |filter| Proto::new().message(1, &Proto::new().bytes(1, "d")).bytes(2, filter);
        let config = |filter| {
            let builtin = Proto::new().int(6, 60_000);
            let buffer = Proto::new().int(1, 256).int(8, 1);
            Proto::new().message(1, &buffer).message(2, &source(filter)).message(20, &builtin)
        };
        players.offer(&["d"]);
        players.enable(&config("nobody"));
        let change = Proto::new().message(1, &config("parity"));
        assert!(players.consumer.peer.call("ChangeTraceConfig", &change).success);
        let buffer = players.await_start().buffer;
        players.commit(buffer, 1, &[10]);
        players.stop_and_read();
    });
}

#[test]
fn two_sessions_with_the_same_data_source() {
    compare(V2, |players| {
        players.offer(&["d"]);
        players.enable(&config());
        let first = players.await_start().buffer;
        let mut other = RawConsumer::connect(players.harness);
        other.enable(&config());
        let second = players.await_start().buffer;
        players.commit(first, 1, &[10]);
        players.commit(second, 2, &[20]);
        players.stop_and_read();
        // The other session continues until its consumer disconnects.
        players.commit(second, 2, &[30]);
        std::mem::swap(&mut players.consumer, &mut other);
        players.read();
        players.stats();
        drop(other);
        players.stop_and_read();
    });
}
