//! Reader for Perfetto traces.
//!
//! It offers four views of the same bytes:
//!
//! - [`PacketReader`] splits a file into packets, also if it is gzipped or has compressed packets.
//!   It reports where and why a file is torn or foreign.
//! - [`Engine`] reads a trace into [`tables`]: processes, threads, tracks, slices, counters,
//!   scheduling and so on, with the names and the content that the trace processor gives them.
//! - [`Trace`] has the events one by one, with all interned values resolved and all clocks
//!   converted, and the slices, flows, tracks, processes and threads of the engine as values. It is
//!   meant for tests and small tools; [`events`] is a short way to its events.
//! - [`Summary`] counts the content of a trace, and shows it as text
//!   ([`Display`](core::fmt::Display)) or as JSON ([`Summary::to_json`]).
//!
//! ```
//! use esatto_protozero::HeapBuffer;
//! use esatto_schema::{TracePacketWriter, track_event};
//!
//! // A hand-made trace of one event, on the default track.
//! let mut buffer = HeapBuffer::new();
//! let mut trace = buffer.message();
//! let mut packet = TracePacketWriter::from(trace.begin(1));
//! packet.timestamp(1000).trusted_packet_sequence_id(1);
//! packet.track_event().r#type(track_event::Type::TYPE_INSTANT).name("hello");
//! drop(packet);
//! drop(trace);
//!
//! let summary = esatto_trace::Summary::read(&buffer.to_vec()[..]);
//! assert_eq!(summary.slices.instants, 1);
//! assert_eq!(summary.packets_by_type["track_event"].packets, 1);
//! ```
//!
//! If a trace breaks rules of the format, the reader counts them and continues. The results agree
//! with those of the official trace processor for the same file (`docs/spec/track-event.md` §24).
//! Files may be hostile: nesting and inflated sizes are bounded, and no input panics.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

mod clock_conversion;
mod debug_annotation;
mod engine;
mod envelope;
mod error;
pub mod escape;
mod event_type;
mod field_names;
mod ftrace_report;
mod loss_causes;
mod machines;
mod merge_plan;
mod packet_reader;
mod packet_sequence;
mod packet_times;
mod packet_writer;
mod problems;
mod service_report;
mod session_progress;
pub mod sorter;
mod string_table;
mod summary;
pub mod tables;
mod trace;

pub use clock_conversion::clock_name;
pub use debug_annotation::{Annotation, AnnotationValue};
pub use engine::{Engine, MAX_PARTS, Part, ReadOptions};
pub use error::{Error, Place};
pub use event_type::{CounterValue, EventType};
pub use ftrace_report::FtraceReport;
pub use merge_plan::{AttributeValue, ClockRule, FileRules, MergePlan, TraceTime, clock_id};
pub use packet_reader::{
    MAX_COMPRESSED_NESTING, MAX_INFLATED_BYTES, MAX_PACKET_BYTES, MAX_WORK_RATIO, MIN_WORK, Packet, PacketReader,
    packets,
};
pub use packet_times::{PacketTimes, TimedPacket};
pub use packet_writer::write_packet;
pub use problems::{MISSING_ANCESTORS, UNMATCHED_ENDS};
pub use service_report::{BufferStats, DataSourceProblem, NamedDataSource, ServiceEvent, SystemInfo, TraceStats};
pub use session_progress::SessionProgress;
pub use string_table::{Strings, Symbol};
pub use summary::{
    ClockSummary, CounterSummary, Loss, MachineSummary, NameSummary, PartSummary, ProcessSummary, Reading,
    SequenceSummary, SliceSummary, Summary, ThreadSummary, TrackSummary, TypeSummary,
};
pub use trace::{Event, Flow, Process, Slice, Thread, Trace, Track, TrackType, events};
