//! Shared memory of producers, from which the service can only copy.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use esatto_shm::abi::PageSize;
use esatto_shm::{Error, MappedRegion, PrivateRegion, ServiceRegion};

/// Creates sealed, zeroed memory for a producer on this machine, to be sent to it.
pub(crate) fn create(size_bytes: usize, page_size_bytes: usize) -> Result<(Arc<MappedRegion>, ServiceRegion), Error> {
    let page_size = PageSize::new(page_size_bytes)?;
    let region = Arc::new(MappedRegion::create(size_bytes)?);
    let buffer = ServiceRegion::new(Arc::<MappedRegion>::clone(&region), page_size)?;
    Ok((region, buffer))
}

/// Creates a stand-in for the memory of a producer that sends its chunks inside commits: one page,
/// which is always empty.
pub(crate) fn emulated(size_bytes: usize, page_size_bytes: usize) -> Result<ServiceRegion, Error> {
    let page_size = PageSize::new(page_size_bytes)?;
    ServiceRegion::new(Arc::new(PrivateRegion::new(size_bytes)), page_size)
}

/// Adopts memory that a producer brought along, if its kind, seals and sizes are right
/// (`docs/spec/shared-memory.md` §2, §3). None of its calls can wait for the producer, for any kind
/// of descriptor.
pub(crate) fn adopt(fd: OwnedFd, page_size_bytes: u32) -> Result<(Arc<MappedRegion>, ServiceRegion), Error> {
    // A value that does not fit is no page size.
    let hint = usize::try_from(page_size_bytes).unwrap_or(usize::MAX);
    let (region, geometry) = MappedRegion::from_producer(fd, hint)?;
    let region = Arc::new(region);
    let buffer = ServiceRegion::new(Arc::<MappedRegion>::clone(&region), geometry.page_size)?;
    Ok((region, buffer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_service::SharedBuffer as _;
    use std::fs::File;

    #[test]
    fn only_sealed_memfds_are_adopted() {
        let file = File::open("/proc/self/exe").unwrap();
        assert!(matches!(adopt(file.into(), 4096), Err(Error::NotMemfd { .. })));
        let unsealed = rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&unsealed, 16384).unwrap();
        assert!(matches!(adopt(unsealed, 4096), Err(Error::MissingSeals { .. })));
    }

    #[test]
    fn created_memory_can_be_adopted() {
        let (region, buffer) = create(16384, 4096).unwrap();
        assert_eq!((buffer.size_bytes(), buffer.page_size_bytes()), (16384, 4096));
        let (_, adopted) = adopt(region.fd().try_clone_to_owned().unwrap(), 4096).unwrap();
        assert_eq!((adopted.size_bytes(), adopted.page_size_bytes()), (16384, 4096));
        for page_size_hint in [0, 12288, u32::MAX] {
            assert!(adopt(region.fd().try_clone_to_owned().unwrap(), page_size_hint).is_err());
        }
    }
}
