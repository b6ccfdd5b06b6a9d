//! Seals of shared memory, and the check that a peer's memory cannot be taken away
//! (`docs/spec/shared-memory.md` §2, §19).

use std::os::fd::BorrowedFd;

use linux_raw_sys::general::{F_SEAL_FUTURE_WRITE, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_WRITE, TMPFS_MAGIC};

use super::memfd::{self, errno, system};
use crate::{abi::PageSize, error::Error};

/// Seals of a shared buffer: no process can resize it or add seals.
pub(super) const SEALS: u32 = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW;

/// Accepts files in memory. No call on such a file waits for another process, and this check does
/// not wait.
///
/// # Errors
/// [`Error::NotMemfd`].
pub fn require_memory(fd: BorrowedFd<'_>) -> Result<(), Error> {
    memfd::seals(fd).map(drop).map_err(|error| Error::NotMemfd { errno: errno(&error) })
}

/// Accepts memory that the sending process cannot take away: plain memory of a sealed memfd.
///
/// The order matters, because none of these calls may wait for a stranger. Only files in memory
/// have seals. So the first call fails at once on other files, including those of a stranger's FUSE
/// file system. Files of huge pages pass it. But a hole that is punched into such a file releases
/// the reservation of its pages, and the next access faults if no huge page is free. The size of a
/// page is no criterion: plain memory may also consist of huge pages, which the kernel can replace
/// by small ones.
pub(super) fn check(fd: BorrowedFd<'_>) -> Result<(), Error> {
    let seals = memfd::seals(fd).map_err(|error| Error::NotMemfd { errno: errno(&error) })?;
    let (kind, block_size) = memfd::file_system(fd).map_err(system("fstatfs"))?;
    if kind != i64::from(TMPFS_MAGIC) || block_size > PageSize::MAX_ABI as i64 {
        return Err(Error::NotPlainMemory { kind, block_size });
    }
    let missing = SEALS & !seals;
    if missing != 0 {
        return Err(Error::MissingSeals { seals, missing });
    }
    if seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE) != 0 {
        return Err(Error::WriteSealed { seals });
    }
    Ok(())
}
