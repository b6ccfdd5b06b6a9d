//! Once a thread has seen events of a kind, others of that kind allocate nothing between chunk boundaries: a program counts.

use crate::run::{Run, Stage};

#[test]
fn between_chunk_boundaries() {
    esatto_tests::skip(|| Run::new("allocations.c", Stage::V58, |_| ()).map(drop));
}
