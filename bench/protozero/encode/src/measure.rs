//! Timing: batches of each contender in turn, so that what disturbs the machine disturbs all of
//! them.

use std::hint::black_box;
use std::time::Instant;

use crate::cases::{self, Batch};
use crate::ring::Ring;

/// Operations per batch.
const OPS: u32 = 2000;
/// Timed batches of a contender per round.
const BATCHES: usize = 100;
/// Batches of a contender before the timed ones, in each round.
const WARM_UP: usize = 3;

/// Measures all cases and prints the results.
pub(crate) fn all(rounds: usize) {
    let mut ring = Ring::new();
    let mut cases = cases::all();
    for round in 1..=rounds {
        eprintln!("bench: protozero, round {round} of {rounds}");
        // Encoders are new in each round, and lie elsewhere: where their buffers happen to be makes
        // some of the difference.
        let pad = black_box(vec![0_u8; 1 + round * 1040]);
        for case in &mut cases {
            case.round(&mut ring);
        }
        drop(pad);
    }
    for case in &cases {
        for contender in &case.contenders {
            let ns: Vec<String> = contender.ns.iter().map(|ns| format!("{ns:.2}")).collect();
            println!(
                "{{\"case\": \"{}\", \"contender\": \"{}\", \"ns\": [{}]}}",
                case.name,
                contender.name,
                ns.join(",")
            );
        }
    }
}

/// A case, measured in turn with the other cases.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) contenders: Vec<Contender>,
}

/// One of those that do the same.
pub(crate) struct Contender {
    name: &'static str,
    make: fn() -> Batch,
    /// Per operation, one number per batch.
    ns: Vec<f64>,
}

impl Case {
    fn round(&mut self, ring: &mut Ring) {
        let mut batches: Vec<Batch> = self.contenders.iter().map(|contender| (contender.make)()).collect();
        for batch in 0..WARM_UP + BATCHES {
            for (contender, operations) in self.contenders.iter_mut().zip(&mut batches) {
                let start = Instant::now();
                operations(OPS, ring);
                let ns = start.elapsed().as_nanos() as f64 / f64::from(OPS);
                if batch >= WARM_UP {
                    contender.ns.push(ns);
                }
            }
        }
    }
}

impl Contender {
    pub(crate) fn new(name: &'static str, make: fn() -> Batch) -> Self {
        Self { name, make, ns: Vec::new() }
    }
}
