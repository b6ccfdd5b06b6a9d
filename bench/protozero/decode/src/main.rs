//! Measures the reading of traces, with Esatto and with prost in turn, and prints one JSON object
//! per line for the runner: `bench-protozero-decode ROUNDS TRACE...`; see bench/README.md.

mod walk;

use std::hint::black_box;

use bench_harness::thread_cpu_time;
use bench_prost_schema::{Trace, TracePacket};
use prost::Message as _;
use prost::encoding::WireType;

use walk::{Seen, TRACE, walk};

/// Bytes to read at once: as often the traces as it takes.
const BYTES: usize = 2 << 20;
/// Timed batches of a contender per round. A batch reads everything once.
const BATCHES: usize = 5;

fn main() {
    let mut args = std::env::args().skip(1);
    let rounds: usize = args.next().expect("a number of rounds").parse().expect("a number of rounds");
    let once: Vec<u8> = args.flat_map(|file| std::fs::read(&file).unwrap_or_else(|e| panic!("{file}: {e}"))).collect();
    assert!(!once.is_empty(), "traces");
    let bytes = once.repeat(BYTES.div_ceil(once.len()));
    check(&once);

    bench_harness::pin(0);
    let mut contenders = [
        Contender::new("esatto", |bytes| {
            black_box(ours::<false>(bytes));
        }),
        Contender::new("esatto", |bytes| {
            black_box(ours::<true>(bytes));
        }),
        Contender::new("prost", |bytes| {
            black_box(theirs(bytes));
        }),
        Contender::new("prost, by packet", theirs_by_packet),
    ];
    for round in 1..=rounds {
        eprintln!("bench: protozero, decoding, round {round} of {rounds}");
        for _ in 0..BATCHES {
            for contender in &mut contenders {
                contender.batch(&bytes);
            }
        }
    }
    let [ours, checked, peers @ ..] = &contenders;
    for (case, ours) in [("all fields of traces", ours), ("the same, text checked as UTF-8", checked)] {
        for contender in std::iter::once(ours).chain(peers) {
            let ns: Vec<String> = contender.ns_per_byte.iter().map(|ns| format!("{ns:.5}")).collect();
            println!("{{\"case\": \"{case}\", \"contender\": \"{}\", \"ns\": [{}]}}", contender.name, ns.join(","));
        }
    }
}

struct Contender {
    name: &'static str,
    read: fn(&[u8]),
    ns_per_byte: Vec<f64>,
}

impl Contender {
    fn new(name: &'static str, read: fn(&[u8])) -> Self {
        Self { name, read, ns_per_byte: Vec::new() }
    }

    fn batch(&mut self, bytes: &[u8]) {
        // A batch takes long enough to be interrupted.
        let start = thread_cpu_time();
        (self.read)(black_box(bytes));
        let taken = thread_cpu_time().saturating_sub(start);
        self.ns_per_byte.push(taken.as_nanos() as f64 / bytes.len() as f64);
    }
}

#[inline(never)]
fn ours<const CHECKED: bool>(bytes: &[u8]) -> Seen {
    let mut seen = Seen::default();
    walk::<CHECKED>(bytes, TRACE, &mut seen).expect("a whole trace");
    seen
}

#[inline(never)]
fn theirs(bytes: &[u8]) -> Trace {
    Trace::decode(bytes).expect("a whole trace")
}

/// Each packet on its own, so that memory is used again while it is warm.
#[inline(never)]
fn theirs_by_packet(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let (number, wire_type) = prost::encoding::decode_key(&mut bytes).expect("a whole trace");
        assert_eq!((number, wire_type), (1, WireType::LengthDelimited), "a trace consists of packets");
        black_box(TracePacket::decode_length_delimited(&mut bytes).expect("a whole trace"));
    }
}

/// Both read the same: what prost read and writes again has the same values.
fn check(bytes: &[u8]) {
    let seen = ours::<true>(bytes);
    assert_eq!(seen, ours::<true>(&theirs(bytes).encode_to_vec()), "prost leaves nothing out that Esatto reads");
    eprintln!("bench: protozero, decoding: {} bytes with {} values", bytes.len(), seen.values);
}
