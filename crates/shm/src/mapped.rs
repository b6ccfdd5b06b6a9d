//! Shared memory proper: a sealed memfd, mapped whole (`docs/spec/shared-memory.md` §2).

use core::{fmt, ptr::NonNull};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create},
    io::Errno,
    mm::{MapFlags, ProtFlags, mmap, munmap},
};

use crate::{
    Error,
    region::Memory,
    size::{Geometry, MAX_SIZE},
};

/// Name of the memfd, visible in `/proc/*/maps`.
pub const MEMFD_NAME: &str = "perfetto_shmem";

/// Seals of a shared buffer: nobody may resize it, or add seals.
const SEALS: SealFlags = SealFlags::SEAL.union(SealFlags::SHRINK).union(SealFlags::GROW);

/// A memfd and its mapping. Unmapped and closed on drop.
pub struct MappedRegion {
    base: NonNull<u8>,
    size: usize,
    fd: OwnedFd,
}

// SAFETY: the mapping belongs to this value, and is accessed as `Memory` demands.
unsafe impl Send for MappedRegion {}
// SAFETY: as above; access through `&self` is atomic or the chunk owner's.
unsafe impl Sync for MappedRegion {}

impl MappedRegion {
    /// Makes a sealed, zeroed memfd of `size` bytes. Six system calls.
    ///
    /// # Errors
    /// [`Error::Size`] for 0 or more than 32 MiB, [`Error::System`] if the kernel refuses.
    pub fn create(size: usize) -> Result<Self, Error> {
        check_size(size)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = memfd_create(MEMFD_NAME, flags).map_err(system("memfd_create"))?;
        ftruncate(&fd, size as u64).map_err(system("ftruncate"))?;
        fcntl_add_seals(&fd, SEALS).map_err(system("F_ADD_SEALS"))?;
        Self::map(fd, size)
    }

    /// Maps what the *service* sent. The producer trusts it: seals are not required.
    ///
    /// # Errors
    /// [`Error::Size`] for 0 or more than 32 MiB, [`Error::System`] if it cannot be mapped.
    pub fn from_service(fd: OwnedFd) -> Result<Self, Error> {
        let size = file_size(&fd)?;
        check_size(size)?;
        Self::map(fd, size)
    }

    /// Maps what a *producer* sent, if it is acceptable: a memfd with the three seals against
    /// resizing and none against writing, whose size fits the page size in bytes that the producer named
    /// (`docs/spec/shared-memory.md` §3, §19).
    ///
    /// # Errors
    /// [`Error`], naming what is wrong.
    pub fn from_producer(fd: OwnedFd, page_size_hint: usize) -> Result<(Self, Geometry), Error> {
        let seals = fcntl_get_seals(&fd).map_err(|e| Error::NotMemfd { errno: e.raw_os_error() })?;
        let missing = SEALS.difference(seals);
        if !missing.is_empty() {
            return Err(Error::MissingSeals { seals: seals.bits(), missing: missing.bits() });
        }
        if seals.intersects(SealFlags::WRITE | SealFlags::FUTURE_WRITE) {
            return Err(Error::WriteSealed { seals: seals.bits() });
        }
        // With the seals in place the size cannot change after this.
        let size = file_size(&fd)?;
        let geometry = Geometry::exact(size, page_size_hint)?;
        Ok((Self::map(fd, size)?, geometry))
    }

    fn map(fd: OwnedFd, size: usize) -> Result<Self, Error> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours; it is only ever
        // accessed as `Memory` demands.
        let base =
            unsafe { mmap(core::ptr::null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &fd, 0) }
                .map_err(system("mmap"))?;
        let base =
            NonNull::new(base.cast()).ok_or(Error::System { call: "mmap", errno: Errno::NOMEM.raw_os_error() })?;
        Ok(Self { base, size, fd })
    }

    /// The descriptor, to be sent to the peer.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

// SAFETY: the mapping is page aligned, spans `size` bytes and lives until drop. That the file behind it keeps its size is
// granted by the seals (`create`, `from_producer`), or by the service, which a producer trusts (`from_service`).
unsafe impl Memory for MappedRegion {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn size(&self) -> usize {
        self.size
    }
}

impl Drop for MappedRegion {
    fn drop(&mut self) {
        // SAFETY: mapped in `map` with this size, and nobody borrows the value any more.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.size) };
        debug_assert!(unmapped.is_ok());
    }
}

impl fmt::Debug for MappedRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedRegion").field("size", &self.size).field("fd", &self.fd).finish()
    }
}

fn check_size(size: usize) -> Result<(), Error> {
    if size == 0 || size > MAX_SIZE {
        return Err(Error::Size { bytes: size, page_size: crate::abi::PageSize::MIN });
    }
    Ok(())
}

fn file_size(fd: &OwnedFd) -> Result<usize, Error> {
    let stat = fstat(fd).map_err(system("fstat"))?;
    // What does not fit is too large anyway.
    Ok(usize::try_from(stat.st_size).unwrap_or(usize::MAX))
}

fn system(call: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::System { call, errno: errno.raw_os_error() }
}
