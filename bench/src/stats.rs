//! Minimum and median.

/// Statistics in the tables: the median, and the minimum, which other load on the machine disturbs
/// least.
pub(crate) const BOTH: [(&str, Statistic); 2] = [("median", median), ("min", min)];

/// A number that stands for many.
pub(crate) type Statistic = fn(&[f64]) -> f64;

/// The smallest number; 0 of none.
pub(crate) fn min(samples: &[f64]) -> f64 {
    samples.iter().copied().reduce(f64::min).unwrap_or(0.0)
}

/// The number in the middle; 0 of none.
pub(crate) fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}
