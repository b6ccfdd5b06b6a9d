//! Each row of `docs/spec/wire-protocol.md` §21, in its order, while a session is recorded that
//! must not notice.

use crate::attacker::{
    ALL_MACHINES, Attacker, CHUNKS_DISCARDED, CHUNKS_WRITTEN, PATCHES_DISCARDED, PATCHES_SUCCEEDED, SEALS, memory,
    offer,
};
use esatto_tests::Harness;
use esatto_tests::bystander::watch;
use esatto_tests::raw::{self, ONE_COMPLETE, RawChunk, RawConsumer, RawProducer, moved, packet, patched};
use esatto_tests::wire::{self, MAX_PAYLOAD, Peer, Proto};
use rustix::fs::SealFlags;
use std::os::fd::AsFd;

/// A connection to each kind of socket.
fn connections(harness: &Harness, port: u16) -> [Peer; 3] {
    [Peer::connect(&harness.producer_socket()), Peer::connect(&harness.consumer_socket()), Peer::connect_tcp(port)]
}

/// A bind that any service answers with no, to see that a connection is still good.
fn assert_answers(peer: &mut Peer) {
    peer.send(&Proto::new().int(2, 77).message(3, &Proto::new().bytes(1, "NoSuchService")).frame());
    assert_eq!(peer.read().expect("the connection stands").request_id, 77);
}

#[test]
fn row_21_01_a_frame_header_of_4_gib_drops_the_connection() {
    watch(|harness, service, port| {
        let before = service.memory_kb();
        for length in [MAX_PAYLOAD + 1, 1 << 31, u32::MAX] {
            for mut peer in connections(harness, port) {
                peer.send(&length.to_le_bytes());
                peer.send(&[0; 4096]);
                assert!(peer.is_closed(), "a frame of {length} bytes");
            }
        }
        assert!(service.memory_kb() < before + (64 << 10), "memory was made for what a header announced");
    });
}

#[test]
fn row_21_02_many_small_frames_in_one_wake_up_delay_no_other_client() {
    watch(|harness, _, port| {
        // Empty frames, and frames that no peer understands.
        let empty = vec![0; 1 << 20];
        let odd = [1, 0, 0, 0, 0xff].repeat(100_000);
        std::thread::scope(|scope| {
            for mut peer in connections(harness, port) {
                let (empty, odd) = (&empty, &odd);
                scope.spawn(move || {
                    peer.send(empty);
                    peer.send(odd);
                    assert_answers(&mut peer);
                });
            }
            // Meanwhile.
            for _ in 0..10 {
                assert!(harness.state().sessions_started >= 1);
            }
        });
        // Calls, all in one write: each is answered once, in order.
        let mut producer = RawProducer::connect(harness, "many");
        let calls: Vec<(u64, Vec<u8>)> = (0..2000).map(|_| producer.peer.call_frame("Sync", &Proto::new())).collect();
        let bytes: Vec<u8> = calls.iter().flat_map(|(_, frame)| frame.clone()).collect();
        producer.peer.send(&bytes);
        for (id, _) in calls {
            let reply = producer.peer.read().expect("the connection stands");
            assert_eq!((reply.request_id, reply.success), (id, true));
        }
    });
}

#[test]
fn row_21_03_of_several_descriptors_in_one_message_none_leaks() {
    watch(|harness, _, _| {
        // `watch` sees that the service has as many descriptors open afterwards as before.
        let file = std::fs::File::open("/dev/null").expect("/dev/null");
        let frame = Proto::new().int(2, 1).message(3, &Proto::new().bytes(1, "NoSuchService")).frame();
        for socket in [harness.producer_socket(), harness.consumer_socket()] {
            for count in [2, 3, 8, 100] {
                let mut peer = Peer::connect(&socket);
                peer.send_with_fds(&frame, &vec![file.as_fd(); count]);
                // Of two the second is closed; more do not fit into the buffer of who expects one.
                assert_eq!(peer.is_closed(), count > 2, "{count} descriptors in one message");
            }
        }
    });
}

