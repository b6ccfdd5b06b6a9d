//! Ordinals of methods: 63 bits of a hash of their full names.

use sha2::{Digest, Sha256};

/// Returns the ordinal of `library/Protocol.Method`: the first 8 bytes of the SHA-256 hash, little
/// endian, without the highest bit.
pub(crate) fn ordinal(selector: &str) -> u64 {
    let hash = Sha256::digest(selector.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    u64::from_le_bytes(first) & !(1 << 63)
}

#[cfg(test)]
mod tests {
    use super::ordinal;

    #[test]
    fn ordinals_are_those_of_fuchsias_compiler() {
        assert_eq!(ordinal("test.newtype/Calculator.Add"), 7_893_336_915_889_044_876);
        let composed = "test.errorsyntax.parent/ParentUsesErrorSyntax.ComposedCallWhichMayFail";
        assert_eq!(ordinal(composed), 3_565_108_794_310_607_393);
    }
}
