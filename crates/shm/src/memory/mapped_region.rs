//! [`MappedRegion`]: shared memory, which is a sealed memfd, mapped whole
//! (`docs/spec/shared-memory.md` §2).

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, Ordering};
use core::{fmt, ptr::NonNull};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::{
    addressable_memory::Memory,
    mapping_list::{self, Mapping},
    memfd::{self, system},
    seals::{SEALS, check},
};
use crate::{
    abi::PageSize,
    error::Error,
    size::{Geometry, MAX_SIZE},
};

/// Name of the memfd, visible in `/proc/*/maps`.
pub const MEMFD_NAME: &str = match NAME.to_str() {
    Ok(name) => name,
    Err(_) => unreachable!(),
};

const NAME: &CStr = c"perfetto_shmem";

/// Memfd and its mapping. Unmapped and closed on drop.
pub struct MappedRegion {
    base: NonNull<u8>,
    size: usize,
    file: File,
    mapping: Option<&'static Mapping>,
    /// One bit for each page of the smallest size. It is set if the page is known to have been
    /// written.
    written: Box<[AtomicU32]>,
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

    /// Maps memory that the *service* sent, if it is acceptable. The checks are those of
    /// [`from_producer`](Self::from_producer), except for the page size, which comes separately.
    /// Without them a process that poses as the service could take the memory away and end this
    /// process.
    ///
    /// # Errors
    /// [`Error`] with the reason.
    pub fn from_service(fd: OwnedFd) -> Result<Self, Error> {
        check(fd.as_fd())?;
        Self::from_trusted_service(fd)
    }

    /// Maps memory of a service that runs as root or as the user of this process. Seals are not
    /// required: services of 2018, and those on kernels without memfd, send an unlinked file. This
    /// service could also end the process with a signal.
    ///
    /// # Errors
    /// [`Error::Size`] for 0 or more than 32 MiB, [`Error::System`] if it cannot be mapped.
    pub fn from_trusted_service(fd: OwnedFd) -> Result<Self, Error> {
        let file = File::from(fd);
        let size = file_size(&file)?;
        check_size(size)?;
        Self::map(file, size)
    }

    /// Maps memory that a *producer* sent, if it is acceptable: a memfd of plain memory with the
    /// three seals against resizing and none against writing. Its size must fit the page size in
    /// bytes that the producer named (`docs/spec/shared-memory.md` §2, §3, §19).
    ///
    /// # Errors
    /// [`Error`] with the reason.
    pub fn from_producer(fd: OwnedFd, page_size_hint: usize) -> Result<(Self, Geometry), Error> {
        check(fd.as_fd())?;
        // With the seals in place the size cannot change after this.
        let file = File::from(fd);
        let size = file_size(&file)?;
        let geometry = Geometry::exact(size, page_size_hint)?;
        Ok((Self::map(file, size)?, geometry))
    }

    /// Maps any file, so that tests can take its pages away.
    ///
    /// # Errors
    /// [`Error`] with the reason.
    #[doc(hidden)]
    pub fn unchecked(fd: OwnedFd) -> Result<Self, Error> {
        let file = File::from(fd);
        let size = file_size(&file)?;
        check_size(size)?;
        Self::map(file, size)
    }

    fn map(file: File, size: usize) -> Result<Self, Error> {
        // The mapping is accessed only as `Memory` requires.
        let base = memfd::map(&file, size).map_err(system("mmap"))?;
        let mapping = Mapping::add(base, size, &file);
        let words = size.div_ceil(PageSize::MIN).div_ceil(32);
        Ok(Self { base, size, file, mapping, written: (0..words).map(|_| AtomicU32::new(0)).collect() })
    }

    /// Replaces the mappings of a forked child by copies. Other processes do not see the child's
    /// writes after that, for instance because it was forked during a write.
    ///
    /// # Safety
    ///
    /// This process has one thread. The descriptors of the regions are open.
    pub unsafe fn copy_in_child() {
        for (base, size, fd) in mapping_list::all() {
            // SAFETY: a mapping that is listed is there, and its file is open until after it is
            // not. Without memory for it, it stays as it is.
            let _ = unsafe { memfd::map_copy_over(base, fd, size) };
        }
    }

    /// Returns the descriptor, which the caller sends to the peer.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

// SAFETY: the mapping is page aligned, spans `size` bytes and lives until drop. The kind and the
// seals of the file grant that it keeps its pages (`create`, `seals::check`). If that fails, an
// access ends the process, or, with `faults`, reads zeros.
unsafe impl Memory for MappedRegion {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn size(&self) -> usize {
        self.size
    }

    fn has_lost_pages(&self) -> bool {
        self.mapping.is_some_and(Mapping::is_lost)
    }

    fn has_page(&self, offset: usize) -> bool {
        let page = offset / PageSize::MIN;
        let Some(written) = self.written.get(page / 32) else { return true };
        let bit = 1 << (page % 32);
        if written.load(Ordering::Relaxed) & bit != 0 {
            return true;
        }
        // If the page cannot be read, the next access to it finds out.
        let is_written = memfd::read_word(self.file.as_fd(), offset).map_or(true, |word| word != 0);
        if is_written {
            written.fetch_or(bit, Ordering::Relaxed);
        }
        is_written
    }
}

impl Drop for MappedRegion {
    fn drop(&mut self) {
        if let Some(mapping) = self.mapping {
            mapping.remove();
        }
        // SAFETY: mapped in `map` with this size, and no borrow of the value is left.
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
        return Err(Error::Size { bytes: size, page_size: PageSize::MIN });
    }
    Ok(())
}

fn file_size(file: &File) -> Result<usize, Error> {
    let size = file.metadata().map_err(system("fstat"))?.len();
    // A size that does not fit is too large anyway.
    Ok(usize::try_from(size).unwrap_or(usize::MAX))
}