#[test]
fn row_21_04_only_the_newest_of_many_descriptors_is_kept() {
    watch(|harness, service, _| {
        let before = service.descriptors();
        let file = std::fs::File::open("/dev/null").expect("/dev/null");
        let mut producer = Peer::producer(harness);
        let mut consumer = Peer::consumer(harness);
        for _ in 0..1000 {
            for peer in [&mut producer, &mut consumer] {
                let (id, frame) = peer.raw_call_frame(1, 99, &[]);
                peer.send_with_fds(&frame, &[file.as_fd()]);
                assert!(!peer.reply_to(id).success);
            }
        }
        // Two connections, and what each was sent last.
        service.wait_for_descriptors(before + 4);
        // The newest is what an offer of memory means.
        let good = memory(16384, SEALS);
        let introduction = Proto::new().int(1, 4096).bytes(3, "offer").int(6, 1);
        let producer = RawProducer::introduce(producer, &introduction, &[good.as_fd()]);
        assert_eq!(wire::int(&producer.answer, 1), 1, "adopted");
    });
}

#[test]
fn row_21_05_memory_of_size_0_or_that_cannot_be_mapped_is_not_adopted() {
    watch(|harness, _, _| {
        for (what, fd) in [
            ("size 0", memory(0, SEALS)),
            ("write-sealed", memory(16384, SEALS | SealFlags::WRITE)),
            ("future-write-sealed", memory(16384, SEALS | SealFlags::FUTURE_WRITE)),
            ("size 0 and write-sealed", memory(0, SEALS | SealFlags::WRITE)),
        ] {
            let (producer, adopted) = offer(harness, 4096, fd.as_fd());
            assert!(!adopted, "{what}");
            // The producer then works with memory of the service.
            let mut attacker = Attacker::start_as(harness, producer);
            assert!(attacker.producer.has_memory(), "{what}");
            assert_eq!(attacker.texts_and_one_more(1), ["one more"], "{what}");
        }
    });
}

#[test]
fn row_21_06_memory_that_is_no_memfd_or_not_sealed_is_not_adopted() {
    watch(|harness, _, _| {
        let path = harness.write("file", vec![0; 16384]);
        let file = std::fs::File::options().read(true).write(true).open(path).expect("a file");
        assert!(!offer(harness, 4096, file.as_fd()).1, "a file");
        for seals in [
            SealFlags::empty(),
            SealFlags::SEAL,
            SealFlags::SHRINK,
            SealFlags::GROW | SealFlags::SEAL,
            SealFlags::SHRINK | SealFlags::SEAL,
            SealFlags::SHRINK | SealFlags::GROW,
        ] {
            let fd = memory(16384, seals);
            let (producer, adopted) = offer(harness, 4096, fd.as_fd());
            assert!(!adopted, "{seals:?}");
            // The service does not map memory that it refused.
            if !seals.contains(SealFlags::SHRINK) {
                rustix::fs::ftruncate(&fd, 0).expect("nothing forbids it");
            }
            assert_eq!(Attacker::start_as(harness, producer).texts_and_one_more(1), ["one more"], "{seals:?}");
        }
    });
}

/// Commits chunks of these bytes by value over TCP; how many of them the buffer has then.
fn commit_by_value(harness: &Harness, port: u16, sizes: &[usize]) -> u64 {
    let mut peer = Peer::connect_tcp(port);
    peer.bind("ProducerPort");
    let producer = RawProducer::introduce(peer, &Proto::new().bytes(3, "remote"), &[]);
    assert_eq!(wire::int(&producer.answer, 3), 1, "it is to send chunks by value");
    let mut attacker = Attacker::start_as(harness, producer);
    for (chunk_id, size) in (0..).zip(sizes) {
        let mut data = RawChunk { writer_id: 1, chunk_id, count: 1, ..RawChunk::default() }.to_bytes();
        data.resize(*size, 0);
        attacker.commit(&Proto::new().message(1, &moved(0, 0, attacker.buffer).bytes(4, data)));
    }
    // The service still takes valid packets.
    attacker.producer.commit_data(attacker.buffer, &RawChunk::new(2, 0, &[packet(0, "one more")]));
    assert_eq!(attacker.texts(), ["one more"]);
    attacker.buffer_stat(CHUNKS_WRITTEN) - 1
}

