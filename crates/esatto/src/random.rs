//! Random numbers for ids and seeds.

/// Returns a random number, as random as the standard library's hasher keys.
pub(crate) fn random() -> u64 {
    use core::hash::{BuildHasher, Hasher};
    let _uncancelled = esatto_instances::Uncancelled::begin();
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
