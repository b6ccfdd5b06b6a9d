//! The trace file of a session (`docs/spec/service.md §18`).

use esatto_schema::TraceConfig;

use super::or_default;
use crate::api::FileId;

const DEFAULT_FILE_WRITE_PERIOD_MS: u32 = 5000;
const MIN_FILE_WRITE_PERIOD_MS: u32 = 100;

/// The file a session streams into.
#[derive(Debug)]
pub(crate) struct OutputFile {
    pub(crate) id: FileId,
    /// The owner has not said yet whether it could be created.
    pub(crate) is_opening: bool,
    pub(crate) bytes_written: u64,
    /// Batches whose result is not known yet.
    pub(crate) writes: usize,
    /// The write pass under way.
    pub(crate) pass: Option<FilePass>,
}

/// A write pass: everything that is in the buffers, batch by batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilePass {
    /// The file is closed afterwards.
    pub(crate) is_final: bool,
    /// The last batch did not hold everything.
    pub(crate) has_more: bool,
}

/// Returns the milliseconds between two write passes.
pub(super) fn write_period_ms(config: &TraceConfig) -> u32 {
    or_default(config.file_write_period_ms, DEFAULT_FILE_WRITE_PERIOD_MS).max(MIN_FILE_WRITE_PERIOD_MS)
}
