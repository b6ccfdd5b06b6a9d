//! Once a thread has seen events of a kind, later ones allocate nothing between chunk boundaries. A
//! program counts allocations.

use crate::run::{Run, Stage};

#[test]
fn between_chunk_boundaries() {
    esatto_tests::skip(|| Run::new("allocations.c", Stage::V58, |_| ()).map(drop));
}
