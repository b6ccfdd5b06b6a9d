//! The way of a packet from a buffer to a consumer or a file: check, trusted fields, filter, compression, sink.

pub(crate) mod compression;
pub(crate) mod packet_check;
pub(crate) mod packet_sink;
pub(crate) mod read_pass;
pub(crate) mod sequence_ids;
pub(crate) mod trace_filter;
pub(crate) mod trusted_fields;
