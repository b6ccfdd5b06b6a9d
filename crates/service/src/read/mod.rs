//! Steps of a packet from a buffer to a consumer or a file: check, trusted fields, filter,
//! compression, sink.

pub(crate) mod compression;
pub(crate) mod file_sink;
pub(crate) mod packet_check;
pub(crate) mod packet_sink;
pub(crate) mod read_pass;
pub(crate) mod sequence_ids;
pub(crate) mod trace_filter;
pub(crate) mod trusted_fields;

use compression::Codec;
use sequence_ids::SequenceIds;
use trace_filter::TraceFilter;

/// State of a session that only read passes use.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The filter of the config. A read pass takes it out and puts it back.
    pub(crate) filter: Option<TraceFilter>,
    /// Compression of the packets of a pass.
    pub(crate) codec: Option<Codec>,
    pub(crate) sequence_ids: SequenceIds,
    /// Packets that the check refused.
    pub(crate) invalid_packets: u64,
    /// A consumer has read the session while it recorded.
    pub(crate) is_done_while_recording: bool,
}
