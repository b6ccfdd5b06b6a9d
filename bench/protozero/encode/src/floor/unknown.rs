//! The same pieces, but how long they are is known only when they are copied, as it is for every
//! encoder.

use std::hint::black_box;

use crate::encode::{Encode, Flat, Nested};
use crate::floor::bytes_of_nested;
use crate::values::{self, LEVELS};

/// The lengths of the pieces of a level.
const FIELDS: [usize; 5] = [6, 6, 6, 6, 34];
/// Those of the tag and the length in front of each level.
const HEADERS: [usize; LEVELS] = [0, 5, 5, 2, 2];

#[derive(Debug)]
pub(crate) struct Unknown {
    levels: [Level; LEVELS],
    out: Box<[u8; 512]>,
}

#[derive(Debug)]
struct Level {
    header: Box<[u8]>,
    fields: [Box<[u8]>; FIELDS.len()],
}

impl Default for Unknown {
    fn default() -> Self {
        let bytes = bytes_of_nested();
        let mut rest = &bytes[..];
        let mut piece = |len: usize| {
            let (piece, after) = rest.split_at(len);
            rest = after;
            Box::from(piece)
        };
        let levels = HEADERS.map(|header| Level { header: piece(header), fields: FIELDS.map(&mut piece) });
        Self { levels, out: Box::new([0; 512]) }
    }
}

impl Encode<Flat> for Unknown {
    const NAME: &'static str = "floor: lengths unknown";

    fn encode(&mut self, _: &values::Flat) -> &[u8] {
        let len = fields(&self.levels[0], &mut *self.out, 0);
        &self.out[..len]
    }

    fn encode_into(&mut self, _: &values::Flat, slot: &mut [u8]) -> usize {
        fields(&self.levels[0], slot, 0)
    }
}

impl Encode<Nested> for Unknown {
    const NAME: &'static str = "floor: lengths unknown";

    fn encode(&mut self, _: &values::Flat) -> &[u8] {
        let len = nested(&self.levels, &mut *self.out);
        &self.out[..len]
    }

    fn encode_into(&mut self, _: &values::Flat, slot: &mut [u8]) -> usize {
        nested(&self.levels, slot)
    }
}

#[inline(always)]
fn nested([root, nested @ ..]: &[Level; LEVELS], out: &mut [u8]) -> usize {
    let mut at = fields(root, out, 0);
    for level in nested {
        at = put(&level.header, out, at);
        at = fields(level, out, at);
    }
    at
}

#[inline(always)]
fn fields(level: &Level, out: &mut [u8], at: usize) -> usize {
    let level = black_box(level);
    level.fields.iter().fold(at, |at, field| put(field, out, at))
}

#[inline(always)]
fn put(piece: &[u8], out: &mut [u8], at: usize) -> usize {
    out[at..][..piece.len()].copy_from_slice(piece);
    at + piece.len()
}
