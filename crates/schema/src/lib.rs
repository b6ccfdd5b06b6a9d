//! Perfetto's messages as protozero writers, readers and owned types.
//!
//! `cargo xtask codegen` generates all code from the files under `proto/`, which were written from
//! `schema.tsv`. The crate has all messages and enumerations of the package
//! `perfetto.protos`. Nested ones are in a module named after their parent:
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
//! // To read more than a field or two, a decoder finds all of them in one pass.
//! let packet = packet.decoder();
//! assert_eq!((packet.timestamp(), packet.trusted_uid()), (Some(42), None));
//! assert_eq!(packet.data().map(|field| field.id), Some(trace_packet::field::FOR_TESTING));
//!
//! // Owned types are for data that a program keeps and compares: configurations, requests, replies.
//! let buffers = vec![trace_config::BufferConfig { size_kb: Some(1024), ..Default::default() }];
//! let config = TraceConfig { buffers, duration_ms: Some(5000), ..TraceConfig::default() };
//! assert_eq!(TraceConfig::decode(&config.encode()), Ok(config));
//! ```
//!
//! Members of a oneof are ordinary fields. A writer that writes two of them encodes both, and a
//! reader can read both. The reader's method with the name of the oneof returns the last one. An
//! owned value keeps unknown fields in `unknown_fields` and encodes them after the others.
//!
//! # Features
//!
//! Without features the crate has the messages that every producer, consumer and service needs: the
//! ports, `TraceConfig` and `TraceStats`, `TracePacket` with track events and their descriptors,
//! interned data, clock snapshots and the service's own packets. An owned `DataSourceConfig` keeps
//! other fields in `unknown_fields`, so nothing is lost between peers.
//!
//! - `full`: all other messages and the fields of their types. These are configurations and packets
//!   of other data sources (system statistics, processes, GPU, power, profiling, Android, Chrome,
//!   …).
//! - `ftrace`: the events of the kernel's ftrace, which are as much code as all the rest. Includes
//!   `full`.
//! - `descriptor`: `FILE_DESCRIPTOR_SET`, for text formats and reflection.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::std_instead_of_core,
        clippy::std_instead_of_alloc,
        clippy::alloc_instead_of_core,
        clippy::print_stdout,
        clippy::print_stderr,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )
)]

mod r#gen;

pub use r#gen::*;

/// A field of `InitializeConnectionResponse` that Perfetto does not have, a varint: the id of the
/// producer's process in the service's system, from the credentials of its socket. In a container,
/// the process itself has another id. Peers that do not know the field skip it.
pub const PEER_PID_FIELD: u32 = 4001;

/// A field of `TraceStats` that Perfetto does not have, a varint, left out while it is 0: instances
/// of data sources that the session refused, because their producers had used up their share of
/// instances.
pub const INSTANCES_REFUSED_FIELD: u32 = 4001;
/// As [`INSTANCES_REFUSED_FIELD`]: triggers that acted but are not in the trace, and triggers with
/// a delay that did not act. Too many were waiting.
pub const TRIGGERS_LOST_FIELD: u32 = 4002;
/// As [`INSTANCES_REFUSED_FIELD`]: events of other sessions that are not in the trace, because too
/// many were waiting.
pub const SESSION_EVENTS_LOST_FIELD: u32 = 4003;
/// As [`INSTANCES_REFUSED_FIELD`]: writers whose statistics are left out, because the statistics of
/// all would be too long.
pub const WRITERS_LEFT_OUT_FIELD: u32 = 4004;
/// As [`INSTANCES_REFUSED_FIELD`]: packet sequences that the session forgot, because their
/// producers had more than their share. The next packet of such a sequence has a new id.
pub const SEQUENCES_RENAMED_FIELD: u32 = 4005;
/// As [`INSTANCES_REFUSED_FIELD`]: triggers that did not act because of `max_per_24_h`.
pub const TRIGGERS_LIMITED_FIELD: u32 = 4006;
/// As [`INSTANCES_REFUSED_FIELD`]: triggers for clones whose delay is not over.
pub const TRIGGERS_DELAYED_FIELD: u32 = 4007;

