//! Events of the kernel (`linux.ftrace`): pages of the ring buffers become packets.
//!
//! [`Ftrace`] is the data source. It has a `Recording` for each tracefs instance, with a `Tracer`
//! for the settings of the instance and a `PageReader` for each CPU.
//!
//! The parsers do no I/O. [`EventTable`] knows the layout of each event, from its `format` file.
//! A [`SourceEncoder`] writes the events that one data source wants as packets.
//!
//! ```text
//!   page ─ PageEvents ─▶ event id, data ─ EventLayout ─▶ fields of the packet
//!          (page.rs)                      (event_layout.rs, from format.rs and schema.rs)
//! ```

mod atrace_categories;
mod changes;
mod compact_sched;
mod cpu_stats;
mod encode_event;
mod event_layout;
mod event_selection;
mod event_set;
mod event_table;
mod field_copy;
mod field_kind;
mod format;
mod frozen_ftrace;
mod ftrace_request;
mod ftrace_source;
mod ftrace_statistics;
pub mod fuzz;
mod generic_event;
mod instance_lock;
mod journal;
mod kernel_symbols;
mod kprobe;
mod page;
mod page_layout;
mod page_reader;
mod parse_status;
mod print_filter;
mod printk_formats;
mod recording;
mod schema;
mod seen_tids;
mod source_encoder;
mod symbol_file;
mod symbol_indexes;
mod syscalls;
mod tracefs;
mod tracer;
mod undo;
mod unknown_events;
mod wire_buffer;

#[cfg(test)]
mod tests;

pub use atrace_categories::{atrace_categories, is_atrace_category};
pub(crate) use event_table::EventTable;
pub(crate) use frozen_ftrace::FrozenFtrace;
pub(crate) use ftrace_source::{Ftrace, Places};
#[cfg(test)]
pub(crate) use journal::JournalFolder;
pub(crate) use kernel_symbols::{KernelSymbols, KernelSymbolsParser};
pub(crate) use page_layout::PageLayout;
#[cfg(test)]
pub(crate) use parse_status::ParseStatus;
pub(crate) use printk_formats::PrintkFormats;
pub(crate) use source_encoder::{GenericEncoding, SourceEncoder, SourceOptions, Surroundings};
pub use unknown_events::closest_ftrace_event;
