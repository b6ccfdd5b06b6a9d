//! Linux and Android: everything, with system calls.

pub(crate) mod at_fork;
pub(crate) mod connect_error;
pub(crate) mod descriptor_closer;
mod directory_watch;
#[cfg(feature = "in-process")]
mod files;
mod wait;

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use esatto_shm::{MappedRegion, Memory};

pub(crate) use crate::os::kernel::{ClockId, random as system_random, read_clock, tid};
pub(crate) use directory_watch::DirectoryWatch;
pub(crate) use esatto_ipc::address::{CONSUMER_SOCK_NAME, PRODUCER_SOCK_NAME};
pub(crate) use esatto_ipc::{Address, Error as TransportError, ForeignFd};
#[cfg(feature = "in-process")]
pub(crate) use files::{READS_BESIDE_WRITES, read_at, reader, to_path};
pub(crate) use std::os::fd::OwnedFd;
pub(crate) use wait::{Interest, Waker, wait};

pub(crate) type Shared = MappedRegion;

pub(crate) fn create_shared(size: usize) -> Result<Arc<Shared>, String> {
    MappedRegion::create(size).map(Arc::new).map_err(|error| error.to_string())
}

pub(crate) fn descriptor(region: &Shared) -> Option<OwnedFd> {
    region.fd().try_clone_to_owned().ok()
}

/// Maps memory of a service. Memory of a service that is not trusted must be sealed: no handler
/// covers pages that are taken away, because signal handlers belong to the program.
pub(crate) fn map_shared(fd: ForeignFd, is_trusted: bool) -> Result<Arc<dyn Memory>, String> {
    let map = if is_trusted { MappedRegion::from_trusted_service } else { MappedRegion::from_service };
    let mut checked = Ok(());
    let is_memory = |fd: BorrowedFd<'_>| {
        checked = esatto_shm::require_memory(fd);
        checked.is_ok()
    };
    let region = match fd.into_owned_if(is_memory) {
        Ok(memory) => map(memory),
        // An unlinked file, of a service on an old kernel. A thread for it closes `other`.
        Err(other) if is_trusted => map(other.try_clone().map_err(|error| error.to_string())?),
        Err(_) => Err(checked.expect_err("it is not harmless")),
    };
    Ok(Arc::new(region.map_err(|error| error.to_string())?))
}

#[cfg(feature = "in-process")]
pub(crate) fn uid() -> i32 {
    crate::os::kernel::uid() as i32
}