/// A field of `TraceStats.BufferStats` that Perfetto does not have, a varint, left out while it is
/// 0: gaps between two packets of a writer that found the shared memory full.
/// `trace_writer_packet_loss` counts the gaps that begin within a packet.
pub const GAPS_BETWEEN_PACKETS_FIELD: u32 = 4001;
/// As [`GAPS_BETWEEN_PACKETS_FIELD`]: packets that were read after a loss, whatever its reason.
pub const PACKETS_AFTER_LOSS_FIELD: u32 = 4002;
/// As [`GAPS_BETWEEN_PACKETS_FIELD`]: the part of `patches_failed` whose chunks a ring has
/// overwritten.
pub const PATCHES_OF_OVERWRITTEN_FIELD: u32 = 4003;

/// A field of `TracingServiceEvent` that Perfetto does not have, a `DataSources`: the first of the
/// data sources that were refused since the last event with this field.
pub const REFUSED_DATA_SOURCES_FIELD: u32 = 4001;
/// A field of `TracingServiceEvent` that Perfetto does not have, a `DataSources`: the data sources
/// that did not acknowledge their stop in time.
pub const SLOW_STOPPING_DATA_SOURCES_FIELD: u32 = 4002;
/// A field of `TracingServiceEvent` that Perfetto does not have, a varint: the machine id that two
/// relays had at the same time. If they run on two machines, the trace shows them as one.
pub const SHARED_MACHINE_ID_FIELD: u32 = 4003;
/// A field of `TracingServiceEvent` that Perfetto does not have, beside
/// [`SHARED_MACHINE_ID_FIELD`]: the machine names of the two relays, one field each.
pub const SHARED_MACHINE_NAMES_FIELD: u32 = 4005;
/// A field of `TracingServiceEvent` that Perfetto does not have, a varint: the id of a machine
/// whose relay disconnected while the session recorded programs of it.
pub const RELAY_DISCONNECTED_FIELD: u32 = 4004;
/// A field of `TracingServiceEvent` that Perfetto does not have, a `DataSources`: the first of the
/// data sources whose producers disconnected before they had started them for the session, and
/// without data for it. A producer that had not yet offered any has no data source name.
pub const UNREACHED_DATA_SOURCES_FIELD: u32 = 4007;

/// A field of `TracingServiceEvent` that Perfetto does not have, a `DataSources`: data sources of a
/// machine whose producer disconnected while they recorded for the session. Their later data is
/// missing, until a producer offers them again.
pub const ENDED_DATA_SOURCES_FIELD: u32 = 4006;

/// A field of `DataSourceConfig` that Perfetto does not have, a varint that the service sets: the
/// bytes of the ring buffer that the data source writes into.
pub const RING_BYTES_FIELD: u32 = 4001;

/// A field of `FtraceEventBundle` that Perfetto does not have, a varint beside `lost_events`: how
/// many events the kernel overwrote before the bundle. It is left out if the kernel had no room to
/// say so.
pub const LOST_EVENTS_NUMBER_FIELD: u32 = 4001;

/// A field of `TrackDescriptor` that Perfetto does not have, a message with the fields of
/// [`start_times`]: on the track of a process, when it connected and began to be recorded.
pub const START_TIMES_FIELD: u32 = 4001;

/// Fields of the message in [`START_TIMES_FIELD`], all varints: nanoseconds of `CLOCK_BOOTTIME`.
pub mod start_times {
    /// When the program first connected to the service.
    pub const CONNECTED_NS: u32 = 1;
    /// When the program could begin to record: it had waited for a session if it wanted to.
    pub const READY_NS: u32 = 2;
    /// When this session, or startup tracing for it, began to record the program.
    pub const ENABLED_NS: u32 = 3;
}

/// A field of `TracingServiceState` that Perfetto does not have, a message with the fields of
/// [`lockdown`], left out unless the service is in lockdown mode.
pub const LOCKDOWN_FIELD: u32 = 4001;

