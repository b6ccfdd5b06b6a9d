//! Lakes of Perfetto traces: their tables as Parquet files, with a catalogue.
//!
//! `docs/reference/lake.md` describes the layout and what readers see.
//!
//! ```text
//! export ─┬─ trace_source    a file: its hash, its tables, its facts
//!         ├─ table_file      Parquet of one table
//!         ├─ folder_writer   staged, synced, renamed; recovery
//!         └─ remote_writer   numbers, uploads
//! lake, check ── catalogue   a row for each trace
//!              └ store       a folder, or a part of an object store
//! url ── traces of servers
//! ```

#![forbid(unsafe_code)]

mod catalogue;
mod check;
mod error;
mod export;
mod folder_writer;
mod lake;
mod layout;
mod remote_writer;
mod schema_files;
mod store;
mod table_file;
mod trace_source;
mod url;

pub use catalogue::{TableFile, TraceEntry, catalogue_schema, to_batch};
pub use check::{CheckOptions, CheckReport, Problem};
pub use error::Error;
pub use export::{ExportOptions, Exporter, Report};
pub use folder_writer::Recovered;
pub use lake::{Lake, Place};
pub use layout::{CATALOGUE, DERIVED_TABLES, DerivedTable, LAKE_FILE, PartitionKey, SCHEMA_VERSION, UNKNOWN, derived};
pub use table_file::{NUMBER_COLUMN, TRACE_COLUMNS, file_schema};
pub use url::{fetch, is_url};

/// The program that writes, with its version.
const EXPORTER: &str = concat!("esatto ", env!("CARGO_PKG_VERSION"));
