//! Size of a ring that several buffers make up together.

use esatto_schema::TraceConfig;
use esatto_schema::trace_config::BufferConfig;

/// Least size of a buffer.
const LEAST_BUFFER_KB: u64 = 64;

/// Gives all buffers this size together, each its share.
pub(crate) fn resize(config: &mut TraceConfig, ring_kb: u32) {
    let shares = shares(&config.buffers, ring_kb);
    for (buffer, share) in config.buffers.iter_mut().zip(shares) {
        buffer.size_kb = Some(share);
    }
}

/// Returns the share of each buffer: in proportion to the present sizes, but not less than a buffer
/// needs.
pub(crate) fn shares(buffers: &[BufferConfig], ring_kb: u32) -> Vec<u32> {
    let total: u64 = buffers.iter().map(|buffer| u64::from(buffer.size_kb.unwrap_or(0))).sum();
    let share = |buffer: &BufferConfig| {
        let (part, whole) = match total {
            // Without sizes, the buffers share it equally.
            0 => (1, buffers.len() as u64),
            total => (u64::from(buffer.size_kb.unwrap_or(0)), total),
        };
        let share = u64::from(ring_kb) * part / whole.max(1);
        u32::try_from(share.max(LEAST_BUFFER_KB)).unwrap_or(u32::MAX)
    };
    buffers.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_buffer_gets_its_share() {
        let of = |sizes: &[u32], ring_kb| {
            let buffer = |&size: &u32| BufferConfig { size_kb: Some(size), ..BufferConfig::default() };
            shares(&sizes.iter().map(buffer).collect::<Vec<_>>(), ring_kb)
        };
        assert_eq!(of(&[3000, 1000], 8000), [6000, 2000]);
        assert_eq!(of(&[1], 512), [512]);
        assert_eq!(of(&[0, 0], 512), [256, 256]);
        assert_eq!(of(&[u32::MAX, 1], u32::MAX), [u32::MAX - 1, 64]);
        assert_eq!(of(&[], 512), [0; 0]);
    }
}
