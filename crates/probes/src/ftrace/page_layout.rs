//! [`PageLayout`]: where the header of a page has its fields.

use super::format::fields;

/// Mask of the payload's length in `commit`: bits 0–26.
const LENGTH_MASK: u32 = (1 << 27) - 1;
/// Bit of `commit`: the number of lost events follows the payload.
const COUNT_IS_STORED: u32 = 1 << 30;
/// Bit of `commit`: events were lost before this page.
const EVENTS_WERE_LOST: u32 = 1 << 31;

/// Largest offset of a field in a page header.
const MAX_HEADER_BYTES: usize = 256;
/// Largest page. The kernel makes sub-buffers of up to 128 pages, which are at most 64 KiB each.
const MAX_PAGE_BYTES: usize = 8 << 20;

/// Layout of the header of a page, from `events/header_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageLayout {
    timestamp_at: usize,
    commit_at: usize,
    /// Size of `commit` and of the number of lost events: a `long` of the kernel.
    long_size: usize,
    data_at: usize,
    /// Size of the page, header included.
    page_size: usize,
}

/// Header of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageHeader {
    /// Time at which the page begins.
    pub(crate) timestamp: u64,
    /// Events that the kernel overwrote before this page.
    pub(crate) lost: LostEvents,
}

/// Events that the kernel overwrote before a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LostEvents {
    None,
    /// Some; the page had no room for their number.
    Some,
    Number(u64),
}

impl PageLayout {
    /// Layout of a 64-bit kernel with pages of 4 KiB, for when the file cannot be read.
    pub(crate) const FALLBACK: Self =
        Self { timestamp_at: 0, commit_at: 8, long_size: 8, data_at: 16, page_size: 4096 };

    /// Parses `events/header_page`. Returns `None` if it lacks a field.
    pub(crate) fn parse(header_page: &[u8]) -> Option<Self> {
        let mut layout = Self { timestamp_at: 0, commit_at: 0, long_size: 0, data_at: 0, page_size: 0 };
        for field in fields(header_page) {
            let (at, size) = (field.offset as usize, field.size as usize);
            if at > MAX_HEADER_BYTES || size > MAX_PAGE_BYTES {
                continue;
            }
            match field.name {
                "timestamp" if field.size == 8 => layout.timestamp_at = at,
                "commit" if matches!(field.size, 4 | 8) => {
                    layout.commit_at = at;
                    layout.long_size = size;
                }
                "data" => {
                    layout.data_at = at;
                    layout.page_size = at + size;
                }
                _ => {}
            }
        }
        let header = (layout.timestamp_at + 8).max(layout.commit_at + layout.long_size);
        let is_whole = layout.long_size != 0 && layout.data_at >= header;
        (is_whole && layout.page_size > layout.data_at).then_some(layout)
    }

    /// Returns the layout with another size of pages, such as that of larger sub-buffers.
    pub(crate) fn with_page_size(self, page_size: usize) -> Self {
        Self { page_size: page_size.clamp(self.data_at + 1, MAX_PAGE_BYTES), ..self }
    }

    /// Returns the size of a page in bytes.
    pub(crate) const fn page_size(&self) -> usize {
        self.page_size
    }

    /// Splits a page into its header and its events.
    ///
    /// # Errors
    ///
    /// The time of the page, as far as it has one, if it has no payload or more than fits.
    pub(crate) fn split<'p>(&self, page: &'p [u8]) -> Result<(PageHeader, &'p [u8]), u64> {
        let timestamp = read_u64(page, self.timestamp_at).ok_or(0_u64)?;
        let commit = read_u32(page, self.commit_at).ok_or(timestamp)?;
        let len = (commit & LENGTH_MASK) as usize;
        let data = page.get(self.data_at..).ok_or(timestamp)?;
        let payload = data.get(..len).filter(|payload| !payload.is_empty()).ok_or(timestamp)?;
        let lost = match commit {
            _ if commit & EVENTS_WERE_LOST == 0 => LostEvents::None,
            _ if commit & COUNT_IS_STORED == 0 => LostEvents::Some,
            _ => match self.long_size {
                4 => read_u32(data, len).map(u64::from),
                _ => read_u64(data, len),
            }
            .map_or(LostEvents::Some, LostEvents::Number),
        };
        Ok((PageHeader { timestamp, lost }, payload))
    }
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