/// Fields of the message in [`LOCKDOWN_FIELD`], all varints.
pub mod lockdown {
    /// The user whose producers are served; those of other users are not.
    pub const UID: u32 = 1;
    /// The user whose session set the mode.
    pub const SET_BY_UID: u32 = 2;
    /// Connections of producers that the service has refused since then.
    pub const REFUSED: u32 = 3;
}

/// A field of `TracingServiceState.TracingSession` that Perfetto does not have, a varint: the
/// process of the consumer, unless the session is detached.
pub const CONSUMER_PID_FIELD: u32 = 4001;

/// A field of `TracingServiceState.TracingSession` that Perfetto does not have, bytes: the key with
/// which the user of a detached session can attach it.
pub const DETACH_KEY_FIELD: u32 = 4002;

/// A field of `QueryServiceStateRequest` that Perfetto does not have, a varint: with 1, the service
/// tells the statistics of the sessions ([`SESSION_STATS_FIELD`]) instead of its state.
pub const SESSION_STATS_WANTED_FIELD: u32 = 4001;

/// A field of `TracingServiceState` that Perfetto does not have, repeated, a message with the
/// fields of [`session_stats`].
pub const SESSION_STATS_FIELD: u32 = 4003;

/// Fields of the message in [`SESSION_STATS_FIELD`].
pub mod session_stats {
    /// A varint: `id` of the `TracingSession`.
    pub const SESSION_ID: u32 = 1;
    /// The `TraceStats` of the session.
    pub const STATS: u32 = 2;
    /// A `TraceConfig` with the parts of the session's config that explain the statistics: size and
    /// fill policy of each buffer, and `write_into_file`.
    pub const CONFIG: u32 = 3;
}

/// A field of `TracingServiceState` that Perfetto does not have, repeated, a message with the
/// fields of [`departed`]: producers that disconnected since the consumer's session began. A
/// consumer with a session gets it at least once, others do not.
pub const DEPARTED_FIELD: u32 = 4002;

/// Fields of the message in [`DEPARTED_FIELD`]. Data sources follow their producer.
pub mod departed {
    /// A `Producer`, as in field 1 of the state.
    pub const PRODUCER: u32 = 1;
    /// A `DataSource`, as in field 2 of the state.
    pub const DATA_SOURCE: u32 = 2;
    /// A varint: producers that disconnected and that the service has forgotten.
    pub const FORGOTTEN: u32 = 3;
    /// A varint about the last producer, left out if the session has data of it, or did not want
    /// any: [`UNREACHED`](super::UNREACHED) or [`WITHOUT_DATA`](super::WITHOUT_DATA).
    pub const MISSED: u32 = 4;
}

/// Value of [`departed::MISSED`]: the producer disconnected before it had started its data sources
/// for the session.
pub const UNREACHED: u64 = 1;
/// Value of [`departed::MISSED`]: the producer connected during the session and had started its
/// data sources, but gave no data.
pub const WITHOUT_DATA: u64 = 2;

/// A field of `TracePacket` that Perfetto does not have, a message with the fields of
/// [`data_source_problem`]: a data source of the machine did not record, or not everything. The
/// packet is in the buffer of the data source. For `linux.ftrace`, `FtraceStats` also has the
/// reason.
pub const DATA_SOURCE_PROBLEM_FIELD: u32 = 4001;

/// Fields of the message in [`DATA_SOURCE_PROBLEM_FIELD`], both texts.
pub mod data_source_problem {
    /// Name of the data source.
    pub const DATA_SOURCE_NAME: u32 = 1;
    /// The failure, its reason, and the remedy.
    pub const REASON: u32 = 2;
}

/// A field of `ObservableEvents` that Perfetto does not have, a varint: events that were lost
/// because the observer did not take them in time.
pub const EVENTS_LOST_FIELD: u32 = 4001;

/// All of `proto/` as a serialized `google.protobuf.FileDescriptorSet`, in the order of the
/// imports.
#[cfg(feature = "descriptor")]
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("descriptor.bin");
