//! Perfetto's messages as protozero writers, readers and owned types.
//!
//! Everything is generated from the files under `proto/`, which state the schema in words of our own
//! (`schema.tsv`); `cargo xtask codegen` does it. All messages and enumerations of the package
//! `perfetto.protos` are found here, nested ones in a module named after their parent:
//!
//! ```
//! use esatto_protozero::{HeapBuffer, Owned};
//! use esatto_schema::{TraceConfig, TracePacketReader, TracePacketWriter, trace_config, trace_packet};
//!
//! // Writers append in place.
//! let mut buffer = HeapBuffer::new();
//! let mut packet = TracePacketWriter::from(buffer.message());
//! packet.timestamp(42);
//! packet.for_testing().str("hello");
//! drop(packet);
//!
//! // Readers are views over encoded bytes.
//! let bytes = buffer.to_vec();
//! let packet = TracePacketReader::new(&bytes);
//! assert_eq!(packet.timestamp(), Some(42));
//! assert_eq!(packet.for_testing().unwrap().str(), Some(&b"hello"[..]));
//!
//! // For more than a field or two they look for all of them at once.
//! let packet = packet.decoder();
//! assert_eq!((packet.timestamp(), packet.trusted_uid()), (Some(42), None));
//! assert_eq!(packet.data().map(|field| field.id), Some(trace_packet::field::FOR_TESTING));
//!
//! // Owned types are for what is kept and compared: configurations, requests and their replies.
//! let buffers = vec![trace_config::BufferConfig { size_kb: Some(1024), ..Default::default() }];
//! let config = TraceConfig { buffers, duration_ms: Some(5000), ..TraceConfig::default() };
//! assert_eq!(TraceConfig::decode(&config.encode()), Ok(config));
//! ```
//!
//! Members of a oneof are fields like others: writing two writes two, and all of them can be read; the reader's method named
//! after the oneof tells which comes last. An owned
//! value keeps what it does not know in `unknown_fields` and encodes it behind the rest.
//!
//! # Features
//!
//! Without features there is what every producer, consumer and service needs: the ports, `TraceConfig` and `TraceStats`, `TracePacket`
//! with track events and their descriptors, interned data, clock snapshots and the service's own packets. An owned `DataSourceConfig` keeps
//! what it has no field for in `unknown_fields`, so nothing is lost between peers.
//!
//! - `full`: all other messages, and the fields of that type: the configurations and packets of other data sources (system statistics, processes, GPU, power,
//!   profiling, Android, Chrome, …).
//! - `ftrace`: the events of the kernel's ftrace, as much code again as all the rest; includes `full`.
//! - `descriptor`: `FILE_DESCRIPTOR_SET`, for text formats and reflection.

#![no_std]
#![forbid(unsafe_code)]

mod r#gen;

pub use r#gen::*;

/// A field of `InitializeConnectionResponse` that Perfetto does not have, a varint: the number by which the service's system knows the process of the producer
/// (the credentials of its socket). In a container that is another one than the process knows itself. Peers that do not know the field pass over it.
pub const PEER_PID_FIELD: u32 = 4001;

/// Fields of `TraceStats` that Perfetto does not have, varints, left out while they are 0.
/// Instances of data sources that the session refused, because their producers had their share of
/// them.
pub const INSTANCES_REFUSED_FIELD: u32 = 4001;
/// Triggers that acted, but are not in the trace, and triggers with a delay that did not act,
/// because too many waited.
pub const TRIGGERS_LOST_FIELD: u32 = 4002;
/// Events of other sessions that are not in the trace, because too many waited.
pub const SESSION_EVENTS_LOST_FIELD: u32 = 4003;
/// Writers whose statistics are left out, because all of them would be too long.
pub const WRITERS_LEFT_OUT_FIELD: u32 = 4004;
/// Packet sequences that the session forgot, because their producers had more than their share.
/// Their next packets have a new id.
pub const SEQUENCES_RENAMED_FIELD: u32 = 4005;

/// A field of `TracingServiceEvent` that Perfetto does not have, a `DataSources`: the first of the
/// data sources that were refused since the last such event.
pub const REFUSED_DATA_SOURCES_FIELD: u32 = 4001;

/// A field of `ObservableEvents` that Perfetto does not have, a varint: events that the observer
/// did not take in time and that are lost.
pub const EVENTS_LOST_FIELD: u32 = 4001;

/// All of `proto/` as a serialized `google.protobuf.FileDescriptorSet`, in the order of the imports.
#[cfg(feature = "descriptor")]
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("descriptor.bin");
