//! Sizes of buffers that a service makes or accepts (`docs/spec/shared-memory.md` §3).

use crate::{abi::PageSize, error::Error};

/// Size of a buffer if the producer names none: 256 KiB.
pub const DEFAULT_SIZE: usize = 256 * 1024;
/// Largest buffer: 32 MiB.
pub const MAX_SIZE: usize = 32 * 1024 * 1024;
/// Largest page that a service uses: 32 KiB. The ABI allows 64 KiB.
pub const MAX_PAGE_SIZE: usize = 32 * 1024;

/// Size of a buffer and of its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Size of the buffer in bytes, a multiple of the page size.
    pub size: usize,
    /// Size of a page.
    pub page_size: PageSize,
}

impl Geometry {
    /// 256 KiB in pages of 4 KiB.
    pub const DEFAULT: Self = Self { size: DEFAULT_SIZE, page_size: PageSize::DEFAULT };

    /// Returns the sizes that a service chooses if a producer wants these, in bytes. 0 means "no
    /// wish".
    ///
    /// Values that are too large are clamped. If the two do not fit together, both get their
    /// defaults.
    ///
    /// ```
    /// use esatto_shm::size::Geometry;
    /// let two_mib = Geometry::negotiate(2 << 20, 64 << 10);
    /// assert_eq!((two_mib.size, two_mib.page_size.bytes()), (2 << 20, 32 << 10));
    /// assert_eq!(Geometry::negotiate(10 << 10, 4 << 10), Geometry::DEFAULT);
    /// ```
    pub fn negotiate(wanted_size: usize, wanted_page_size: usize) -> Self {
        let page = if wanted_page_size == 0 { PageSize::MIN } else { wanted_page_size };
        let size = if wanted_size == 0 { DEFAULT_SIZE } else { wanted_size };
        Self::exact(size.min(MAX_SIZE), page.min(MAX_PAGE_SIZE)).unwrap_or(Self::DEFAULT)
    }

    /// Checks the values without changing them. This is the rule for memory that a producer
    /// provides, where 0 is not accepted.
    ///
    /// # Errors
    /// [`Error::PageSize`] or [`Error::Size`], with the value that does not fit.
    pub fn exact(size: usize, page_size: usize) -> Result<Self, Error> {
        let page = PageSize::new(page_size)?;
        if page_size > MAX_PAGE_SIZE || !page_size.is_power_of_two() {
            return Err(Error::PageSize { bytes: page_size });
        }
        if size < page_size || size > MAX_SIZE || size % page_size != 0 {
            return Err(Error::Size { bytes: size, page_size });
        }
        Ok(Self { size, page_size: page })
    }

    /// Returns the number of pages.
    pub fn pages(self) -> usize {
        self.size / self.page_size.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negotiation_is_the_table_of_the_spec() {
        const K: usize = 1024;
        let table = [
            ((0, 0), (256, 4)),
            ((16, 4), (16, 4)),
            ((2048, 64), (2048, 32)),
            ((65536, 32), (32768, 32)),
            ((128, 12), (256, 4)),
            ((10, 4), (256, 4)),
            ((4, 8), (256, 4)),
            ((0, 32), (256, 32)),
        ];
        for ((size, page), (want_size, want_page)) in table {
            let got = Geometry::negotiate(size * K, page * K);
            assert_eq!((got.size / K, got.page_size.bytes() / K), (want_size, want_page));
        }
    }

    #[test]
    fn memory_of_a_producer_must_fit_exactly() {
        for (size, page) in [(0, 4096), (16384, 0), (16384, 12288), (65536, 65536), (10240, 4096)] {
            assert!(Geometry::exact(size, page).is_err(), "{size}/{page}");
        }
        assert!(Geometry::exact(MAX_SIZE + 32768, 32768).is_err());
        assert_eq!(Geometry::exact(16384, 4096).unwrap().pages(), 4);
    }
}