#[test]
fn row_21_07_chunk_data_of_0_or_65536_bytes_is_skipped() {
    watch(|harness, _, port| assert_eq!(commit_by_value(harness, port, &[0, 65536, 65537, 100_000]), 0));
}

#[test]
fn row_21_08_chunk_data_without_a_whole_header_is_skipped() {
    watch(|harness, _, port| {
        assert_eq!(commit_by_value(harness, port, &[1, 2, 3, 4, 5, 6, 7]), 0);
        assert_eq!(commit_by_value(harness, port, &[8, 9, 65535]), 3, "these have one");
    });
}

#[test]
fn row_21_09_chunk_data_on_a_unix_socket_is_ignored() {
    watch(|harness, _, _| {
        let mut attacker = Attacker::start(harness);
        for size in [0, 1, 7, 8, 100, 65535, 65536, 100_000] {
            let mut data = RawChunk::new(1, 7, &[packet(1, "by value")]).to_bytes();
            data.resize(size, 0);
            attacker.commit(&Proto::new().message(1, &moved(0, 0, attacker.buffer).bytes(4, data)));
        }
        assert_eq!(attacker.texts_and_one_more(2), ["one more"]);
    });
}

#[test]
fn row_21_10_numbers_out_of_range_or_beyond_16_bits_are_skipped() {
    const ODD: [u64; 7] = [1 << 8, 1 << 16, (1 << 16) + 1, 1 << 31, u32::MAX as u64, 1 << 32, u64::MAX];
    watch(|harness, _, _| {
        let mut attacker = Attacker::start(harness);
        let buffer = attacker.buffer;
        let chunk = RawChunk::new(1, 7, &[packet(1, "skipped")]);
        for number in ODD {
            attacker.producer.put(0, ONE_COMPLETE, &chunk);
            // A decoder of a uint32 cuts a number of 33 bits and more to 32 bits, so these are not
            // wrong.
            let is_cut_to_0 = number as u32 == 0;
            if !is_cut_to_0 {
                attacker.commit(&Proto::new().message(1, &moved(number, 0, buffer)));
                attacker.commit(&Proto::new().message(1, &moved(0, number, buffer)));
                assert_eq!(attacker.producer.word(0), ONE_COMPLETE, "page or chunk {number}: left as it was");
            }
            let discarded = attacker.stat(CHUNKS_DISCARDED);
            attacker.commit(&Proto::new().message(1, &moved(0, 0, number)));
            assert_eq!(attacker.producer.word(0), 0, "buffer {number}: the chunk is freed");
            assert_eq!(attacker.stat(CHUNKS_DISCARDED), discarded + 1, "buffer {number}");
            for (buffer, writer, chunk_id, offset) in
                [(number, 1, 7, 0), (buffer, number, 7, 0), (buffer, 1, number, 0), (buffer, 1, 7, number)]
            {
                let value = [0x80, 0x80, 0x80, 0];
                let patch = patched(buffer, writer, chunk_id, &[(offset, &value)], true);
                attacker.commit(&Proto::new().message(2, &patch));
            }
            let _ = attacker.producer.peer.call("RegisterTraceWriter", &Proto::new().int(1, number).int(2, buffer));
            let _ = attacker.producer.peer.call("RegisterTraceWriter", &Proto::new().int(1, 1).int(2, number));
        }
        assert_eq!(attacker.buffer_stat(PATCHES_SUCCEEDED), 0);
        assert_eq!(attacker.texts_and_one_more(2), ["one more"]);
    });
}

