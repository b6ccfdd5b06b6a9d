//! Timing: batches of each side in turn, so that what disturbs the machine disturbs all of them.

use std::hint::black_box;
use std::time::Instant;

use crate::encode::{Encode, Flat, Kind, Nested, Packet, Prebuilt};
use crate::floor::Floor;
use crate::floor::unknown::Unknown;
use crate::floor::words::Words;
use crate::ours::{self, Chunks, Ours};
use crate::peers::Kept;
use crate::peers::buffa::Buffa;
use crate::peers::micropb::Micropb;
use crate::peers::prost::Prost;
use crate::peers::quick_protobuf::QuickProtobuf;
use crate::peers::rust_protobuf::RustProtobuf;
use crate::ring::Ring;
use crate::values;

/// Operations per batch.
const OPS: u32 = 2000;
/// Timed batches of a side per round.
const BATCHES: usize = 100;
/// Batches of a side before the timed ones.
const WARM_UP: usize = 3;

pub(crate) fn all(rounds: usize) {
    let mut ring = Ring::new();
    let mut cases = Vec::new();
    macro_rules! case {
        ($name:expr, $($batch:ident: $kind:ty, $($side:ty)*);*) => {
            cases.push(Case {
                name: $name,
                sides: vec![$($(Side::new(<$side as Encode<$kind>>::NAME, $batch::<$kind, $side>()),)*)*],
            });
        };
    }
    case!("flat, reused buffer", reused: Flat, Ours Floor Unknown Kept<Prost> Kept<QuickProtobuf> Kept<Micropb> Kept<Buffa> Kept<RustProtobuf>);
    case!("flat, 64 MiB working set", cyclic: Flat, Ours Floor Unknown Words Kept<Prost> Kept<QuickProtobuf> Kept<Micropb> Kept<Buffa> Kept<RustProtobuf>);
    case!("flat, encode only, reused buffer", reused: Flat, Ours; prebuilt: Flat, Kept<Prost> Kept<QuickProtobuf> Kept<Micropb> Kept<Buffa> Kept<RustProtobuf>);
    case!("nested, reused buffer", reused: Nested, Ours Floor Unknown Kept<Prost> Kept<QuickProtobuf> Kept<Micropb> Kept<Buffa> Kept<RustProtobuf>);
    case!("nested, 64 MiB working set", cyclic: Nested, Ours Floor Unknown Words Kept<Prost> Kept<QuickProtobuf> Kept<Micropb> Kept<Buffa> Kept<RustProtobuf>);
    case!("nested, encode only, reused buffer", reused: Nested, Ours; prebuilt: Nested, Kept<Prost> Kept<QuickProtobuf> Kept<Micropb> Kept<Buffa> Kept<RustProtobuf>);
    case!("packet, reused buffer", reused: Packet, Ours Kept<Prost> Kept<QuickProtobuf> Kept<Micropb> Kept<Buffa> Kept<RustProtobuf>);
    case!("packet, encode only, reused buffer", reused: Packet, Ours; prebuilt: Packet, Kept<Prost> Kept<QuickProtobuf> Kept<Micropb> Kept<Buffa> Kept<RustProtobuf>);
    cases.push(Case {
        name: "packet, 4 KiB chunks with patches",
        sides: vec![
            Side::new(<Ours as Encode<Packet>>::NAME, chunked(4 << 10)),
            Side::new("one range", chunked(256 << 10)),
        ],
    });
    for round in 1..=rounds {
        eprintln!("bench: protozero, round {round} of {rounds}");
        for case in &mut cases {
            case.round(&mut ring);
        }
    }
    for case in &cases {
        for side in &case.sides {
            let ns: Vec<String> = side.ns.iter().map(|ns| format!("{ns:.2}")).collect();
            println!("{{\"case\": \"{}\", \"side\": \"{}\", \"ns\": [{}]}}", case.name, side.name, ns.join(","));
        }
    }
}

struct Case {
    name: &'static str,
    sides: Vec<Side>,
}

/// Does so many operations.
type Batch = Box<dyn FnMut(u32, &mut Ring)>;

struct Side {
    name: &'static str,
    batch: Batch,
    /// Per operation, one number per batch.
    ns: Vec<f64>,
}

impl Case {
    fn round(&mut self, ring: &mut Ring) {
        for batch in 0..WARM_UP + BATCHES {
            for side in &mut self.sides {
                let start = Instant::now();
                (side.batch)(OPS, ring);
                let ns = start.elapsed().as_nanos() as f64 / f64::from(OPS);
                if batch >= WARM_UP {
                    side.ns.push(ns);
                }
            }
        }
    }
}

impl Side {
    fn new(name: &'static str, batch: Batch) -> Self {
        Self { name, batch, ns: Vec::new() }
    }
}

fn reused<M: Kind, E: Encode<M> + 'static>() -> Batch {
    #[inline(never)]
    fn operation<M: Kind, E: Encode<M>>(encoder: &mut E, values: &M::Values) {
        black_box(encoder.encode(values));
    }
    let mut encoder = E::default();
    Box::new(move |n, _| {
        for _ in 0..n {
            operation::<M, E>(black_box(&mut encoder), black_box(M::VALUES));
        }
    })
}

fn cyclic<M: Kind, E: Encode<M> + 'static>() -> Batch {
    #[inline(never)]
    fn operation<M: Kind, E: Encode<M>>(encoder: &mut E, values: &M::Values, slot: &mut [u8]) -> usize {
        encoder.encode_into(values, slot)
    }
    let mut encoder = E::default();
    Box::new(move |n, ring| {
        for _ in 0..n {
            ring.turn(|slot| operation::<M, E>(black_box(&mut encoder), black_box(M::VALUES), slot));
        }
    })
}

fn chunked(size: usize) -> Batch {
    #[inline(never)]
    fn operation(chunks: &mut Chunks, values: &values::Packet) {
        ours::packet_into(chunks, values);
    }
    let mut chunks = Chunks::new(size);
    Box::new(move |n, _| {
        for _ in 0..n {
            operation(black_box(&mut chunks), black_box(Packet::VALUES));
        }
    })
}

fn prebuilt<M: Kind, E: Prebuilt<M> + 'static>() -> Batch {
    #[inline(never)]
    fn operation<M: Kind, E: Prebuilt<M>>(encoder: &mut E) {
        black_box(encoder.encode_built());
    }
    let mut encoder = E::default();
    encoder.build(M::VALUES);
    Box::new(move |n, _| {
        for _ in 0..n {
            operation::<M, E>(black_box(&mut encoder));
        }
    })
}
