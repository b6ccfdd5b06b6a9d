//! [`PageReader`]: takes pages from the ring buffer of a CPU.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::page_layout::PageLayout;
use super::parse_status::ParseStatus;

/// Pages that are encoded together.
pub(crate) const PAGES_PER_BATCH: usize = 32;

/// The pipe of a CPU. Each read takes one page out of the ring buffer. To map the ring, or to
/// splice from it, costs more CPU time (`docs/spec/probes.md` §4).
#[derive(Debug)]
pub(crate) struct PageReader {
    cpu: u32,
    pipe: File,
}

/// Pages of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Number of whole pages.
    pub(crate) pages: usize,
    /// Why no more pages follow; `None` if there may be more.
    pub(crate) end: Option<End>,
}

/// Why there are no more pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The reader has reached the writer.
    CaughtUp,
    Failed(ParseStatus),
}

impl PageReader {
    /// `pipe` is `trace_pipe_raw`, which does not wait for events.
    pub(crate) const fn new(cpu: u32, pipe: File) -> Self {
        Self { cpu, pipe }
    }

    pub(crate) const fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Reads pages into `buffer`, as many as there are and fit. `is_first` tells that the pages are
    /// the first of a read of all CPUs.
    pub(crate) fn read(&mut self, layout: &PageLayout, buffer: &mut [u8], is_first: bool) -> Batch {
        for (number, page) in buffer.chunks_exact_mut(layout.page_size()).enumerate() {
            let end = |end| Batch { pages: number, end: Some(end) };
            match rustix::io::read(&self.pipe, &mut *page) {
                Ok(0) => return end(End::CaughtUp),
                Ok(len) if len < page.len() => return end(End::Failed(ParseStatus::PartialPageRead)),
                Ok(_) => {}
                Err(Errno::INTR) => return Batch { pages: number, end: None },
                // No data; no memory; another reader; the CPU is offline.
                Err(Errno::AGAIN | Errno::NOMEM | Errno::BUSY | Errno::NODEV) => return end(End::CaughtUp),
                Err(why) => {
                    log::debug!("cannot read events of CPU {}: {}", self.cpu, io::Error::from(why));
                    return end(End::Failed(ParseStatus::UnexpectedReadError));
                }
            }
            // The writer makes pages full: this is the one that it writes to. To read the next
            // event by itself would cost as much as a whole page.
            let is_partial = layout.split(page).is_ok_and(|(_, payload)| payload.len() < page.len() / 2);
            if is_partial && !(is_first && number == 0) {
                return Batch { pages: number + 1, end: Some(End::CaughtUp) };
            }
        }
        Batch { pages: buffer.len() / layout.page_size(), end: None }
    }
}

impl AsFd for PageReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// A page whose payload has so many bytes.
    fn page(len: u64) -> Vec<u8> {
        let mut page = vec![0; 4096];
        page[8..16].copy_from_slice(&len.to_le_bytes());
        page
    }

    /// Reads pages of a pipe that has these bytes.
    fn read(bytes: &[u8], is_first: bool) -> Batch {
        let (receiver, mut sender) = std::os::unix::net::UnixStream::pair().expect("sockets");
        receiver.set_nonblocking(true).expect("a socket");
        sender.write_all(bytes).expect("room");
        let mut reader = PageReader::new(0, File::from(std::os::fd::OwnedFd::from(receiver)));
        let mut buffer = vec![0; 4 * 4096];
        reader.read(&PageLayout::FALLBACK, &mut buffer, is_first)
    }

    #[test]
    fn a_read_ends_where_the_writer_is() {
        let full = page(4000);
        let caught_up = |pages| Batch { pages, end: Some(End::CaughtUp) };
        assert_eq!(read(&[], true), caught_up(0));
        assert_eq!(read(&full.repeat(2), true), caught_up(2));
        assert_eq!(read(&full.repeat(4), true), Batch { pages: 4, end: None }, "the buffer is full");
        assert_eq!(read(&[full.clone(), page(100), full.clone()].concat(), true), caught_up(2), "a page half empty");
        assert_eq!(read(&[page(100), full.clone()].concat(), true), caught_up(2), "the first one may be");
        assert_eq!(read(&[page(100), full].concat(), false), caught_up(1));
    }

    #[test]
    fn a_part_of_a_page_is_an_error() {
        let batch = read(&page(4000)[..100], true);
        assert_eq!(batch, Batch { pages: 0, end: Some(End::Failed(ParseStatus::PartialPageRead)) });
    }
}