#[test]
fn row_21_11_a_foreign_target_buffer_is_counted_as_discarded() {
    watch(|harness, _, _| {
        let mut attacker = Attacker::start(harness);
        // All there can be so far, the bystander's among them.
        let foreign: Vec<u64> = (0..attacker.buffer).chain([attacker.buffer + 1, 65535]).collect();
        for (chunk_id, buffer) in (0..).zip(&foreign) {
            attacker.producer.commit_chunk(*buffer, &RawChunk::new(1, chunk_id, &[packet(1, "foreign")]));
            assert_eq!(attacker.producer.word(0), 0, "the chunk is freed");
            // Scraping would also find nothing.
            let _ = attacker.producer.peer.call("RegisterTraceWriter", &Proto::new().int(1, 9).int(2, *buffer));
        }
        assert!(foreign.len() > 2, "there is a buffer of somebody else");
        assert_eq!(attacker.stat(CHUNKS_DISCARDED), foreign.len() as u64);
        assert_eq!(attacker.texts_and_one_more(2), ["one more"]);
    });
}

#[test]
fn row_21_12_strings_of_100_kb_are_bounded_per_producer() {
    const LENGTH: usize = 100_000;
    watch(|harness, service, _| {
        let before = service.memory_kb();
        let name = "n".repeat(LENGTH);
        let mut producer = RawProducer::connect(harness, &name);
        for id in 1..=300_u64 {
            producer.register(&Proto::new().bytes(1, format!("{id}{name}")).int(7, id));
            assert!(producer.peer.call("ActivateTriggers", &Proto::new().bytes(1, format!("{id}{name}"))).success);
        }
        let kept = harness.state().data_sources.iter().filter(|source| source.ends_with(&name)).count();
        assert!(kept < 300, "all of {kept} were kept");
        assert!(service.memory_kb() < before + (60 << 10), "30 MB of names and 30 MB of triggers were kept");
    });
}

#[test]
fn row_21_13_registrations_writers_and_patches_are_bounded() {
    watch(|harness, service, _| {
        let before = service.memory_kb();
        let mut attacker = Attacker::start(harness);
        for id in 1..=3000 {
            attacker.producer.register(&Proto::new().bytes(1, format!("source {id}")).int(7, id));
        }
        let registered = harness.state().data_sources.len();
        assert!(registered < 3000, "{registered} data sources");
        let buffer = attacker.buffer;
        for first in (0..200_000).step_by(1000) {
            let mut calls = Vec::new();
            for writer in first..first + 1000 {
                let args = Proto::new().int(1, writer).int(2, buffer);
                calls.extend(attacker.producer.peer.call_frame("RegisterTraceWriter", &args).1);
            }
            attacker.producer.peer.send(&calls);
            assert!(attacker.producer.peer.call("Sync", &Proto::new()).success);
        }
        // More than 1024 for one chunk.
        let value = [0x80, 0x80, 0x80, 0];
        let chunk = RawChunk::new(1, 7, &[vec![0; 64]]).flags(raw::NEEDS_PATCHING);
        attacker.producer.commit_chunk(buffer, &chunk);
        let patches = vec![(0, &value[..]); 1025];
        attacker.commit(&Proto::new().message(2, &patched(buffer, 1, 7, &patches, false)));
        assert_eq!(attacker.stat(PATCHES_DISCARDED), 1025);
        assert_eq!(attacker.buffer_stat(PATCHES_SUCCEEDED), 0);
        // A chunk that waits for ever does not hold up the reading of other chunks.
        assert_eq!(attacker.texts_and_one_more(2), ["one more"]);
        assert!(service.memory_kb() < before + (32 << 10), "memory grew with what was registered");
    });
}

