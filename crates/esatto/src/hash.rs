//! The hash of names, ids and bytes: 64-bit FNV-1a.

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// Returns the 64-bit FNV-1a hash.
pub(crate) const fn fnv(bytes: &[u8]) -> u64 {
    fnv_from(FNV_BASIS, bytes)
}

/// Continues a hash with more bytes.
pub(crate) const fn fnv_from(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(FNV_PRIME);
        i += 1;
    }
    hash
}

/// Returns a hash of a number: one number for each, in which every bit depends on all bits.
pub(crate) const fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_the_spec() {
        assert_eq!(fnv(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv(b"mytrack"), 0x8182_0cb4_e204_bfb2);
    }
}
