//! The protobuf wire format: tags, varints and limits (`docs/spec/protozero.md` §1).

/// Bytes reserved for the length of a nested message.
pub const LENGTH_FIELD_SIZE: usize = 4;

/// Largest length that fits in a length field: 4 × 7 bits.
pub const MAX_MESSAGE_LENGTH: usize = (1 << 28) - 1;

/// Largest length that fits in a one-byte length field.
pub const MAX_ONE_BYTE_LENGTH: usize = 127;

/// Largest size of a varint: 64 bits in groups of 7.
pub const MAX_VARINT_SIZE: usize = 10;

/// Largest size of a tag: 32 bits in groups of 7.
pub const MAX_TAG_SIZE: usize = 5;

/// Largest size of a field that is not length-delimited.
pub const MAX_SIMPLE_FIELD_SIZE: usize = MAX_TAG_SIZE + MAX_VARINT_SIZE;

/// Largest field number that protobuf allows. Decoders skip fields above it.
pub const MAX_FIELD_ID: u32 = (1 << 29) - 1;

/// Wire type: the layout of a field's value.
///
/// Groups (3 and 4) are neither written nor read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WireType {
    /// A base-128 integer.
    Varint = 0,
    /// Eight bytes, little endian.
    Fixed64 = 1,
    /// A varint length and as many bytes.
    LengthDelimited = 2,
    /// Four bytes, little endian.
    Fixed32 = 5,
}

impl WireType {
    /// Returns the wire type of a tag, if this library reads it.
    #[inline]
    #[must_use]
    pub const fn from_tag(tag: u64) -> Option<Self> {
        match tag & 7 {
            0 => Some(Self::Varint),
            1 => Some(Self::Fixed64),
            2 => Some(Self::LengthDelimited),
            5 => Some(Self::Fixed32),
            _ => None,
        }
    }
}

/// Returns the tag that precedes a field.
#[inline]
#[must_use]
pub const fn tag(field: u32, wire_type: WireType) -> u32 {
    (field << 3) | wire_type as u32
}

/// Maps signed to unsigned integers so that small magnitudes stay small.
#[inline]
#[must_use]
pub const fn zigzag(v: i64) -> u64 {
    unsigned((v << 1) ^ (v >> 63))
}

/// Inverse of [`zigzag`].
#[inline]
#[must_use]
pub const fn unzigzag(v: u64) -> i64 {
    (v >> 1) as i64 ^ -((v & 1) as i64)
}

/// As [`unzigzag`], for 32 bits.
#[inline(always)]
pub(crate) const fn unzigzag32(v: u32) -> i32 {
    (v >> 1) as i32 ^ -((v & 1) as i32)
}

/// Returns the bits of a signed number, as varints carry them.
#[expect(clippy::cast_sign_loss, reason = "two's complement")]
#[inline(always)]
pub(crate) const fn unsigned(v: i64) -> u64 {
    v as u64
}

/// As [`unsigned`], for 32 bits.
#[expect(clippy::cast_sign_loss, reason = "two's complement")]
#[inline(always)]
pub(crate) const fn unsigned32(v: i32) -> u32 {
    v as u32
}

/// Returns the low 32 bits: a varint that is read as a number of 32 bits.
#[inline(always)]
pub(crate) const fn low_32_bits(v: u64) -> u32 {
    (v & 0xffff_ffff) as u32
}

/// Returns the size of the shortest varint of `v`.
#[inline]
#[must_use]
pub const fn varint_size(v: u64) -> usize {
    // 7 payload bits a byte; 0 takes one byte. (bits * 9 + 64) / 64 equals ceil(bits / 7) for
    // 1..=64.
    let bits = 64 - (v | 1).leading_zeros() as usize;
    (bits * 9 + 64) / 64
}

/// Returns `v` as a varint padded to four bytes. Lengths are back-filled in this form.
///
/// Only the low 28 bits of `v` are kept.
#[inline]
#[must_use]
pub const fn redundant_varint4(v: u32) -> [u8; 4] {
    [(v & 0x7f) as u8 | 0x80, ((v >> 7) & 0x7f) as u8 | 0x80, ((v >> 14) & 0x7f) as u8 | 0x80, ((v >> 21) & 0x7f) as u8]
}

/// Encodes `v` into `out` and returns the number of bytes.
#[inline]
pub const fn encode_varint(mut v: u64, out: &mut [u8; MAX_VARINT_SIZE]) -> usize {
    let mut n = 0;
    while v >= 0x80 {
        out[n] = (v & 0x7f) as u8 | 0x80;
        v >>= 7;
        n += 1;
    }
    out[n] = (v & 0x7f) as u8;
    n + 1
}

/// Reads a varint from the start of `bytes`: its value and the number of bytes it took.
///
/// Redundant encodings are accepted. Returns `None` if the input ends inside the varint, or if the
/// varint is longer than [`MAX_VARINT_SIZE`]. Only the lowest bit of the tenth byte counts.
#[inline]
#[must_use]
pub const fn decode_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    match read_varint(bytes) {
        (_, 0) => None,
        read => Some(read),
    }
}

