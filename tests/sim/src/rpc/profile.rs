//! The faults of a seed, and the number of each thing. Seeds differ widely.

use crate::rng::Rng;

/// Profile of one seed. Percentages refer to the things that their field names.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    /// Connections at the beginning.
    pub(super) connections: usize,
    /// Connections in all.
    pub(super) most_connections: usize,
    /// Connections with a hostile end.
    pub(super) hostile: u64,
    /// Connections whose ends know different extensions.
    pub(super) old_peers: u64,
    /// Sizes of socket buffers.
    pub(super) capacities: Vec<usize>,
    /// Steps in which a call begins.
    pub(super) start: u64,
    /// Steps, of a thousand, in which a call is dropped.
    pub(super) cancel: u64,
    /// Steps, of a hundred thousand, in which a connection ends.
    pub(super) break_per_100_000: u64,
    /// Steps, of a thousand, in which something stalls or goes on.
    pub(super) stall: u64,
    /// Messages that are large.
    pub(super) large: u64,
    /// Calls with a deadline.
    pub(super) deadlines: u64,
    /// Times that programs need.
    pub(super) delays_ns: Vec<u64>,
    /// Longest time of a step.
    pub(super) step_ns: u64,
    /// Steps, one in so many, in which time jumps.
    pub(super) jump_one_in: u64,
    /// Steps before the end begins.
    pub(super) steps: u64,
}

impl Profile {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let connections = rng.between(1, 4) as usize;
        let capacities = rng.pick(&[&[1, 7][..], &[40, 300], &[5000, 200_000], &[1, 100, 3000, 200_000]]);
        let delays_ns: &[u64] = rng.pick(&[&[0][..], &[0, 1000], &[0, 100_000, 20_000_000]]);
        let is_slow = capacities[0] < 40 && capacities.len() == 2;
        Self {
            connections,
            most_connections: connections + rng.between(1, 10) as usize,
            hostile: rng.pick(&[0, 0, 30, 70]),
            old_peers: rng.pick(&[0, 30]),
            capacities: capacities.to_vec(),
            start: rng.pick(&[3, 10, 30]),
            cancel: rng.pick(&[0, 5, 50]),
            break_per_100_000: rng.pick(&[0, 100, 600]),
            stall: rng.pick(&[0, 5, 30]),
            // Through a buffer of a few bytes, a large message takes very long.
            large: if is_slow { 0 } else { rng.pick(&[0, 3, 20]) },
            deadlines: rng.pick(&[0, 30, 80]),
            delays_ns: delays_ns.to_vec(),
            step_ns: rng.pick(&[0, 100, 20_000]),
            jump_one_in: rng.pick(&[20, 100, 1000]),
            steps: rng.pick(&[300, 1500, 5000]),
        }
    }
}
