//! A few seeds in every test run, in any profile. `cargo xtask test` runs more seeds and the
//! planted bugs.

use esatto_sim::rpc::RpcTally;
use esatto_sim::runner::{WorldKind, try_seed};

#[global_allocator]
static ALLOCATOR: esatto_sim::alloc::Counting = esatto_sim::alloc::Counting;

#[test]
fn a_few_seeds_find_no_bug_and_cause_enough_traffic() {
    // Without debug assertions the service does not report its steps.
    if !cfg!(debug_assertions) {
        return;
    }
    for seed in 1..=4 {
        let tally =
            try_seed(WorldKind::Service, seed, "", false).unwrap_or_else(|finding| panic!("{finding:?}")).service;
        assert!(tally.inputs >= 10_000 && tally.producers >= 10 && tally.sessions >= 3, "seed {seed}: {tally}");
        assert!(tally.packets > 0 && tally.peak_bytes > 0, "seed {seed}: {tally}");
    }
}

#[test]
fn a_seed_always_does_the_same() {
    if !cfg!(debug_assertions) {
        return;
    }
    let run = || {
        try_seed(WorldKind::Service, 2, "", false)
            .map(|tally| tally.service)
            .map(|tally| (tally.inputs, tally.packets, tally.bytes))
    };
    assert_eq!(run(), run());
}

#[test]
fn a_few_seeds_of_the_rpc_library_find_no_bug() {
    let mut calls = 0;
    for seed in 1..=30 {
        let tally = try_seed(WorldKind::Rpc, seed, "", false).unwrap_or_else(|finding| panic!("{finding:?}")).rpc;
        calls += tally.calls;
    }
    assert!(calls >= 500, "{calls} calls");
}

#[test]
fn a_seed_of_the_rpc_library_always_does_the_same() {
    // The library keeps some memory for the next message of the thread.
    let run = || try_seed(WorldKind::Rpc, 2, "", false).map(|tally| RpcTally { peak_bytes: 0, ..tally.rpc });
    assert_eq!(run(), run());
}
