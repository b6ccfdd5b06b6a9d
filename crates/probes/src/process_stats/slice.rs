//! [`Slice`]: the work of one turn.

/// A turn's part of a scan. Between two slices the worker does other things, so that a machine with
/// many processes does not delay the events of the kernel.
#[derive(Debug)]
pub(crate) struct Slice {
    left: u32,
    scan_is_done: bool,
}

/// Files that are read in a slice: 1 to 3 ms.
const READS_PER_SLICE: u32 = 512;

impl Slice {
    pub(crate) const fn new() -> Self {
        Self { left: READS_PER_SLICE, scan_is_done: false }
    }

    /// Notes that so many files were read.
    pub(crate) const fn spend(&mut self, reads: u32) {
        self.left = self.left.saturating_sub(reads);
    }

    pub(crate) const fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Notes that nothing is left to be read.
    pub(crate) const fn finish_scan(&mut self) {
        self.scan_is_done = true;
    }

    pub(crate) const fn scan_is_done(&self) -> bool {
        self.scan_is_done
    }
}
