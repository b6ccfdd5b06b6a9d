//! Words of bytecode: varints with a checksum at the end.

use esatto_protozero::wire;

use super::MAX_BYTECODE_SIZE;
use crate::Error;

/// Returns the words of `bytes` without the checksum, which is verified.
///
/// If a varint has more than 32 bits, the low 32 count, as for every `uint32` of protobuf.
pub(super) fn decode(bytes: &[u8]) -> Result<Vec<u32>, Error> {
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    if bytes.len() > MAX_BYTECODE_SIZE {
        return Err(Error::TooLong { size: bytes.len(), max: MAX_BYTECODE_SIZE });
    }
    let mut words = Vec::with_capacity(bytes.len());
    let mut offset = 0;
    while offset < bytes.len() {
        let (word, size) = wire::decode_varint(&bytes[offset..]).ok_or(Error::Varint { offset })?;
        words.push((word & 0xffff_ffff) as u32);
        offset += size;
    }
    let found = words.pop().ok_or(Error::Empty)?;
    let expected = checksum(&words);
    if found == expected { Ok(words) } else { Err(Error::Checksum { found, expected }) }
}

/// Encodes `words` and their checksum.
pub(super) fn encode(words: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut varint = [0; wire::MAX_VARINT_SIZE];
    for word in words.iter().copied().chain([checksum(words)]) {
        let size = wire::encode_varint(word.into(), &mut varint);
        bytes.extend_from_slice(&varint[..size]);
    }
    bytes
}

/// Returns the low half of a 64-bit FNV-1a hash of the words as little-endian bytes.
fn checksum(words: &[u32]) -> u32 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let hash = bytes.fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    (hash & 0xffff_ffff) as u32
}
