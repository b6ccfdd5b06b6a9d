//! Rows 26 to 49: sessions of consumers.

use esatto_tests::Harness;
use esatto_tests::raw::{self, ONE_COMPLETE, RawChunk, RawConsumer, RawProducer, packet};
use esatto_tests::wire::{self, Peer, Proto, Reply};

use super::session;

fn assert_disabled_with_error(reply: &Reply) {
    assert!(reply.success && !reply.has_more, "{reply:?}");
    assert_eq!(wire::int(&reply.body, 1), 1, "disabled");
    assert!(wire::last(&reply.body, 3).is_some_and(|error| !error.is_empty()), "a reason");
}

pub(super) fn row_22_26_enable_tracing_refused(harness: &Harness, _: u16) {
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(0, &[]));
    assert_disabled_with_error(&consumer.ended());
}

pub(super) fn row_22_27_enable_tracing_while_running(harness: &Harness, _: u16) {
    let mut consumer = RawConsumer::connect(harness);
    let config = Proto::new().message(1, &raw::config(64, &["x"]));
    let (first, frame) = consumer.peer.call_frame("EnableTracing", &config);
    consumer.peer.send(&frame);
    let (second, frame) = consumer.peer.call_frame("EnableTracing", &config);
    consumer.peer.send(&frame);
    let mut replies = [0; 2].map(|_| consumer.peer.read().expect("both are answered"));
    replies.sort_by_key(|reply| reply.request_id);
    assert_eq!(replies.each_ref().map(|reply| reply.request_id), [first, second]);
    assert!(!replies[0].success && !replies[0].has_more, "{:?}", replies[0]);
    assert_disabled_with_error(&replies[1]);
    assert!(consumer.peer.call("GetTraceStats", &Proto::new()).success, "the session goes on");
}

pub(super) fn row_22_28_flush_without_session(harness: &Harness, _: u16) {
    let mut consumer = RawConsumer::connect(harness);
    let flush = consumer.flush(100);
    let (next, frame) = consumer.peer.call_frame("QueryCapabilities", &Proto::new());
    consumer.peer.send(&frame);
    // Perfetto's service never answers it. A service that answers must not report success.
    loop {
        let reply = consumer.peer.read().expect("an answer");
        if reply.request_id == next {
            break;
        }
        assert!(reply.request_id == flush && !reply.success, "{reply:?}");
    }
}

pub(super) fn row_22_29_flush_before_start(harness: &Harness, _: u16) {
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(64, &["x"]).int(12, 1));
    let flush = consumer.flush(0);
    assert!(!consumer.peer.reply_to(flush).success);
}

pub(super) fn row_22_30_flush_without_instances(harness: &Harness, _: u16) {
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(64, &["nobody has it"]));
    let flush = consumer.flush(0);
    assert!(consumer.peer.reply_to(flush).success);
}

pub(super) fn row_22_31_read_buffers_without_session(harness: &Harness, _: u16) {
    let reply = Peer::consumer(harness).call("ReadBuffers", &Proto::new());
    assert!(reply.success && !reply.has_more && reply.body.is_empty(), "{reply:?}");
}

pub(super) fn row_22_32_a_packet_of_300_kb(harness: &Harness, _: u16) {
    let (mut producer, mut consumer, buffer) = session(harness);
    let long = "x".repeat(300_000);
    let content = packet(0, &long);
    let pieces: Vec<&[u8]> = content.chunks(4000).collect();
    for (chunk_id, piece) in (0..).zip(&pieces) {
        let is_last = chunk_id as usize + 1 == pieces.len();
        let flags = if chunk_id == 0 { 0 } else { raw::FIRST_CONTINUES };
        let flags = if is_last { flags } else { flags | raw::LAST_CONTINUES };
        producer.commit_chunk(buffer, &RawChunk::new(1, chunk_id, &[piece]).flags(flags));
    }
    let (id, frame) = consumer.peer.call_frame("ReadBuffers", &Proto::new());
    consumer.peer.send(&frame);
    let (mut packets, mut own_replies) = (vec![Vec::new()], 0);
    loop {
        let reply = consumer.peer.reply_to(id);
        let slices = wire::all(&reply.body, 2);
        own_replies += usize::from(slices.iter().any(|slice| slice.windows(100).any(|part| part == [b'x'; 100])));
        for slice in slices {
            packets.last_mut().expect("one").extend_from_slice(wire::last(slice, 1).unwrap_or_default());
            if wire::int(slice, 2) != 0 {
                packets.push(Vec::new());
            }
        }
        if !reply.has_more {
            break;
        }
    }
    assert!(own_replies > 2, "no frame takes 300 KB");
    assert!(packets.pop().expect("one").is_empty(), "the last slice is marked");
    let own: Vec<_> = packets.iter().filter_map(|packet| raw::text_of(packet)).collect();
    assert!(own == [(0, long)], "one packet, whole");
}

pub(super) fn row_22_33_observe_events_and_no_more(harness: &Harness, _: u16) {
    let mut consumer = Peer::consumer(harness);
    let (first, frame) = consumer.call_frame("ObserveEvents", &Proto::new().int(1, 1).int(1, 2));
    consumer.send(&frame);
    let (second, frame) = consumer.call_frame("ObserveEvents", &Proto::new());
    consumer.send(&frame);
    for id in [first, second] {
        let reply = consumer.read().expect("an answer");
        assert!(reply.request_id == id && reply.success && !reply.has_more && reply.body.is_empty(), "{reply:?}");
    }
}

