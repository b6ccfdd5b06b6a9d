//! Limits on messages to clients (`docs/spec/wire-protocol.md §3`).
//!
//! A frame has 128 KiB. The service cannot send a reply that does not fit into one, so it refuses
//! every input that would make a reply too large.

/// Bytes of a frame, its header included.
const MAX_FRAME_BYTES: usize = 131_072;

/// Bytes of a reply's frame beside its body: header 4, request id 1 + 4, message 1 + 3, two flags
/// 4, body 1 + 3.
const REPLY_BYTES: usize = 21;

/// Bytes of the body of a reply.
pub(crate) const MAX_BODY_BYTES: usize = MAX_FRAME_BYTES - REPLY_BYTES;

/// Bytes of the body of a reply that carries as many entries as fit.
pub(crate) const FULL_BODY_BYTES: usize = MAX_FRAME_BYTES - 128;

/// Bytes of tag and length of a nested message.
const NESTED: usize = 4;

/// Bytes of a DataSourceDescriptor. QueryServiceState tells it (a state with a data source with a
/// descriptor), with the number of its producer. A producer's own frame takes 15 bytes more.
pub(crate) const MAX_DESCRIPTOR_BYTES: usize = MAX_BODY_BYTES - 3 * NESTED - 4;

/// Bytes of the eight fields that the service writes into the config of an instance.
const OWN_CONFIG_BYTES: usize = 58;

/// Bytes of the DataSourceConfig of an entry. SetupDataSource and StartDataSource tell it, with the
/// number of the instance.
pub(crate) const MAX_SOURCE_CONFIG_BYTES: usize = MAX_BODY_BYTES - 2 * NESTED - 11 - OWN_CONFIG_BYTES;

/// Bytes of a TraceConfig. The reply to Attach tells it, with the duration that a trigger gives it.
pub(crate) const MAX_CONFIG_BYTES: usize = MAX_BODY_BYTES - NESTED - 8;
