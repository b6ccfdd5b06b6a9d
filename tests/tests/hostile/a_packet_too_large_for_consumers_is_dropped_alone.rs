//! Over a socket 64 MiB may wait for a consumer, and readers of files refuse packets of 256 MiB. A
//! producer can put together larger ones in a large buffer (`docs/spec/trace-buffer.md` §9): they
//! must not cost the consumer the rest of its trace.

use esatto_tests::raw::{self, FIRST_CONTINUES, LAST_CONTINUES, RawChunk, RawConsumer, RawProducer};
use esatto_tests::wire::{self, Peer, Proto};
use esatto_tests::{bystander, esatto_bin};
use std::fs::File;
use std::os::fd::AsFd as _;
use std::process::Command;

/// Bytes of each of its fragments.
const FRAGMENT: usize = 60_000;

/// A producer without shared memory that offers "large".
fn connect(port: u16) -> RawProducer {
    let mut peer = Peer::connect_tcp(port);
    peer.bind("ProducerPort");
    let mut producer = RawProducer::introduce(peer, &Proto::new().bytes(3, "large"), &[]);
    producer.offer("large");
    producer
}

/// Commits a packet of so many chunks between two small ones, and one of another writer.
fn commit_large(producer: &mut RawProducer, buffer: u64, chunks: u32) {
    let mut commit = |writer: u16, id: u32, flags: u16, fragment: &[u8]| {
        producer.commit_data(buffer, &RawChunk::new(writer, id, &[fragment]).flags(flags));
    };
    commit(1, 0, 0, &raw::packet(0, "in front"));
    // One string.
    let mut first = Proto::new().int(8, 1).0;
    first.extend([0xa2, 0x38]);
    let length = chunks as usize * FRAGMENT - 9;
    first.extend([0, 7, 14, 21].map(|shift| (length >> shift & 0x7f) as u8 | 0x80));
    first.push((length >> 28) as u8);
    first.resize(FRAGMENT, b'x');
    commit(1, 1, LAST_CONTINUES, &first);
    let piece = vec![b'x'; FRAGMENT];
    for id in 2..chunks {
        commit(1, id, FIRST_CONTINUES | LAST_CONTINUES, &piece);
    }
    commit(1, chunks, FIRST_CONTINUES, &piece);
    commit(1, chunks + 1, 0, &raw::packet(1, "behind"));
    commit(2, 0, 0, &raw::packet(2, "of another writer"));
}

/// All packets except the large one are there, and the loss is marked.
#[track_caller]
fn assert_has_others(packets: &[Vec<u8>]) {
    let own: Vec<_> = packets.iter().filter(|packet| wire::last(packet, 900).is_some()).collect();
    let texts: Vec<_> = own.iter().filter_map(|packet| raw::text_of(packet)).map(|(number, _)| number).collect();
    assert_eq!(texts, [0, 1, 2]);
    assert_eq!(wire::int(own[1], 42) & 1, 1, "the packet behind the large one says that something was lost");
}

/// `abi_violations` of the only buffer in TraceStats.
fn violations(stats: &[u8]) -> u64 {
    wire::int(wire::last(stats, 1).expect("statistics of the buffer"), 9)
}

#[test]
fn its_sequence_is_marked_and_all_others_arrive() {
    bystander::watch(|harness, service, port| {
        let mut producer = connect(port);
        let mut consumer = RawConsumer::connect(harness);
        consumer.enable(&raw::config(128 << 10, &["large"]).int(43, 1));
        let buffer = producer.await_start().buffer;
        // 68 MiB.
        commit_large(&mut producer, buffer, 1200);
        assert_has_others(&consumer.read());
        assert_eq!(violations(&consumer.stats()), 1, "the packet is counted");
        assert!(service.is_running());
    });
}

#[test]
fn a_file_is_whole_but_for_it() {
    bystander::watch(|harness, service, port| {
        let mut producer = connect(port);
        let path = harness.path("large");
        let file = File::options().read(true).write(true).create_new(true).open(&path).expect("a file");
        let mut consumer = RawConsumer::connect(harness);
        // Written at the end, when the packet is whole.
        let config = raw::config(300 << 10, &["large"]).int(8, 1).int(9, 604_800_000).int(43, 1);
        let (enabled, frame) = consumer.peer.call_frame("EnableTracing", &Proto::new().message(1, &config));
        consumer.peer.send_with_fds(&frame, &[file.as_fd()]);
        let buffer = producer.await_start().buffer;
        // 257 MiB.
        commit_large(&mut producer, buffer, 4500);
        assert!(consumer.peer.call("DisableTracing", &Proto::new()).success);
        let ended = consumer.peer.reply_to(enabled);
        assert!(ended.success && wire::last(&ended.body, 3).is_none(), "{ended:?}");

        let size = std::fs::metadata(&path).expect("the file").len();
        assert!(size < 1 << 20, "the file has {size} bytes");
        let trace = std::fs::read(&path).expect("the file");
        let packets: Vec<_> = wire::all(&trace, 1).into_iter().map(<[u8]>::to_vec).collect();
        assert_has_others(&packets);
        let stats = packets.iter().filter_map(|packet| wire::last(packet, 35)).next_back();
        assert_eq!(violations(stats.expect("statistics in the file")), 1, "the packet is counted");
        let info = Command::new(esatto_bin()).arg("info").arg(&path).args(["--json"]).output().expect("it runs");
        assert!(info.status.success(), "{}", String::from_utf8_lossy(&info.stderr));
        assert!(service.is_running());
    });
}
