//! `docs/spec/wire-protocol.md` §22: what a service has to do, row by row, over real sockets, ours
//! and as a control Perfetto's.
//!
//! Duties of a client, and rows that cannot be seen from outside, are tested
//! [elsewhere](ELSEWHERE).

use esatto_tests::raw::{self, ONE_COMPLETE, RawChunk, RawConsumer, RawProducer, moved, packet};
use esatto_tests::wire::{self, MAX_PAYLOAD, Peer, Proto, Reply};
use esatto_tests::{Harness, Implementation, wait_until};
use rustix::fs::SealFlags;
use std::os::fd::AsFd;
use std::path::Path;

use crate::attacker::{ALL_MACHINES, SEALS, memory, offer};

/// Rows that other tests are about: the row, their file, their name.
const ELSEWHERE: [(u32, &str, &str); 9] = [
    (35, "crates/service/tests/service/sessions.rs", "a_session_can_be_detached_and_attached"),
    (39, "crates/ipc/tests/ipc/clients_tolerate_odd_services.rs", "ids_are_taken_from_the_list"),
    (
        40,
        "crates/ipc/tests/ipc/clients_tolerate_odd_services.rs",
        "a_method_the_service_lacks_sends_nothing_and_uses_no_id",
    ),
    (41, "tests/tests/old_peers/old_services.rs", "a_producer_of_a_service_of_2018"),
    (42, "tests/tests/old_peers/old_services.rs", "a_producer_of_a_service_that_says_more_than_is_known"),
    (43, "crates/ipc/tests/ipc/clients_tolerate_odd_services.rs", "unexpected_replies_are_ignored"),
    (44, "crates/ipc/tests/ipc/captures_decode_in_pieces_of_any_size.rs", "all_at_once"),
    (45, "crates/ipc/tests/ipc/frames_are_bounded.rs", "lengths_of_four_bytes_are_accepted"),
    (50, "tests/tests/old_peers/old_services.rs", "a_producer_of_a_service_with_numbers_of_its_own"),
];

/// Makes each row a test with our service and one with Perfetto's, or with ours alone where
/// Perfetto's is known to differ.
macro_rules! rows {
    ($($name:ident: $implementations:ident),* $(,)?) => {
        const ROWS: &[&str] = &[$(stringify!($name)),*];

        $(mod $name {
            rows!(@ $implementations $name);
        })*
    };
    (@ both $name:ident) => {
        esatto_tests::for_each_service!(row);

        fn row(implementation: esatto_tests::Implementation) -> Result<(), esatto_tests::Skip> {
            super::run(implementation, super::$name);
            Ok(())
        }
    };
    (@ ours $name:ident) => {
        #[test]
        fn ours() {
            super::run(esatto_tests::Implementation::Ours, super::$name);
        }
    };
}

rows! {
    row_22_01_frames_byte_by_byte: both,
    row_22_02_a_frame_of_131072_bytes: both,
    row_22_03_a_frame_of_one_byte_more: both,
    row_22_04_an_empty_frame: both,
    row_22_05_a_frame_that_is_no_protobuf: both,
    row_22_06_bind_of_an_unknown_name: both,
    row_22_07_bind_twice: both,
    row_22_08_method_99_with_drop_reply: both,
    row_22_09_a_method_before_initialize_connection: both,
    row_22_10_the_same_with_drop_reply: both,
    row_22_11_a_frame_with_padding_only: both,
    row_22_12_what_only_a_service_may_send: both,
    row_22_13_an_identity_on_a_unix_socket: both,
    row_22_14_two_identities_over_tcp: both,
    row_22_15_tcp_without_an_identity: both,
    row_22_16_the_hash_of_a_machine_hint: both,
    row_22_17_initialize_connection_twice: both,
    row_22_18_offered_memory_of_bad_sizes: both,
    row_22_19_offered_memory_that_is_good: both,
    row_22_20_offered_memory_without_seals: both,
    row_22_21_get_async_command_late: both,
    row_22_22_two_get_async_command: both,
    row_22_23_a_commit_before_setup_tracing: both,
    row_22_24_a_commit_before_register_trace_writer: both,
    row_22_25_one_acknowledgement_of_three_flushes: both,
    row_22_26_enable_tracing_refused: both,
    row_22_27_enable_tracing_while_running: both,
    row_22_28_flush_without_session: both,
    row_22_29_flush_before_start: both,
    row_22_30_flush_without_instances: both,
    row_22_31_read_buffers_without_session: both,
    row_22_32_a_packet_of_300_kb: both,
    row_22_33_observe_events_and_no_more: both,
    row_22_34_detach_and_attach: both,
    row_22_36_the_end_of_an_attached_session: both,
    row_22_37_a_state_larger_than_a_frame: both,
    row_22_38_clone_session_without_selector: both,
    row_22_46_free_buffers_of_a_running_session: both,
    row_22_47_free_buffers_while_reading: ours,
    row_22_48_attach_with_an_empty_key: ours,
    row_22_49_the_duration_of_a_session_that_a_trigger_stops: both,
}

