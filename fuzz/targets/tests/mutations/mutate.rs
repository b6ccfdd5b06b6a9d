//! Small changes to an input.

use crate::random::Random;

/// Bytes at which parsers go wrong: lengths, signs, ends of varints.
const INTERESTING: &[u8] = &[0x00, 0x01, 0x7f, 0x80, 0x81, 0xff, 0xfe, 0x08, 0x0a, 0x12, 0x1a];

/// Changes `bytes` in one to four places.
pub(crate) fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = |random: &mut Random, bytes: &[u8]| random.below(bytes.len().max(1) as u64) as usize;
        match random.below(7) {
            0 => bytes.truncate(at(random, bytes)),
            1 => {
                let (place, bit) = (at(random, bytes), random.below(8));
                if let Some(byte) = bytes.get_mut(place) {
                    *byte ^= 1 << bit;
                }
            }
            2 => {
                let (place, value) = (at(random, bytes), INTERESTING[random.below(INTERESTING.len() as u64) as usize]);
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = value;
                }
            }
            3 => {
                let place = at(random, bytes);
                bytes.insert(place, INTERESTING[random.below(INTERESTING.len() as u64) as usize]);
            }
            4 => {
                // A varint of the largest value.
                let place = at(random, bytes);
                bytes.splice(place..place, [0xff; 9].into_iter().chain([0x01]));
            }
            5 => {
                let (from, to) = (at(random, bytes), at(random, bytes));
                let piece = bytes[from.min(to)..from.max(to)].iter().take(64).copied().collect::<Vec<_>>();
                let place = at(random, bytes);
                bytes.splice(place..place, piece);
            }
            _ => {
                let (from, to) = (at(random, bytes), at(random, bytes));
                bytes.drain(from.min(to)..from.max(to).min(from.min(to) + 64));
            }
        }
    }
}
