//! The speed of light: the bytes that Esatto writes, copied in the same pieces.
//!
//! Each field is one piece (tag, value and, of a string, the length), each nested message has one
//! for its tag and length. Nothing is encoded, sizes are constants, nothing is checked. The pieces
//! lie apart, so that the compiler cannot copy several at once.
//!
//! Two more, for comparison: [`unknown`] and [`words`].

pub(crate) mod unknown;
pub(crate) mod words;

use std::hint::black_box;

use crate::encode::{Encode, Flat, Nested};
use crate::ours::Ours;
use crate::values;
use crate::values::{FLAT, LEVELS};

/// A piece, apart from others.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Piece<const N: usize>([u8; N]);

#[derive(Debug)]
struct Pieces {
    int32: Piece<6>,
    uint32: Piece<6>,
    int64: Piece<6>,
    uint64: Piece<6>,
    string: Piece<34>,
    /// Tags and lengths of the outer messages, whose lengths take four bytes.
    long: [Piece<5>; 2],
    /// Tags and lengths of the inner ones, whose lengths take one byte.
    short: [Piece<2>; 2],
}

const LEVEL: usize = 4 * 6 + 34;
const FLAT_LEN: usize = LEVEL;
const NESTED_LEN: usize = LEVELS * LEVEL + 2 * 5 + 2 * 2;

#[derive(Debug)]
pub(crate) struct Floor {
    pieces: Box<Pieces>,
    out: Box<[u8; 512]>,
}

impl Default for Floor {
    fn default() -> Self {
        let bytes = &bytes_of_nested();
        fn piece<const N: usize>(bytes: &[u8], at: usize) -> Piece<N> {
            Piece(bytes[at..at + N].try_into().expect("N bytes"))
        }
        let pieces = Pieces {
            int32: piece(bytes, 0),
            uint32: piece(bytes, 6),
            int64: piece(bytes, 12),
            uint64: piece(bytes, 18),
            string: piece(bytes, 24),
            long: [piece(bytes, LEVEL), piece(bytes, 2 * LEVEL + 5)],
            short: [piece(bytes, 3 * LEVEL + 10), piece(bytes, 4 * LEVEL + 12)],
        };
        Self { pieces: Box::new(pieces), out: Box::new([0; 512]) }
    }
}

impl Encode<Flat> for Floor {
    const NAME: &'static str = "floor";

    fn encode(&mut self, _: &values::Flat) -> &[u8] {
        let len = flat(&self.pieces, &mut self.out);
        &self.out[..len]
    }

    fn encode_into(&mut self, _: &values::Flat, slot: &mut [u8]) -> usize {
        flat(&self.pieces, slot.first_chunk_mut().expect("a slot is long enough"))
    }
}

impl Encode<Nested> for Floor {
    const NAME: &'static str = "floor";

    fn encode(&mut self, _: &values::Flat) -> &[u8] {
        let len = nested(&self.pieces, &mut self.out);
        &self.out[..len]
    }

    fn encode_into(&mut self, _: &values::Flat, slot: &mut [u8]) -> usize {
        nested(&self.pieces, slot.first_chunk_mut().expect("a slot is long enough"))
    }
}

#[inline(always)]
fn put<const N: usize>(out: &mut [u8; 512], at: usize, piece: &Piece<N>) -> usize {
    out[at..at + N].copy_from_slice(&piece.0);
    at + N
}

/// The bytes that Esatto writes in a buffer that does not grow any more.
fn bytes_of_nested() -> Vec<u8> {
    let mut ours = Ours::default();
    let _ = Encode::<Nested>::encode(&mut ours, &FLAT);
    let bytes = Encode::<Nested>::encode(&mut ours, &FLAT).to_vec();
    assert_eq!(bytes.len(), NESTED_LEN, "the floor knows how long the pieces are");
    bytes
}

#[inline(always)]
fn flat(pieces: &Pieces, out: &mut [u8; 512]) -> usize {
    level(pieces, out, 0);
    FLAT_LEN
}

#[inline(always)]
fn nested(pieces: &Pieces, out: &mut [u8; 512]) -> usize {
    let at = level(pieces, out, 0);
    let at = put(out, at, &pieces.long[0]);
    let at = level(pieces, out, at);
    let at = put(out, at, &pieces.long[1]);
    let at = level(pieces, out, at);
    let at = put(out, at, &pieces.short[0]);
    let at = level(pieces, out, at);
    let at = put(out, at, &pieces.short[1]);
    level(pieces, out, at)
}

#[inline(always)]
fn level(pieces: &Pieces, out: &mut [u8; 512], at: usize) -> usize {
    let pieces = black_box(pieces);
    let at = put(out, at, &pieces.int32);
    let at = put(out, at, &pieces.uint32);
    let at = put(out, at, &pieces.int64);
    let at = put(out, at, &pieces.uint64);
    put(out, at, &pieces.string)
}
