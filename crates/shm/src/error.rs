//! The crate's error.

use core::fmt;

/// Reason why memory cannot serve as a shared memory buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A page size outside the ABI, or one a service does not use.
    PageSize {
        /// The size that was asked for.
        bytes: usize,
    },
    /// A size that is 0, more than 32 MiB, less than a page, or no multiple of a page.
    Size {
        /// The size of the memory.
        bytes: usize,
        /// The page size in bytes.
        page_size: usize,
    },
    /// The descriptor is not a memfd: it has no seals at all.
    NotMemfd {
        /// `errno` of `F_GET_SEALS`.
        errno: i32,
    },
    /// The descriptor is a file whose pages can be taken away despite its seals, for instance one
    /// of huge pages.
    NotPlainMemory {
        /// The kind of its file system (`*_MAGIC`).
        kind: i64,
        /// Bytes of a block of it.
        block_size: i64,
    },
    /// The file lacks seals, so that the peer could shrink it while this process uses it.
    MissingSeals {
        /// The seals it has (`F_SEAL_*` bits).
        seals: u32,
        /// The ones that were required and are missing.
        missing: u32,
    },
    /// The file is sealed against writing, so that no process could write into the buffer.
    WriteSealed {
        /// The seals it has (`F_SEAL_*` bits).
        seals: u32,
    },
    /// A system call failed.
    System {
        /// The call.
        call: &'static str,
        /// Its `errno`.
        errno: i32,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::PageSize { bytes } => {
                write!(f, "shared memory page size {bytes} is not a power of two from 4096 to 32768")
            }
            Self::Size { bytes, page_size } => write!(
                f,
                "shared memory size {bytes} is not between one page of {page_size} bytes and \
                 32 MiB in whole pages"
            ),
            Self::NotMemfd { errno } => {
                write!(f, "shared memory descriptor is not a memfd (F_GET_SEALS: errno {errno})")
            }
            Self::NotPlainMemory { kind, block_size } => write!(
                f,
                "shared memory is not made of ordinary pages (file system {kind:#x}, blocks of {block_size} bytes); \
                 make it by memfd_create without MFD_HUGETLB"
            ),
            Self::MissingSeals { seals, missing } => {
                write!(f, "shared memory has seals {seals:#x} and lacks {missing:#x}")
            }
            Self::WriteSealed { seals } => {
                write!(f, "shared memory is sealed against writing (seals {seals:#x})")
            }
            Self::System { call, errno } => {
                write!(f, "{call} of the shared memory failed: ")?;
                fmt::Display::fmt(&std::io::Error::from_raw_os_error(errno), f)
            }
        }
    }
}

impl std::error::Error for Error {}

/// The pages of a mapping were taken away during an access. The bytes copied from it are worthless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the pages of the shared memory were taken away")
    }
}

impl std::error::Error for Lost {}
