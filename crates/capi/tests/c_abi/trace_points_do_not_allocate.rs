//! Once a thread has seen events of a kind, others of that kind allocate nothing between chunk boundaries: a program counts.

use crate::build::run;

#[test]
fn between_chunk_boundaries() {
    run("allocations.c", "allocations", &[], &[]);
}