fn run(implementation: Implementation, row: fn(&Harness, u16)) {
    let harness = Harness::new();
    let (mut service, port) = harness.service_with_tcp(implementation, |_| ());
    row(&harness, port);
    assert!(service.is_running(), "the service died of it");
    wait_until("nothing is left", || (harness.state().sessions == 0).then_some(()));
}

#[test]
fn every_row_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let spec = std::fs::read_to_string(root.join("docs/spec/wire-protocol.md")).expect("the spec");
    let (_, checklist) = spec.split_once("## 22. Checklist").expect("the section");
    let rows = checklist.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse::<u32>().ok());
    let mut count = 0;
    for row in rows {
        count += 1;
        let here = ROWS.iter().any(|name| name.starts_with(&format!("row_22_{row:02}_")));
        let elsewhere = ELSEWHERE.iter().filter(|(number, ..)| *number == row).any(|(_, file, test)| {
            let text = std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            text.contains(&format!("fn {test}("))
        });
        assert!(here || elsewhere, "row {row} has no test");
    }
    assert_eq!(count, 50);
}

fn sockets(harness: &Harness) -> [Peer; 2] {
    [Peer::connect(&harness.producer_socket()), Peer::connect(&harness.consumer_socket())]
}

/// The frame of a bind.
fn bind(request_id: u64, name: &str) -> Vec<u8> {
    Proto::new().int(2, request_id).message(3, &Proto::new().bytes(1, name)).frame()
}

fn assert_answers(peer: &mut Peer) {
    peer.send(&bind(77, "NoSuchService"));
    assert_eq!(peer.read().expect("the connection stands").request_id, 77);
}

/// A call with drop_reply.
fn silent_call(method: u64, args: &Proto) -> Vec<u8> {
    let invoke = Proto::new().int(1, 1).int(2, method).message(3, args).int(4, 1);
    Proto::new().int(2, 55).message(5, &invoke).frame()
}

fn row_22_01_frames_byte_by_byte(harness: &Harness, _: u16) {
    for (mut peer, name) in sockets(harness).into_iter().zip(["ProducerPort", "ConsumerPort"]) {
        let frames = [bind(1, name), bind(2, "NoSuchService"), bind(3, name)].concat();
        frames.iter().for_each(|byte| peer.send(&[*byte]));
        for id in 1..=3 {
            assert_eq!(peer.read().expect("an answer").request_id, id);
        }
    }
}

fn row_22_02_a_frame_of_131072_bytes(harness: &Harness, _: u16) {
    for mut peer in sockets(harness) {
        let bind = Proto::new().int(2, 7).message(3, &Proto::new().bytes(1, "NoSuchService"));
        let padding = MAX_PAYLOAD as usize - bind.0.len() - 4;
        let frame = bind.bytes(1, vec![0; padding]).frame();
        assert_eq!(frame.len(), 131_072);
        peer.send(&frame);
        assert_eq!(peer.read().expect("an answer").request_id, 7);
    }
}

