//! The floor of upstream's benchmark: no protobuf at all. Each integer takes a word of eight bytes,
//! the string is copied with the zero at its end, and the next level begins at a fixed distance.

use std::hint::black_box;

use crate::encode::{Encode, Flat, Nested};
use crate::values::{self, LEVELS};

/// From level to level: room for the values, and a pointer.
const STRIDE: usize = 80;

#[derive(Debug)]
pub(crate) struct Words(Box<[u8; 512]>);

impl Default for Words {
    fn default() -> Self {
        Self(Box::new([0; 512]))
    }
}

impl Encode<Flat> for Words {
    const NAME: &'static str = "floor: upstream's words";

    fn encode(&mut self, values: &values::Flat) -> &[u8] {
        let len = levels::<1>(values, &mut self.0);
        &self.0[..len]
    }

    fn encode_into(&mut self, values: &values::Flat, slot: &mut [u8]) -> usize {
        levels::<1>(values, slot.first_chunk_mut().expect("a slot is long enough"))
    }
}

impl Encode<Nested> for Words {
    const NAME: &'static str = "floor: upstream's words";

    fn encode(&mut self, values: &values::Flat) -> &[u8] {
        let len = levels::<LEVELS>(values, &mut self.0);
        &self.0[..len]
    }

    fn encode_into(&mut self, values: &values::Flat, slot: &mut [u8]) -> usize {
        levels::<LEVELS>(values, slot.first_chunk_mut().expect("a slot is long enough"))
    }
}

#[inline(always)]
fn levels<const N: usize>(values: &values::Flat, out: &mut [u8; 512]) -> usize {
    for level in 0..N {
        let values = black_box(values);
        let at = level * STRIDE;
        // For the smaller integers only the value is written; the rest of the word does not change.
        out[at..at + 4].copy_from_slice(&values.int32.to_le_bytes());
        out[at + 8..at + 12].copy_from_slice(&values.uint32.to_le_bytes());
        out[at + 16..at + 24].copy_from_slice(&values.int64.to_le_bytes());
        out[at + 24..at + 32].copy_from_slice(&values.uint64.to_le_bytes());
        let string = values.string.as_bytes();
        out[at + 32..][..string.len()].copy_from_slice(string);
        out[at + 32..][string.len()] = 0;
    }
    N * STRIDE
}
