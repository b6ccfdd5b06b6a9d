//! Decompression of the beginning of a payload.

use std::io::{self, Read};

use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;

use super::file_format::Compression;

/// Memory that an xz stream may ask for, in KiB. Journal writers use dictionaries of 1 MiB, and
/// used 8 MiB before 2014.
const MAX_XZ_MEMORY_KIB: u32 = 10 << 10;
/// Window that a zstd frame may ask for. Journal writers use 2 MiB.
const MAX_ZSTD_WINDOW: u64 = 8 << 20;

/// Appends to `plain` what `bytes` decompress to, at most `max` bytes. Returns whether these bytes
/// are right; if they are not, `plain` has no use.
pub(super) fn decompress(compression: Compression, bytes: &[u8], max: usize, plain: &mut Vec<u8>) -> bool {
    match compression {
        Compression::Xz => read(XzReader::new_mem_limit(bytes, false, MAX_XZ_MEMORY_KIB), max, plain).is_ok(),
        Compression::Zstd => {
            zstd_window(bytes).is_some_and(|window| window <= MAX_ZSTD_WINDOW)
                && StreamingDecoder::new(bytes).is_ok_and(|decoder| read(decoder, max, plain).is_ok())
        }
        // The size of the whole comes first.
        Compression::Lz4 => bytes.get(8..).and_then(|block| lz4_block(block, max, plain)).is_some(),
    }
}

fn read(decoder: impl Read, max: usize, plain: &mut Vec<u8>) -> io::Result<usize> {
    decoder.take(max as u64).read_to_end(plain)
}

/// Returns the window that a frame of zstd asks for (RFC 8878 §3.1.1.1).
fn zstd_window(frame: &[u8]) -> Option<u64> {
    let rest = frame.strip_prefix(&[0x28, 0xb5, 0x2f, 0xfd])?;
    let (&descriptor, rest) = rest.split_first()?;
    let is_single_segment = descriptor & 0x20 != 0;
    if !is_single_segment {
        let &window = rest.first()?;
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // The window is as large as the content.
    let dictionary_id_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size = rest.get(dictionary_id_bytes..)?;
    match descriptor >> 6 {
        0 => size.first().map(|&size| u64::from(size)),
        1 => size.first_chunk().map(|size| u64::from(u16::from_le_bytes(*size)) + 256),
        2 => size.first_chunk().map(|size| u64::from(u32::from_le_bytes(*size))),
        _ => size.first_chunk().map(|size| u64::from_le_bytes(*size)),
    }
}

/// Appends the first `max` bytes of a block of LZ4. Returns nothing if the block is damaged before
/// its end or that size.
///
/// Crates for LZ4 decompress blocks only as a whole, which may have any size. A block is a row of
/// sequences: a token with two lengths, literal bytes, and a match, which repeats earlier bytes.
fn lz4_block(mut block: &[u8], max: usize, plain: &mut Vec<u8>) -> Option<()> {
    let start = plain.len();
    let end = start + max;
    loop {
        let (&token, rest) = block.split_first()?;
        block = rest;
        let literals = lz4_length(token >> 4, &mut block)?;
        let wanted = literals.min(end - plain.len());
        plain.extend_from_slice(block.get(..wanted)?);
        if plain.len() == end {
            return Some(());
        }
        block = block.get(literals..)?;
        if block.is_empty() {
            // The last sequence has no match.
            return Some(());
        }
        let (distance, rest) = block.split_first_chunk()?;
        block = rest;
        let distance = usize::from(u16::from_le_bytes(*distance));
        let matched = lz4_length(token & 15, &mut block)?.checked_add(4)?;
        if distance == 0 || distance > plain.len() - start {
            return None;
        }
        let mut left = matched.min(end - plain.len());
        // A match may repeat what it is just writing.
        while left > 0 {
            let from = plain.len() - distance;
            let copied = left.min(distance);
            plain.extend_from_within(from..from + copied);
            left -= copied;
        }
        if plain.len() == end {
            return Some(());
        }
    }
}

/// Reads the rest of a length whose first four bits are in the token.
fn lz4_length(bits: u8, block: &mut &[u8]) -> Option<usize> {
    let mut length = usize::from(bits);
    if bits == 15 {
        loop {
            let (&more, rest) = block.split_first()?;
            *block = rest;
            length = length.checked_add(usize::from(more))?;
            if more != 255 {
                break;
            }
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_lz4_repeats_what_it_is_writing() {
        // 3 literals, then a match of 4 + 5 bytes at distance 3; then 1 literal.
        let block = [&[0x35][..], b"abc", &[3, 0], &[0x10], b"!"].concat();
        let mut plain = b"kept".to_vec();
        assert_eq!(lz4_block(&block, 100, &mut plain), Some(()));
        assert_eq!(plain, b"keptabcabcabcabc!");
        plain.clear();
        assert_eq!(lz4_block(&block, 8, &mut plain), Some(()));
        assert_eq!(plain, b"abcabcab", "no more than asked for");
    }

    #[test]
    fn a_damaged_block_of_lz4_is_refused() {
        for block in
            [&[0x35, b'a', b'b', b'c', 4, 0][..], &[0x35, b'a', b'b', b'c', 0, 0], &[0xf0, 255], &[0x30, 1], &[]]
        {
            assert_eq!(lz4_block(block, 100, &mut Vec::new()), None, "{block:?}");
        }
    }

    #[test]
    fn a_zstd_frame_that_asks_for_much_memory_is_refused() {
        let with_window = |window| [0x28, 0xb5, 0x2f, 0xfd, 0x00, window, 1, 0, 0];
        assert!(decompress(Compression::Zstd, &with_window(0), 10, &mut Vec::new()));
        assert!(!decompress(Compression::Zstd, &with_window(14 << 3), 10, &mut Vec::new()), "16 MiB");
        assert_eq!(zstd_window(&[0x28, 0xb5, 0x2f, 0xfd, 0x60, 1, 1]), Some(513));
        assert_eq!(zstd_window(&[0x28, 0xb5, 0x2f, 0xfd, 0xa1, 9, 1, 2, 0, 0]), Some(513), "after the dictionary");
    }
}
