//! [`Outgoing`]: the calls that an arbiter wants to make.

use super::request::CommitRequest;

/// A call of the service that an arbiter wants to make.
#[derive(Debug)]
pub enum Outgoing {
    /// RegisterTraceWriter.
    RegisterWriter {
        /// The writer.
        writer_id: u16,
        /// Global id of its buffer.
        target_buffer: u16,
    },
    /// CommitData.
    Commit(CommitRequest),
    /// UnregisterTraceWriter.
    UnregisterWriter {
        /// The writer.
        writer_id: u16,
    },
}
