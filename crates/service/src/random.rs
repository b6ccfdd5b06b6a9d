//! Random numbers from the seed the owner gave: the service itself has no source of them.

/// A small generator (xoshiro256**); not for secrets.
#[derive(Debug)]
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    pub(crate) fn new(seed: &[u8; 32]) -> Self {
        let mut state = [0; 4];
        for (word, bytes) in state.iter_mut().zip(seed.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("chunks of eight"));
        }
        if state == [0; 4] {
            state[0] = 1;
        }
        Self { state }
    }

    pub(crate) fn next(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Most and least significant half of a version 4 UUID.
    pub(crate) fn uuid(&mut self) -> (i64, i64) {
        let msb = self.next() & !0xf000 | 0x4000;
        let lsb = self.next() >> 2 | 1 << 63;
        (msb as i64, lsb as i64)
    }

    /// Uniform in [0, 1).
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