fn row_22_03_a_frame_of_one_byte_more(harness: &Harness, _: u16) {
    for mut peer in sockets(harness) {
        peer.send(&131_069_u32.to_le_bytes());
        assert!(peer.is_closed(), "without an answer");
    }
}

fn row_22_04_an_empty_frame(harness: &Harness, _: u16) {
    for mut peer in sockets(harness) {
        peer.send(&[0; 4]);
        assert_answers(&mut peer);
    }
}

fn row_22_05_a_frame_that_is_no_protobuf(harness: &Harness, _: u16) {
    for mut peer in sockets(harness) {
        peer.send(&[5, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_answers(&mut peer);
    }
}

fn row_22_06_bind_of_an_unknown_name(harness: &Harness, _: u16) {
    for mut peer in sockets(harness) {
        peer.send(&bind(1, "NoSuchService"));
        let frame = peer.read_frame().expect("an answer");
        let reply = wire::last(&frame, 4).expect("BindServiceReply");
        assert_eq!((wire::int(reply, 1), wire::int(reply, 2), wire::all(reply, 3).len()), (0, 0, 0));
    }
}

fn row_22_07_bind_twice(harness: &Harness, _: u16) {
    for (mut peer, name) in sockets(harness).into_iter().zip(["ProducerPort", "ConsumerPort"]) {
        let [first, second] = [1, 2].map(|id| {
            peer.send(&bind(id, name));
            let frame = peer.read_frame().expect("an answer");
            assert_eq!(wire::int(&frame, 2), id);
            wire::last(&frame, 4).expect("BindServiceReply").to_vec()
        });
        assert_eq!(wire::int(&first, 1), 1);
        assert_eq!(first, second);
    }
}

fn row_22_08_method_99_with_drop_reply(harness: &Harness, _: u16) {
    for mut peer in [Peer::producer(harness), Peer::consumer(harness)] {
        peer.send(&silent_call(99, &Proto::new()));
        let reply = peer.read().expect("an answer all the same");
        assert_eq!((reply.request_id, reply.success, reply.error), (55, false, None));
        assert_eq!(wire::last(&reply.frame, 6), Some(&[8, 0][..]), "success is written");
    }
}

fn row_22_09_a_method_before_initialize_connection(harness: &Harness, _: u16) {
    let mut peer = Peer::producer(harness);
    for method in ["RegisterDataSource", "CommitData", "GetAsyncCommand", "Sync"] {
        let reply = peer.call(method, &Proto::new());
        assert!(!reply.success && !reply.has_more && reply.error.is_none(), "{method}: {reply:?}");
    }
}

fn row_22_10_the_same_with_drop_reply(harness: &Harness, _: u16) {
    let mut peer = Peer::producer(harness);
    for method in 2..=12 {
        peer.send(&silent_call(method, &Proto::new()));
    }
    assert_answers(&mut peer);
}

fn row_22_11_a_frame_with_padding_only(harness: &Harness, _: u16) {
    for mut peer in sockets(harness) {
        peer.send(&Proto::new().bytes(1, "padding").frame());
        let reply = peer.read().expect("an answer");
        assert!(reply.error.is_some() && reply.request_id == 0, "{reply:?}");
    }
}

fn row_22_12_what_only_a_service_may_send(harness: &Harness, _: u16) {
    for mut peer in sockets(harness) {
        for field in [4, 6, 7] {
            peer.send(&Proto::new().int(2, 9).message(field, &Proto::new()).frame());
            let reply = peer.read().expect("an answer");
            assert!(reply.error.is_some() && reply.request_id == 9, "field {field}: {reply:?}");
        }
    }
}

fn identity(pid: u64, uid: u64, hint: &str) -> Vec<u8> {
    Proto::new().message(8, &Proto::new().int(1, pid).int(2, uid).bytes(3, hint)).frame()
}

/// Of the only producer: uid, pid and machine id, as the service tells them.
fn introduced(harness: &Harness) -> (i32, i32, u64) {
    let state = Peer::consumer(harness).call("QueryServiceState", &Proto::new()).body;
    let state = wire::last(&state, 1).expect("a state");
    let [producer] = wire::all(state, 1)[..] else { panic!("one producer") };
    (wire::int(producer, 3) as i32, wire::int(producer, 5) as i32, wire::int(producer, 7))
}

fn row_22_13_an_identity_on_a_unix_socket(harness: &Harness, _: u16) {
    let mut peer = Peer::connect(&harness.producer_socket());
    peer.send(&identity(1, 4711, "hint"));
    peer.bind("ProducerPort");
    let _producer = RawProducer::introduce(peer, &Proto::new().bytes(3, "local"), &[]);
    let own = (rustix::process::getuid().as_raw() as i32, std::process::id() as i32, 0);
    assert_eq!(introduced(harness), own);
}

fn remote(port: u16, before: &[u8]) -> RawProducer {
    let mut peer = Peer::connect_tcp(port);
    peer.send(before);
    peer.bind("ProducerPort");
    RawProducer::introduce(peer, &Proto::new().bytes(3, "remote"), &[])
}

fn row_22_14_two_identities_over_tcp(harness: &Harness, port: u16) {
    let _producer = remote(port, &[identity(7, 4711, "a"), identity(8, 4712, "b")].concat());
    let (uid, pid, _) = introduced(harness);
    assert_eq!((uid, pid), (4711, 7));
}

fn row_22_15_tcp_without_an_identity(harness: &Harness, port: u16) {
    let mut producer = remote(port, &[]);
    assert_eq!(wire::int(&producer.answer, 3), 1, "use_shmem_emulation");
    let (uid, _, machine) = introduced(harness);
    assert_eq!((uid, machine), (0, 0));
    producer.offer("remote");
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(64, &["remote"]));
    let buffer = producer.await_start().buffer;
    assert!(!producer.has_memory());
    producer.commit_data(buffer, &RawChunk::new(1, 0, &[packet(0, "remote")]));
    let packets = consumer.read();
    let own = packets.iter().find(|packet| raw::text_of(packet).is_some()).expect("the packet");
    assert!(!wire::fields(own).iter().any(|(field, _)| *field == 79), "nobody knows its pid");
}

fn row_22_16_the_hash_of_a_machine_hint(harness: &Harness, port: u16) {
    let mut producer = remote(port, &identity(7, 4711, "5224bdf8-ec6a-4015-af44-94aca6fba747"));
    producer.offer("remote");
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(64, &["remote"]).int(ALL_MACHINES, 1));
    let buffer = producer.await_start().buffer;
    producer.commit_data(buffer, &RawChunk::new(1, 0, &[packet(0, "remote")]));
    let packets = consumer.read();
    let own = packets.iter().find(|packet| raw::text_of(packet).is_some()).expect("the packet");
    assert_eq!(wire::int(own, 98), 1_011_363_979);
}

