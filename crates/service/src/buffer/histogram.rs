//! Histogram of the fragment bytes in a writer's chunks.

/// Upper limits (inclusive) of the buckets of fragment bytes per chunk; the last bucket has none.
pub const HISTOGRAM_LIMITS: [u64; 10] = [8, 32, 128, 512, 1024, 2048, 4096, 8192, 12288, 16384];

/// Number of buckets.
pub const HISTOGRAM_BUCKETS: usize = HISTOGRAM_LIMITS.len() + 1;

/// Chunks and bytes per bucket.
#[derive(Clone, Debug, Default)]
struct Buckets {
    counts: [u64; HISTOGRAM_BUCKETS],
    sums: [u64; HISTOGRAM_BUCKETS],
}

impl Buckets {
    fn add(&mut self, bytes: u64) {
        let bucket = HISTOGRAM_LIMITS.iter().position(|&limit| bytes <= limit).unwrap_or(HISTOGRAM_LIMITS.len());
        self.counts[bucket] += 1;
        self.sums[bucket] += bytes;
    }
}

/// The samples of one writer. The first one takes no extra memory, so a writer of one small chunk
/// costs little.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    first: Option<u16>,
    /// All samples, from the second on.
    all: Option<Box<Buckets>>,
}

impl Histogram {
    #[inline]
    pub(super) fn sample(&mut self, fragment_bytes: u16) {
        match (&mut self.all, self.first) {
            (Some(all), _) => all.add(fragment_bytes.into()),
            (None, None) => self.first = Some(fragment_bytes),
            (all @ None, Some(first)) => {
                let all = all.get_or_insert_default();
                all.add(first.into());
                all.add(fragment_bytes.into());
            }
        }
    }

    /// Returns the chunks per bucket, and the sum of their bytes.
    pub(super) fn buckets(&self) -> ([u64; HISTOGRAM_BUCKETS], [u64; HISTOGRAM_BUCKETS]) {
        let mut buckets = self.all.as_deref().cloned().unwrap_or_default();
        if let (None, Some(first)) = (&self.all, self.first) {
            buckets.add(first.into());
        }
        (buckets.counts, buckets.sums)
    }
}
