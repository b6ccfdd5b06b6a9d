//! The trace file of a session (`docs/spec/service.md §18`).

use esatto_schema::TraceConfig;

use super::{Session, or_default};
use crate::api::FileId;

const DEFAULT_FILE_WRITE_PERIOD_MS: u32 = 5000;
const MIN_FILE_WRITE_PERIOD_MS: u32 = 100;

/// The trace file of a session, if its config asks for one.
#[derive(Debug, Default)]
pub(crate) enum TraceFile {
    /// The session keeps its data in the buffers.
    #[default]
    Unused,
    /// The session streams into this file.
    Open(OutputFile),
    /// The session writes nothing more into its file.
    Closed(FileEnd),
}

/// Result of writing a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FileEnd {
    /// All data of the session are in it.
    #[default]
    Complete,
    /// It has reached `max_file_size_bytes`.
    Full,
    /// It could not be written to its end. The session has the error.
    Failed,
}

impl TraceFile {
    /// Tells whether the data of the session are in a file, so that consumers cannot read them.
    pub(crate) fn is_used(&self) -> bool {
        !matches!(self, Self::Unused)
    }

    /// Returns the file while the session streams into it.
    pub(crate) fn open(&self) -> Option<&OutputFile> {
        match self {
            Self::Open(file) => Some(file),
            Self::Unused | Self::Closed(_) => None,
        }
    }

    /// Returns the file while the session streams into it.
    pub(crate) fn open_mut(&mut self) -> Option<&mut OutputFile> {
        match self {
            Self::Open(file) => Some(file),
            Self::Unused | Self::Closed(_) => None,
        }
    }

    /// Ends the stream, and returns the file.
    pub(crate) fn close(&mut self) -> Option<OutputFile> {
        let end = self.open()?.end;
        match core::mem::replace(self, Self::Closed(end)) {
            Self::Open(file) => Some(file),
            Self::Unused | Self::Closed(_) => None,
        }
    }

    /// Returns the result of writing the file, as far as it is known.
    pub(crate) fn end(&self) -> Option<FileEnd> {
        match self {
            Self::Unused => None,
            Self::Open(file) => Some(file.end),
            Self::Closed(end) => Some(*end),
        }
    }
}

/// A file that a session streams into.
#[derive(Debug)]
pub(crate) struct OutputFile {
    pub(crate) id: FileId,
    pub(crate) state: FileState,
    pub(crate) bytes_written: u64,
    /// Batches that the owner has not confirmed yet.
    pub(crate) writes: usize,
    /// The file gets all data: commits wait while the buffers are full (`back_pressure.rs`).
    pub(crate) gets_all: bool,
    /// Losses of the session before the last pass ended.
    pub(crate) losses: u64,
    pub(crate) end: FileEnd,
}

/// State of a file that a session streams into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileState {
    /// The owner has not yet said if it could create the file.
    Opening,
    Idle,
    /// A write pass is under way.
    Writing(FilePass),
}

/// A write pass: it writes everything that is in the buffers, batch by batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilePass {
    /// The service closes the file afterwards.
    pub(crate) is_final: bool,
    /// The last batch did not hold everything.
    pub(crate) has_more: bool,
}

impl OutputFile {
    /// Creates a file that the owner has yet to open, after this many bytes.
    pub(crate) fn opening(id: FileId, bytes_written: u64) -> Self {
        Self {
            id,
            state: FileState::Opening,
            bytes_written,
            writes: 0,
            gets_all: false,
            losses: 0,
            end: FileEnd::Complete,
        }
    }

    /// Returns the write pass under way.
    pub(crate) fn pass(&self) -> Option<FilePass> {
        match self.state {
            FileState::Writing(pass) => Some(pass),
            FileState::Opening | FileState::Idle => None,
        }
    }
}

impl Session {
    pub(crate) fn file_write_period_ms(&self) -> u32 {
        write_period_ms(&self.config)
    }
}

/// Returns the milliseconds between two write passes.
pub(super) fn write_period_ms(config: &TraceConfig) -> u32 {
    or_default(config.file_write_period_ms, DEFAULT_FILE_WRITE_PERIOD_MS).max(MIN_FILE_WRITE_PERIOD_MS)
}