fn row_22_17_initialize_connection_twice(harness: &Harness, _: u16) {
    let mut producer = RawProducer::connect(harness, "first");
    assert!(!producer.peer.call("InitializeConnection", &Proto::new().bytes(3, "second")).success);
    assert_eq!(harness.state().producers, ["first"]);
    assert!(producer.peer.call("Sync", &Proto::new()).success);
}

fn row_22_18_offered_memory_of_bad_sizes(harness: &Harness, _: u16) {
    for (page_size, size) in [(0, 16384), (12288, 12288 * 4), (65536, 1 << 18), (4096, 40 << 20)] {
        assert!(!offer(harness, page_size, memory(size, SEALS).as_fd()).1, "{size} bytes in pages of {page_size}");
    }
}

fn row_22_19_offered_memory_that_is_good(harness: &Harness, _: u16) {
    let fd = memory(16384, SEALS);
    let mut peer = Peer::producer(harness);
    let introduction = Proto::new().int(1, 4096).bytes(3, "offer").int(6, 1);
    let (id, frame) = peer.call_frame("InitializeConnection", &introduction);
    peer.send_with_fds(&frame, &[fd.as_fd()]);
    assert_eq!(wire::int(&peer.reply_to(id).body, 1), 1, "adopted");
    let (commands, frame) = peer.call_frame("GetAsyncCommand", &Proto::new());
    peer.send(&frame);
    let command = peer.reply_to(commands);
    assert_eq!(command.body, [0x1a, 0], "an empty setup_tracing");
    assert!(peer.take_descriptor().is_none());
}