pub(super) fn row_22_34_detach_and_attach(harness: &Harness, _: u16) {
    let mut owner = RawConsumer::connect(harness);
    owner.enable(&raw::config(77, &["x"]));
    assert!(owner.peer.call("Detach", &Proto::new().bytes(1, "k")).success);
    drop(owner);
    let mut next = Peer::consumer(harness);
    let reply = next.call("Attach", &Proto::new().bytes(1, "k"));
    assert!(reply.success);
    let config = wire::last(&reply.body, 1).expect("the config");
    assert_eq!(wire::int(wire::last(config, 1).expect("its buffer"), 1), 77);
}

pub(super) fn row_22_36_the_end_of_an_attached_session(harness: &Harness, _: u16) {
    let mut owner = RawConsumer::connect(harness);
    owner.enable(&raw::config(64, &["x"]));
    assert!(owner.peer.call("Detach", &Proto::new().bytes(1, "k")).success);
    let mut next = Peer::consumer(harness);
    assert!(next.call("Attach", &Proto::new().bytes(1, "k")).success);
    let (end, frame) = next.call_frame("EnableTracing", &Proto::new().int(2, 1));
    next.send(&frame);
    assert!(next.call("DisableTracing", &Proto::new()).success);
    let reply = next.reply_to(end);
    assert!(reply.success && wire::int(&reply.body, 1) == 1, "{reply:?}");
}

pub(super) fn row_22_37_a_state_larger_than_a_frame(harness: &Harness, _: u16) {
    let mut producer = RawProducer::connect(harness, "many");
    for id in 1..=400 {
        producer.register(&Proto::new().bytes(1, format!("{id:0>1000}")).int(7, id));
    }
    let mut consumer = Peer::consumer(harness);
    let first = consumer.call("QueryServiceState", &Proto::new());
    assert!(first.success && first.has_more, "one reply is not enough");
    let mut state = wire::last(&first.body, 1).expect("a part").to_vec();
    loop {
        let reply = consumer.reply_to(first.request_id);
        state.extend_from_slice(wire::last(&reply.body, 1).unwrap_or_default());
        if !reply.has_more {
            break;
        }
    }
    assert_eq!((wire::all(&state, 1).len(), wire::all(&state, 2).len()), (1, 400));
}

pub(super) fn row_22_38_clone_session_without_selector(harness: &Harness, _: u16) {
    let reply = Peer::consumer(harness).call("CloneSession", &Proto::new());
    assert!(reply.success && wire::int(&reply.body, 1) == 0, "{reply:?}");
    assert!(wire::last(&reply.body, 2).is_some_and(|error| !error.is_empty()), "a reason");
}

pub(super) fn row_22_46_free_buffers_of_a_running_session(harness: &Harness, _: u16) {
    let mut consumer = RawConsumer::connect(harness);
    let config = Proto::new().message(1, &raw::config(64, &["x"]));
    let (enabled, frame) = consumer.peer.call_frame("EnableTracing", &config);
    consumer.peer.send(&frame);
    let (freed, frame) = consumer.peer.call_frame("FreeBuffers", &Proto::new());
    consumer.peer.send(&frame);
    let [first, second] = [0; 2].map(|_| consumer.peer.read().expect("a reply"));
    assert!(first.request_id == freed && first.success, "{first:?}");
    assert!(second.request_id == enabled && second.success && wire::int(&second.body, 1) == 1, "{second:?}");
    assert_eq!(wire::last(&second.body, 3), None, "no error");
}

pub(super) fn row_22_47_free_buffers_while_reading(harness: &Harness, _: u16) {
    let (mut producer, mut consumer, buffer) = session(harness);
    // More than fits into a socket, so that the stream is still open.
    for chunk_id in 0..400 {
        let number = u64::from(chunk_id);
        producer.commit_chunk(buffer, &RawChunk::new(1, chunk_id, &[packet(number, &"x".repeat(4000))]));
    }
    let (reading, frame) = consumer.peer.call_frame("ReadBuffers", &Proto::new());
    consumer.peer.send(&frame);
    let (freed, frame) = consumer.peer.call_frame("FreeBuffers", &Proto::new());
    consumer.peer.send(&frame);
    let (mut stream_closed, mut is_freed) = (false, false);
    while !(stream_closed && is_freed) {
        let reply = consumer.peer.read().expect("a reply");
        assert!(reply.success);
        stream_closed |= reply.request_id == reading && !reply.has_more;
        is_freed |= reply.request_id == freed;
    }
}

pub(super) fn row_22_48_attach_with_an_empty_key(harness: &Harness, _: u16) {
    let mut owner = RawConsumer::connect(harness);
    owner.enable(&raw::config(64, &["x"]));
    assert!(!Peer::consumer(harness).call("Attach", &Proto::new().bytes(1, "")).success);
    assert!(owner.peer.call("GetTraceStats", &Proto::new()).success, "its owner has it");
}

pub(super) fn row_22_49_the_duration_of_a_session_that_a_trigger_stops(harness: &Harness, _: u16) {
    let mut producer = RawProducer::connect(harness, "producer");
    producer.offer("recorded");
    let mut consumer = RawConsumer::connect(harness);
    let trigger = Proto::new().bytes(1, "stop").int(3, 10);
    let triggers = Proto::new().int(1, 2).message(2, &trigger).int(3, 60_000);
    consumer.enable(&raw::config(64, &["recorded"]).message(17, &triggers));
    let setup = producer.await_command(6);
    let config = wire::last(&setup, 2).expect("a config");
    assert_eq!(wire::int(config, 3), 0, "trace_duration_ms");
    // Nothing of the memory was committed.
    assert_eq!(producer.word(0) & ONE_COMPLETE, 0);
}
