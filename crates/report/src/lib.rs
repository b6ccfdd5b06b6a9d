//! One self-contained HTML page that shows a trace.
//!
//! The page has a timeline that pans and zooms, search, details of slices and areas, a flame graph,
//! tables, and the losses and errors of the trace above all else. It needs no network: its columns
//! are deflated, and the browser inflates them.
//!
//! [`Report::read`] makes a report of a trace, and [`Report::write`] writes the page.
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
//! let report = esatto_report::Report::read(&buffer.to_vec()[..], "hello.pftrace");
//! let mut page = Vec::new();
//! report.write(&mut page)?;
//! assert!(page.starts_with(b"<!doctype html>"));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Trust
//!
//! Traces may be hostile. The page sets their texts as text, never as markup, and its
//! Content-Security-Policy allows no script but its own and no request at all.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

mod arguments;
mod columns;
mod notices;
mod page;
mod report;
mod stacks;
mod texts;
mod timeline;
mod trace_import;

pub use notices::notices;
pub use report::{Notice, NoticeLevel, Report};