/// [`decode_varint`], but returns 0 bytes if the input is not a varint, so that the pair is
/// returned in registers.
#[inline]
pub(crate) const fn read_varint(bytes: &[u8]) -> (u64, usize) {
    match bytes {
        [byte @ 0..=0x7f, ..] => (*byte as u64, 1),
        [low, high @ 0..=0x7f, ..] => ((*low & 0x7f) as u64 | (*high as u64) << 7, 2),
        _ => read_long_varint(bytes),
    }
}

/// Most varints are short. Longer ones are handled out of line, to keep the loops around this
/// small.
#[inline(never)]
const fn read_long_varint(bytes: &[u8]) -> (u64, usize) {
    let Some((head, tail)) = bytes.split_first_chunk() else { return read_last_varint(bytes) };
    let word = u64::from_le_bytes(*head);
    // The lowest bit that marks a byte as the last, and all bits below it.
    let last = !word & 0x8080_8080_8080_8080;
    if last != 0 {
        let mask = last ^ (last - 1);
        return (gather(word & mask), last.trailing_zeros() as usize / 8 + 1);
    }
    match tail {
        [ninth @ 0..=0x7f, ..] => (gather(word) | (*ninth as u64) << 56, 9),
        [ninth, tenth @ 0..=0x7f, ..] => (gather(word) | ((*ninth & 0x7f) as u64) << 56 | (*tenth as u64) << 63, 10),
        _ => (0, 0),
    }
}

/// Joins the low seven bits of each of eight bytes.
#[inline]
const fn gather(word: u64) -> u64 {
    let word = word & 0x7f7f_7f7f_7f7f_7f7f;
    let word = (word & 0x007f_007f_007f_007f) | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let word = (word & 0x0000_3fff_0000_3fff) | (word & 0x3fff_0000_3fff_0000) >> 2;
    (word & 0x0fff_ffff) | (word & 0x0fff_ffff_0000_0000) >> 4
}

/// Reads a varint from the last seven bytes of the input.
const fn read_last_varint(bytes: &[u8]) -> (u64, usize) {
    let mut value = 0;
    let mut n = 0;
    while n < bytes.len() {
        let byte = bytes[n];
        value |= ((byte & 0x7f) as u64) << (7 * n);
        n += 1;
        if byte < 0x80 {
            return (value, n);
        }
    }
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_match_the_table_of_the_spec() {
        for (field, tags) in [
            (1, [0x08, 0x09, 0x0a, 0x0d]),
            (0x7f, [0x3f8, 0x3f9, 0x3fa, 0x3fd]),
            (0x80, [0x400, 0x401, 0x402, 0x405]),
            (0x3fff, [0x1fff8, 0x1fff9, 0x1fffa, 0x1fffd]),
            (0x4000, [0x20000, 0x20001, 0x20002, 0x20005]),
        ] {
            let types = [WireType::Varint, WireType::Fixed64, WireType::LengthDelimited, WireType::Fixed32];
            assert_eq!(types.map(|t| tag(field, t)), tags);
        }
    }

    #[test]
    fn redundant_varints_are_four_bytes() {
        assert_eq!(redundant_varint4(0), [0x80, 0x80, 0x80, 0x00]);
        assert_eq!(redundant_varint4(1), [0x81, 0x80, 0x80, 0x00]);
        assert_eq!(redundant_varint4(0x80), [0x80, 0x81, 0x80, 0x00]);
        assert_eq!(redundant_varint4(0x33_2211), [0x91, 0xc4, 0xcc, 0x01]);
        assert_eq!(redundant_varint4(0x0fff_ffff), [0xff, 0xff, 0xff, 0x7f]);
    }

    #[test]
    fn varint_sizes_agree_with_the_encoder() {
        let mut out = [0; MAX_VARINT_SIZE];
        for shift in 0..64 {
            for v in [(1u64 << shift) - 1, 1 << shift, (1 << shift) + 1] {
                assert_eq!(varint_size(v), encode_varint(v, &mut out), "{v:#x}");
                assert_eq!(decode_varint(&out), Some((v, varint_size(v))));
            }
        }
        assert_eq!(varint_size(u64::MAX), 10);
    }

    #[test]
    fn overlong_and_cut_varints_are_refused() {
        assert_eq!(decode_varint(&[]), None);
        assert_eq!(decode_varint(&[0x80; 9]), None);
        assert_eq!(decode_varint(&[0x80; 10]), None);
        assert_eq!(decode_varint(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]), Some((u64::MAX, 10)));
    }

    #[test]
    fn zigzag_keeps_small_magnitudes_small() {
        for (signed, unsigned) in [(0, 0), (-1, 1), (1, 2), (-2, 3), (i64::MAX, u64::MAX - 1), (i64::MIN, u64::MAX)] {
            assert_eq!(zigzag(signed), unsigned);
            assert_eq!(unzigzag(unsigned), signed);
        }
    }
}