fn row_22_20_offered_memory_without_seals(harness: &Harness, _: u16) {
    assert!(!offer(harness, 4096, memory(16384, SealFlags::empty()).as_fd()).1);
}

fn row_22_21_get_async_command_late(harness: &Harness, _: u16) {
    let mut peer = Peer::producer(harness);
    assert!(peer.call("InitializeConnection", &Proto::new().bytes(3, "late")).success);
    let source = Proto::new().bytes(1, "late");
    assert!(peer.call("RegisterDataSource", &Proto::new().message(1, &source)).success);
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(64, &["late"]));
    assert!(consumer.peer.call("QueryCapabilities", &Proto::new()).success, "it is enabled");
    let (commands, frame) = peer.call_frame("GetAsyncCommand", &Proto::new());
    peer.send(&frame);
    let first = peer.reply_to(commands);
    assert!(wire::last(&first.body, 3).is_some(), "setup_tracing");
    assert!(peer.take_descriptor().is_some());
    // Nothing but the answer to another call: setup and start were lost.
    let (sync, frame) = peer.call_frame("Sync", &Proto::new());
    peer.send(&frame);
    assert_eq!(peer.read().expect("an answer").request_id, sync);
}

fn row_22_22_two_get_async_command(harness: &Harness, _: u16) {
    let mut producer = RawProducer::connect(harness, "twice");
    let (second, frame) = producer.peer.call_frame("GetAsyncCommand", &Proto::new());
    producer.peer.send(&frame);
    let reply = producer.peer.read().expect("the first is answered");
    assert!(reply.request_id != second && !reply.success && !reply.has_more, "{reply:?}");
    producer.offer("twice");
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(64, &["twice"]));
    let command = producer.peer.reply_to(second);
    assert!(command.success && command.has_more && wire::last(&command.body, 3).is_some());
}

fn row_22_23_a_commit_before_setup_tracing(harness: &Harness, _: u16) {
    let mut producer = RawProducer::connect(harness, "early");
    let request = Proto::new().message(1, &moved(0, 0, 1)).int(3, 1);
    assert!(!producer.commit(&request).success);
}

/// A session that records one producer.
fn session(harness: &Harness) -> (RawProducer, RawConsumer, u64) {
    let mut producer = RawProducer::connect(harness, "producer");
    producer.offer("recorded");
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(2048, &["recorded"]));
    let buffer = producer.await_start().buffer;
    (producer, consumer, buffer)
}

fn row_22_24_a_commit_before_register_trace_writer(harness: &Harness, _: u16) {
    let (mut producer, mut consumer, buffer) = session(harness);
    producer.commit_chunk(buffer, &RawChunk::new(1, 0, &[packet(0, "before")]));
    assert!(producer.peer.call("RegisterTraceWriter", &Proto::new().int(1, 1).int(2, buffer)).success);
    producer.commit_chunk(buffer, &RawChunk::new(1, 1, &[packet(1, "after")]));
    assert_eq!(consumer.read_texts(), [(0, "before".to_owned()), (1, "after".to_owned())]);
}

