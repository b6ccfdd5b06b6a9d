//! A few seeds in every test run, in any profile. `cargo xtask test` runs more seeds and the
//! planted bugs.

#[global_allocator]
static ALLOCATOR: esatto_sim::alloc::Counting = esatto_sim::alloc::Counting;

#[test]
fn a_few_seeds_find_no_bug_and_cause_enough_traffic() {
    // Without debug assertions the service does not report its steps.
    if !cfg!(debug_assertions) {
        return;
    }
    for seed in 1..=4 {
        let tally = esatto_sim::runner::try_seed(seed, "", false).unwrap_or_else(|finding| panic!("{finding:?}"));
        assert!(tally.inputs >= 10_000 && tally.producers >= 10 && tally.sessions >= 3, "seed {seed}: {tally}");
        assert!(tally.packets > 0 && tally.peak_bytes > 0, "seed {seed}: {tally}");
    }
}

#[test]
fn a_seed_always_does_the_same() {
    if !cfg!(debug_assertions) {
        return;
    }
    let run = || esatto_sim::runner::try_seed(2, "", false).map(|tally| (tally.inputs, tally.packets, tally.bytes));
    assert_eq!(run(), run());
}
