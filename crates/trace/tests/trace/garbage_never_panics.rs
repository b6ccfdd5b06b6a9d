use esatto_trace::{fuzz_file, fuzz_packet};

use crate::common::official;

/// A small generator of pseudo-random numbers (splitmix64): the same bytes in every run.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below as u64) as usize
    }
}

#[test]
fn random_packets() {
    let mut random = Random(1);
    for _ in 0..1000 {
        let bytes: Vec<u8> = (0..random.next(60)).map(|_| random.next(256) as u8).collect();
        fuzz_packet(&bytes);
        fuzz_file(&bytes);
    }
}

#[test]
fn real_traces_with_bytes_changed() {
    let mut random = Random(2);
    let (stats, events) = (official("process-and-sys-stats"), official("track-events"));
    for round in 0..40 {
        let mut bytes = if round % 2 == 0 { stats.clone() } else { events[..4000].to_vec() };
        for _ in 0..=random.next(20) {
            let at = random.next(bytes.len());
            bytes[at] = random.next(256) as u8;
        }
        fuzz_file(&bytes);
    }
}
