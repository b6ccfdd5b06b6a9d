//! What fits into one message to a client (`docs/spec/wire-protocol.md §3`).
//!
//! A frame has 128 KiB. A reply that does not fit into one cannot be sent, so whatever would make
//! one too large is refused when it comes in.

/// Bytes of a frame, its header included.
const MAX_FRAME_BYTES: usize = 131_072;

/// Bytes of a reply's frame beside its body: header 4, request id 1 + 4, message 1 + 3, two flags
/// 4, body 1 + 3.
const REPLY_BYTES: usize = 21;

/// Bytes of the body of a reply.
pub(crate) const MAX_BODY_BYTES: usize = MAX_FRAME_BYTES - REPLY_BYTES;

/// Bytes of the body of a reply that is filled with as many entries as it takes.
pub(crate) const FULL_BODY_BYTES: usize = MAX_FRAME_BYTES - 128;

/// Tag and length of a message inside of a frame.
const NESTED: usize = 4;

/// Bytes of a DataSourceDescriptor: it is told in QueryServiceState (a state with a data source
/// with a descriptor), with the number of its producer. A producer's own frame takes 15 bytes more.
pub(crate) const MAX_DESCRIPTOR_BYTES: usize = MAX_BODY_BYTES - 3 * NESTED - 4;

/// What the service writes into the config of an instance: seven fields.
const OWN_CONFIG_BYTES: usize = 48;

/// Bytes of the DataSourceConfig of an entry: it is told in SetupDataSource and StartDataSource,
/// with the number of the instance.
pub(crate) const MAX_SOURCE_CONFIG_BYTES: usize = MAX_BODY_BYTES - 2 * NESTED - 11 - OWN_CONFIG_BYTES;

/// Bytes of a TraceConfig: it is told in the reply to Attach, with the duration that a trigger
/// gives it.
pub(crate) const MAX_CONFIG_BYTES: usize = MAX_BODY_BYTES - NESTED - 8;