fn row_22_25_one_acknowledgement_of_three_flushes(harness: &Harness, _: u16) {
    let (mut producer, mut consumer, _) = session(harness);
    let calls = [0; 3].map(|_| consumer.flush(0));
    let ids = [0; 3].map(|_| producer.await_flush());
    assert!(ids.is_sorted());
    producer.acknowledge(ids[1]);
    for call in &calls[..2] {
        let reply = consumer.peer.read().expect("a reply");
        assert!(reply.success && reply.request_id == *call, "{reply:?}");
    }
    // The third waits.
    assert!(consumer.peer.call("QueryCapabilities", &Proto::new()).success);
    producer.acknowledge(ids[2]);
    assert!(consumer.peer.reply_to(calls[2]).success);
}

fn assert_disabled_with_error(reply: &Reply) {
    assert!(reply.success && !reply.has_more, "{reply:?}");
    assert_eq!(wire::int(&reply.body, 1), 1, "disabled");
    assert!(wire::last(&reply.body, 3).is_some_and(|error| !error.is_empty()), "a reason");
}

fn row_22_26_enable_tracing_refused(harness: &Harness, _: u16) {
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(0, &[]));
    assert_disabled_with_error(&consumer.ended());
}

fn row_22_27_enable_tracing_while_running(harness: &Harness, _: u16) {
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

fn row_22_28_flush_without_session(harness: &Harness, _: u16) {
    let mut consumer = RawConsumer::connect(harness);
    let flush = consumer.flush(100);
    let (next, frame) = consumer.peer.call_frame("QueryCapabilities", &Proto::new());
    consumer.peer.send(&frame);
    // Perfetto's service never answers it; whoever waits must not be told of success.
    loop {
        let reply = consumer.peer.read().expect("an answer");
        if reply.request_id == next {
            break;
        }
        assert!(reply.request_id == flush && !reply.success, "{reply:?}");
    }
}

fn row_22_29_flush_before_start(harness: &Harness, _: u16) {
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(64, &["x"]).int(12, 1));
    let flush = consumer.flush(0);
    assert!(!consumer.peer.reply_to(flush).success);
}

fn row_22_30_flush_without_instances(harness: &Harness, _: u16) {
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(64, &["nobody has it"]));
    let flush = consumer.flush(0);
    assert!(consumer.peer.reply_to(flush).success);
}

fn row_22_31_read_buffers_without_session(harness: &Harness, _: u16) {
    let reply = Peer::consumer(harness).call("ReadBuffers", &Proto::new());
    assert!(reply.success && !reply.has_more && reply.body.is_empty(), "{reply:?}");
}

fn row_22_32_a_packet_of_300_kb(harness: &Harness, _: u16) {
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

fn row_22_33_observe_events_and_no_more(harness: &Harness, _: u16) {
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

fn row_22_34_detach_and_attach(harness: &Harness, _: u16) {
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

fn row_22_36_the_end_of_an_attached_session(harness: &Harness, _: u16) {
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

fn row_22_37_a_state_larger_than_a_frame(harness: &Harness, _: u16) {
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

fn row_22_38_clone_session_without_selector(harness: &Harness, _: u16) {
    let reply = Peer::consumer(harness).call("CloneSession", &Proto::new());
    assert!(reply.success && wire::int(&reply.body, 1) == 0, "{reply:?}");
    assert!(wire::last(&reply.body, 2).is_some_and(|error| !error.is_empty()), "a reason");
}

fn row_22_46_free_buffers_of_a_running_session(harness: &Harness, _: u16) {
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

fn row_22_47_free_buffers_while_reading(harness: &Harness, _: u16) {
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

fn row_22_48_attach_with_an_empty_key(harness: &Harness, _: u16) {
    let mut owner = RawConsumer::connect(harness);
    owner.enable(&raw::config(64, &["x"]));
    assert!(!Peer::consumer(harness).call("Attach", &Proto::new().bytes(1, "")).success);
    assert!(owner.peer.call("GetTraceStats", &Proto::new()).success, "its owner has it");
}

fn row_22_49_the_duration_of_a_session_that_a_trigger_stops(harness: &Harness, _: u16) {
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