#[test]
fn row_21_14_a_peer_that_never_reads_is_dropped() {
    watch(|harness, service, port| {
        let before = service.memory_kb();
        let mut tcp = Peer::connect_tcp(port);
        tcp.bind("ProducerPort");
        for mut peer in [Peer::producer(harness), tcp] {
            let (_, call) = peer.raw_call_frame(1, 99, &[]);
            assert!(peer.flood(&call.repeat(1000), 256 << 20), "the service takes calls whose answers nobody reads");
        }
        // A consumer is not dropped but waited for: it stops being read.
        let mut consumer = Peer::consumer(harness);
        let (_, call) = consumer.call_frame("QueryServiceState", &Proto::new());
        assert!(consumer.flood(&call.repeat(1000), 64 << 20), "the service takes questions whose answers nobody reads");
        assert!(service.memory_kb() < before + (96 << 10), "answers pile up");
    });
}

fn identity(pid: i64, uid: i64) -> Vec<u8> {
    let identity = Proto::new().int(1, pid as u64).int(2, uid as u64).bytes(3, "another machine").bytes(4, "elsewhere");
    Proto::new().message(8, &identity).frame()
}

/// Fields that the service appended to the packets of an attacker: uid and pid.
fn stamped(attacker: &mut Attacker) -> Vec<(i32, i32)> {
    let packets = attacker.consumer.read();
    let own = packets.iter().filter(|packet| raw::text_of(packet).is_some());
    own.map(|packet| (wire::int(packet, 3) as i32, wire::int(packet, 79) as i32)).collect()
}

#[test]
fn row_21_15_an_identity_told_on_a_unix_socket_is_ignored() {
    watch(|harness, _, _| {
        let mut peer = Peer::connect(&harness.producer_socket());
        peer.send(&identity(4711, 815));
        peer.bind("ProducerPort");
        let mut attacker =
            Attacker::start_as(harness, RawProducer::introduce(peer, &Proto::new().bytes(3, "liar"), &[]));
        attacker.producer.peer.send(&identity(4712, 816));
        attacker.producer.commit_chunk(attacker.buffer, &RawChunk::new(1, 0, &[packet(0, "whose?")]));
        let uid = rustix::process::getuid().as_raw() as i32;
        assert_eq!(stamped(&mut attacker), [(uid, std::process::id() as i32)]);
    });
}

#[test]
fn row_21_16_any_identity_told_over_tcp_is_safe() {
    watch(|harness, _, port| {
        for (pid, uid) in [(-1, -1), (i64::MIN, i64::MIN), (i64::from(i32::MIN), i64::from(i32::MIN)), (i64::MAX, -7)] {
            let mut peer = Peer::connect_tcp(port);
            peer.send(&identity(pid, uid));
            peer.bind("ProducerPort");
            let remote = RawProducer::introduce(peer, &Proto::new().bytes(3, "remote"), &[]);
            let mut attacker = Attacker::start_with(harness, remote, ALL_MACHINES);
            attacker.producer.commit_data(attacker.buffer, &RawChunk::new(1, 0, &[packet(0, "one packet")]));
            let stamped = stamped(&mut attacker);
            assert_eq!(stamped.len(), 1, "the packet of pid {pid}, uid {uid}");
            assert_eq!(stamped[0].0, uid as i32, "its uid");
        }
    });
}

