//! Shared memory proper: a sealed memfd, mapped whole (`docs/spec/shared-memory.md` §2).

use core::ffi::CStr;
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use core::{fmt, ptr::NonNull};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use linux_raw_sys::general::{F_SEAL_FUTURE_WRITE, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_WRITE};

use crate::{
    Error, memfd,
    region::Memory,
    size::{Geometry, MAX_SIZE},
};

/// Name of the memfd, visible in `/proc/*/maps`.
pub const MEMFD_NAME: &str = match NAME.to_str() {
    Ok(name) => name,
    Err(_) => unreachable!(),
};

const NAME: &CStr = c"perfetto_shmem";

/// Seals of a shared buffer: nobody may resize it, or add seals.
const SEALS: u32 = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW;

/// A memfd and its mapping. Unmapped and closed on drop.
pub struct MappedRegion {
    base: NonNull<u8>,
    size: usize,
    file: File,
    listed: Option<&'static Listed>,
}

/// A mapping of this process, for [`MappedRegion::copy_in_child`].
struct Listed {
    /// Where it begins; 0: nowhere. Set last and cleared first.
    base: AtomicUsize,
    size: AtomicUsize,
    fd: AtomicI32,
}

/// More mappings than these stay shared in children of a fork.
const MAX_LISTED: usize = 64;

static LISTED: [Listed; MAX_LISTED] = [const { Listed::none() }; MAX_LISTED];

/// Somebody else is about to fill it in.
const TAKEN: usize = usize::MAX;

impl Listed {
    const fn none() -> Self {
        Self { base: AtomicUsize::new(0), size: AtomicUsize::new(0), fd: AtomicI32::new(-1) }
    }

    fn add(base: NonNull<u8>, size: usize, file: &File) -> Option<&'static Self> {
        let is_free =
            |listed: &&Self| listed.base.compare_exchange(0, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok();
        let listed = LISTED.iter().find(is_free)?;
        listed.size.store(size, Ordering::Relaxed);
        listed.fd.store(file.as_raw_fd(), Ordering::Relaxed);
        listed.base.store(base.as_ptr().expose_provenance(), Ordering::Release);
        Some(listed)
    }

    fn remove(&self) {
        self.base.store(0, Ordering::Release);
    }
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
        let file = memfd::create(NAME).map_err(system("memfd_create"))?;
        file.set_len(size as u64).map_err(system("ftruncate"))?;
        memfd::add_seals(file.as_fd(), SEALS).map_err(system("F_ADD_SEALS"))?;
        Self::map(file, size)
    }

    /// Maps what the *service* sent. The producer trusts it: seals are not required.
    ///
    /// # Errors
    /// [`Error::Size`] for 0 or more than 32 MiB, [`Error::System`] if it cannot be mapped.
    pub fn from_service(fd: OwnedFd) -> Result<Self, Error> {
        let file = File::from(fd);
        let size = file_size(&file)?;
        check_size(size)?;
        Self::map(file, size)
    }

    /// Maps what a *producer* sent, if it is acceptable: a memfd with the three seals against
    /// resizing and none against writing, whose size fits the page size in bytes that the producer named
    /// (`docs/spec/shared-memory.md` §3, §19).
    ///
    /// # Errors
    /// [`Error`], naming what is wrong.
    pub fn from_producer(fd: OwnedFd, page_size_hint: usize) -> Result<(Self, Geometry), Error> {
        let seals = memfd::seals(fd.as_fd()).map_err(|error| Error::NotMemfd { errno: errno(&error) })?;
        let missing = SEALS & !seals;
        if missing != 0 {
            return Err(Error::MissingSeals { seals, missing });
        }
        if seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE) != 0 {
            return Err(Error::WriteSealed { seals });
        }
        // With the seals in place the size cannot change after this.
        let file = File::from(fd);
        let size = file_size(&file)?;
        let geometry = Geometry::exact(size, page_size_hint)?;
        Ok((Self::map(file, size)?, geometry))
    }

    fn map(file: File, size: usize) -> Result<Self, Error> {
        // What is mapped is only ever accessed as `Memory` demands.
        let base = memfd::map(&file, size).map_err(system("mmap"))?;
        let listed = Listed::add(base, size, &file);
        Ok(Self { base, size, file, listed })
    }

    /// In the child of a fork: the mappings that it has from its parent become copies. What it still writes, because it forked while it did, nobody else sees.
    ///
    /// # Safety
    ///
    /// This process has one thread. The descriptors of the regions are open.
    pub unsafe fn copy_in_child() {
        for listed in &LISTED {
            let base: *mut u8 = core::ptr::with_exposed_provenance_mut(listed.base.load(Ordering::Acquire));
            let Some(base) = NonNull::new(base).filter(|base| base.as_ptr().addr() != TAKEN) else { continue };
            let (fd, size) = (listed.fd.load(Ordering::Relaxed), listed.size.load(Ordering::Relaxed));
            // SAFETY: a region that is listed is mapped, and its file is open until after it is not.
            // Without memory for it, it stays as it is.
            let _ = unsafe { memfd::map_copy_over(base, fd, size) };
        }
    }

    /// The descriptor, to be sent to the peer.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
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
        if let Some(listed) = self.listed {
            listed.remove();
        }
        // SAFETY: mapped in `map` with this size, and nobody borrows the value any more.
        let unmapped = unsafe { memfd::unmap(self.base, self.size) };
        debug_assert!(unmapped.is_ok());
    }
}

impl fmt::Debug for MappedRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedRegion").field("size", &self.size).field("fd", &self.file.as_raw_fd()).finish()
    }
}

fn check_size(size: usize) -> Result<(), Error> {
    if size == 0 || size > MAX_SIZE {
        return Err(Error::Size { bytes: size, page_size: crate::abi::PageSize::MIN });
    }
    Ok(())
}

fn file_size(file: &File) -> Result<usize, Error> {
    let size = file.metadata().map_err(system("fstat"))?.len();
    // What does not fit is too large anyway.
    Ok(usize::try_from(size).unwrap_or(usize::MAX))
}

fn system(call: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| Error::System { call, errno: errno(&error) }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or_default()
}
