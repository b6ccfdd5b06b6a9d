//! Seeds of connections.

/// Returns a random number for a new connection; 0 without the feature `trace`.
pub(crate) fn new_seed() -> u64 {
    0
}

/// Returns the seed that a host repeats; 0 without the feature `trace`.
pub(crate) fn accept_seed(_: u64) -> u64 {
    0
}