#[test]
fn row_21_17_a_regular_expression_that_does_not_parse_is_refused() {
    let bad = ["(", "a{2,1}", "[z-a]", "*", "((a{1000}){1000}){1000}", "(?P<n>"];
    let source = |regex: &str| {
        let source = Proto::new().message(1, &Proto::new().bytes(1, "x")).bytes(3, regex);
        Proto::new().message(1, &Proto::new().int(1, 64)).message(2, &source)
    };
    let trigger = |regex: &str| {
        let trigger = Proto::new().bytes(1, "t").bytes(2, regex).int(3, 1000);
        let triggers = Proto::new().int(1, 1).message(2, &trigger).int(3, 1000);
        raw::config(64, &["x"]).message(17, &triggers)
    };
    let redaction = |regex: &str| {
        let rules = Proto::new().message(1, &Proto::new().int(1, 1).bytes(2, regex));
        raw::config(64, &["x"]).message(33, &Proto::new().message(3, &rules))
    };
    watch(|harness, _, _| {
        let mut consumer = Peer::consumer(harness);
        for regex in bad {
            for (what, config) in [
                ("a producer's name", source(regex)),
                ("a trigger", trigger(regex)),
                ("a string filter", redaction(regex)),
            ] {
                let reply = consumer.call("EnableTracing", &Proto::new().message(1, &config));
                assert!(reply.success && !reply.has_more, "{what} {regex}: {reply:?}");
                assert_eq!(wire::int(&reply.body, 1), 1, "{what} {regex}: disabled");
                assert!(wire::last(&reply.body, 3).is_some_and(|error| !error.is_empty()), "{what} {regex}: no reason");
            }
        }
        // One that parses, but takes for ever where it is tried by going back.
        let name = format!("{}!", "a".repeat(50_000));
        let mut producer = RawProducer::connect(harness, &name);
        producer.offer("x");
        let mut patient = RawConsumer::connect(harness);
        patient.enable(&source("(a+)+|(a|a)*b"));
        patient.disable();
        // A session under way is not changed to one that cannot be.
        let mut attacker = Attacker::start(harness);
        let (_, change) =
            attacker.consumer.peer.call_frame("ChangeTraceConfig", &Proto::new().message(1, &source("(")));
        attacker.consumer.peer.send(&change);
        assert_eq!(attacker.texts_and_one_more(1), ["one more"]);
    });
}

#[test]
fn row_21_18_a_buffer_whose_size_overflows_is_refused() {
    watch(|harness, _, _| {
        let mut consumer = Peer::consumer(harness);
        for size_kb in [4_194_301, 4_194_302, 4_194_303, 4_194_304, u64::from(u32::MAX)] {
            for mode in [0, 1, 2] {
                let config = Proto::new().message(1, &Proto::new().int(1, size_kb).int(8, mode));
                let reply = consumer.call("EnableTracing", &Proto::new().message(1, &config));
                assert!(reply.success && !reply.has_more, "{size_kb}: {reply:?}");
                assert_eq!(wire::int(&reply.body, 1), 1, "{size_kb}: disabled");
                assert!(wire::last(&reply.body, 3).is_some_and(|error| !error.is_empty()), "{size_kb}: no reason");
            }
        }
    });
}

#[test]
fn row_21_19_an_empty_attach_key_is_refused() {
    watch(|harness, _, _| {
        // A session that was detached and attached again has no key, so an empty key must not
        // attach it.
        let mut owner = RawConsumer::connect(harness);
        owner.enable(&raw::config(64, &["nothing"]));
        assert!(owner.peer.call("Detach", &Proto::new().bytes(1, "key")).success);
        let mut attached = Peer::consumer(harness);
        assert!(attached.call("Attach", &Proto::new().bytes(1, "key")).success);
        let mut thief = Peer::consumer(harness);
        for args in [Proto::new(), Proto::new().bytes(1, ""), Proto::new().bytes(1, "key")] {
            assert!(!thief.call("Attach", &args).success, "{args:?}");
        }
        assert!(!thief.call("GetTraceStats", &Proto::new()).success, "the thief has no session");
        assert!(attached.call("GetTraceStats", &Proto::new()).success, "the owner has it");
        // An empty key also detaches no session.
        let mut careless = RawConsumer::connect(harness);
        careless.enable(&raw::config(64, &["nothing"]));
        assert!(!careless.peer.call("Detach", &Proto::new().bytes(1, "")).success);
        careless.disable();
    });
}
