//! Packets that hold others, and whole files, compressed with zstd by the reference encoder. Torn
//! frames are errors.

use esatto_protozero::HeapBuffer;
use esatto_trace::{Error, Packet, Summary, packets};

use crate::common::official;

/// Returns a trace of one packet that holds this trace.
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

#[test]
fn a_damaged_frame_is_an_error_at_most() {
    let trace = official("process-and-sys-stats");
    let rounds: u32 = std::env::var("ESATTO_ROUNDS").map_or(300, |rounds| rounds.parse().expect("a number"));
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for level in [1, 3, 19] {
        let frame = zstd::bulk::compress(&trace, level).expect("there is memory");
        for _ in 0..rounds {
            let mut damaged = frame.clone();
            for _ in 0..=random(4) {
                let at = random(damaged.len());
                damaged[at] = random(256) as u8;
            }
            // The reader does not panic or run for ever.
            assert!(packets(&container(&damaged)).count() < 1_000_000);
        }
    }
}

#[test]
fn whole_files_of_one_frame_and_of_several() {
    let plain = official("track-events");
    let expected = Summary::read(&plain[..]);
    let (first, second) = plain.split_at(plain.len() / 3);
    let frame = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
    for file in [frame(&plain), [frame(first), frame(second)].concat()] {
        let summary = Summary::read(&file[..]);
        assert!(summary.errors.is_empty(), "{:?}", summary.errors);
        assert_eq!((summary.packets, summary.slices.count), (expected.packets, expected.slices.count));
    }
    let torn = frame(&plain);
    let summary = Summary::read(&torn[..torn.len() - 20]);
    assert!(matches!(summary.errors[..], [Error::Inflate { .. }]), "{:?}", summary.errors);
    let junk = Summary::read(&b"\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff"[..]);
    assert_eq!(junk.packets, 0);
    assert!(!junk.errors.is_empty());
}
