//! Encoding of varints through a raw pointer.

/// Writes the shortest varint of `v` and returns its end.
///
/// Most values are small, so values of one byte come first. If `v` is a constant, all of it folds
/// into one store.
///
/// # Safety
///
/// Ten bytes from `ptr` on are valid for writes, of which more may be written than the varint
/// takes.
#[inline(always)]
pub(super) unsafe fn put_varint(ptr: *mut u8, v: u64) -> *mut u8 {
    if v < 0x80 {
        // SAFETY: the caller promises ten bytes.
        unsafe { ptr.write((v & 0x7f) as u8) };
        // SAFETY: as above.
        unsafe { ptr.add(1) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { put_long_varint(ptr, v) }
    }
}

/// As [`put_varint`], without a branch per byte: the groups of seven bits are spread over the bytes
/// of a word at once, and the parts that depend on the length come from tables.
///
/// # Safety
///
/// As [`put_varint`]; `v` is not 0.
#[inline(always)]
unsafe fn put_long_varint(ptr: *mut u8, v: u64) -> *mut u8 {
    let Some((word, len)) = varint_word(v) else {
        // SAFETY: the caller promises ten bytes.
        return unsafe { put_longest_varint(ptr, v) };
    };
    // SAFETY: as above.
    unsafe { ptr.cast::<[u8; 8]>().write(word.to_le_bytes()) };
    // SAFETY: as above.
    unsafe { ptr.add(len) }
}

/// Returns the varint of `v` as a little-endian word, and its length in bytes. Returns `None` if it
/// has more than eight.
///
/// ```
/// assert_eq!(esatto_protozero::cursor::varint_word(300), Some((0x02ac, 2)));
/// ```
///
/// # Panics
///
/// `v` is 0.
#[inline(always)]
#[must_use]
pub fn varint_word(v: u64) -> Option<(u64, usize)> {
    let highest = v.ilog2() as usize;
    if highest < 56 { Some((spread(v) | CONTINUE[highest], SIZE[highest] as usize)) } else { None }
}

/// Writes a varint of nine or ten bytes.
///
/// # Safety
///
/// As [`put_varint`]; `v` has more than 56 bits.
#[inline(always)]
unsafe fn put_longest_varint(ptr: *mut u8, v: u64) -> *mut u8 {
    let low = spread(v & ((1 << 56) - 1)) | ALL;
    // SAFETY: the caller promises ten bytes.
    unsafe { ptr.cast::<[u8; 8]>().write(low.to_le_bytes()) };
    // Bits 56 to 62, and bit 63 if there is a tenth byte.
    let last = (v >> 63) as u8;
    let high = [((v >> 56) as u8 & 0x7f) | (last << 7), last];
    // SAFETY: as above.
    unsafe { ptr.add(8).cast::<[u8; 2]>().write(high) };
    // SAFETY: as above.
    unsafe { ptr.add(9 + last as usize) }
}

/// "More follows" in each of eight bytes.
const ALL: u64 = 0x8080_8080_8080_8080;

/// Mask by the number of the highest set bit: "more follows" in every byte of the varint except the
/// last.
static CONTINUE: [u64; 56] = {
    let mut table = [0; 56];
    let mut bit = 7;
    while bit < 56 {
        table[bit] = ALL & ((1 << (8 * (bit / 7))) - 1);
        bit += 1;
    }
    table
};

/// Size of the varint by the number of the highest set bit.
#[expect(clippy::cast_possible_truncation, reason = "at most 55")]
static SIZE: [u8; 56] = {
    let mut table = [0; 56];
    let mut bit = 0;
    while bit < 56 {
        table[bit] = bit as u8 / 7 + 1;
        bit += 1;
    }
    table
};

/// Puts each group of seven bits of a 56-bit number into its own byte: halves move apart, then
/// quarters, then eighths.
///
/// If `high` are the bits to move, `v + high * (2^n - 1)` moves them by `n`.
#[inline(always)]
const fn spread(v: u64) -> u64 {
    let v = v + (v & 0x00ff_ffff_f000_0000) * 15;
    let v = v + (v & 0x0fff_c000_0fff_c000) * 3;
    v + (v & 0x3f80_3f80_3f80_3f80)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{MAX_VARINT_SIZE, encode_varint};

    #[test]
    fn every_length_agrees_with_the_plain_encoder() {
        let values = (0..64).flat_map(|bit| {
            let power = 1u64 << bit;
            [power - 1, power, power | 1, power.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (63 - bit)]
        });
        for v in values.chain([u64::MAX, u64::MAX - 1, 1 << 63]) {
            let (mut fast, mut plain) = ([0xaa; MAX_VARINT_SIZE], [0; MAX_VARINT_SIZE]);
            // SAFETY: the array has ten bytes.
            let end = unsafe { put_varint(fast.as_mut_ptr(), v) };
            let len = encode_varint(v, &mut plain);
            assert_eq!(end.addr() - fast.as_ptr().addr(), len, "{v:#x}");
            assert_eq!(fast[..len], plain[..len], "{v:#x}");
        }
    }
}
