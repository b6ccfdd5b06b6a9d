//! Memory that a producer and the service share: how it is made, mapped and accessed.

#[cfg(not(esatto_loom))]
mod addressable_memory;
#[cfg(all(feature = "faults", not(esatto_loom), any(target_os = "linux", target_os = "android")))]
pub mod faults;
#[cfg(esatto_loom)]
mod loom_region;
#[cfg(all(not(esatto_loom), any(target_os = "linux", target_os = "android")))]
mod mapped_region;
#[cfg(all(not(esatto_loom), any(target_os = "linux", target_os = "android")))]
mod mapping_list;
#[cfg(all(not(esatto_loom), any(target_os = "linux", target_os = "android")))]
mod memfd;
#[cfg(not(esatto_loom))]
mod private_region;
#[cfg(not(esatto_loom))]
mod racing_copy;
mod region;
#[cfg(all(not(esatto_loom), any(target_os = "linux", target_os = "android")))]
mod seals;

#[cfg(not(esatto_loom))]
pub use addressable_memory::Memory;
#[cfg(esatto_loom)]
pub use loom_region::LoomRegion;
#[cfg(all(not(esatto_loom), any(target_os = "linux", target_os = "android")))]
pub use mapped_region::{MEMFD_NAME, MappedRegion};
#[cfg(not(esatto_loom))]
pub use private_region::PrivateRegion;
pub use region::Region;
#[cfg(all(not(esatto_loom), any(target_os = "linux", target_os = "android")))]
pub use seals::require_memory;

/// Memory of an arbiter.
#[cfg(not(esatto_loom))]
pub(crate) type SharedMemory = std::sync::Arc<dyn Memory>;
/// Memory of an arbiter.
#[cfg(esatto_loom)]
pub(crate) type SharedMemory = std::sync::Arc<LoomRegion>;
