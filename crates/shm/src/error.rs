//! The crate's error.

use core::fmt;

/// Why a piece of memory cannot serve as shared memory buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A page size outside the ABI, or one a service does not use.
    PageSize {
        /// What was asked for.
        bytes: usize,
    },
    /// A size that is 0, over 32 MiB, smaller than a page or no multiple of it.
    Size {
        /// The size of the memory.
        bytes: usize,
        /// The page size it was to be divided by.
        page_size: usize,
    },
    /// The descriptor is not a memfd: it has no seals at all.
    NotMemfd {
        /// `errno` of `F_GET_SEALS`.
        errno: i32,
    },
    /// The descriptor is a file whose pages can be taken away despite its seals: of huge pages, for
    /// instance.
    NotPlainMemory {
        /// The kind of its file system (`*_MAGIC`).
        kind: i64,
        /// Bytes of a block of it.
        block_size: i64,
    },
    /// Without these seals the peer could shrink the file under our feet.
    MissingSeals {
        /// The seals it has (`F_SEAL_*` bits).
        seals: u32,
        /// The ones that were required and are missing.
        missing: u32,
    },
    /// A write seal: nobody could write into the buffer.
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
                write!(f, "shared memory page size {bytes} is not 4 KiB times a power of two up to 32 KiB")
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

/// The pages of a mapping went away while it was accessed: what was copied from it means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the pages of the shared memory went away")
    }
}

impl std::error::Error for Lost {}
