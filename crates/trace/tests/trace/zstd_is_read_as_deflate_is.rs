//! Packets that hold others, compressed with zstd: what the reference encoder wrote is read, and what is cut off is named.

use esatto_protozero::HeapBuffer;
use esatto_trace::{Error, Packet, packets};

use crate::common::official;

/// A trace of one packet that holds this one.
fn zstd(trace: &[u8], level: i32) -> Vec<u8> {
    container(&zstd::bulk::compress(trace, level).expect("there is memory"))
}

fn container(content: &[u8]) -> Vec<u8> {
    let mut packet = HeapBuffer::new();
    packet.message().bytes(133, content);
    let mut trace = HeapBuffer::new();
    trace.message().bytes(1, &packet.to_vec());
    trace.to_vec()
}

#[test]
fn the_same_packets_come_out() {
    for name in ["track-events", "long-two-buffers"] {
        let trace = official(name);
        let bytes = |packet: Result<Packet, Error>| packet.expect("a whole packet").bytes;
        let plain: Vec<Vec<u8>> = packets(&trace).map(bytes).collect();
        for level in [-50, 1, 3, 19, 22] {
            let found: Vec<Vec<u8>> = packets(&zstd(&trace, level)).map(bytes).collect();
            assert!(plain == found, "{name} at level {level}");
        }
    }
}

#[test]
fn a_frame_that_is_cut_off_gives_the_packets_before() {
    let trace = official("track-events");
    let all = packets(&trace).count();
    let frame = zstd::bulk::compress(&trace, 3).expect("there is memory");
    for len in [0, 3, 10, frame.len() / 2, frame.len() - 1] {
        let found: Vec<_> = packets(&container(&frame[..len])).collect();
        let errors = found.iter().filter(|packet| packet.is_err()).count();
        assert_eq!(errors, 1, "{len}");
        assert!(found.len() <= all + 1);
    }
}
