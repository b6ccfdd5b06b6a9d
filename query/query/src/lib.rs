//! SQL over traces.
//!
//! [`Session`] has the tables of [`esatto_tables`] in Apache DataFusion, views above them, and the
//! functions of the trace processor that queries use. Statements may be in SQLite's dialect, as
//! people have written them for the trace processor: what differs is translated.
//!
//! ```text
//! main, program ─┬─ args, answer, output  rows as a table, CSV, JSON, Parquet, Arrow
//!              ├─ interactive     statements from a terminal
//!              ├─ open            a session over files, patterns, URLs or a lake
//!              └─ session         tables, views, statements
//!                   ├─ script     parser, parameters, PerfettoSQL: dialect, rewrite
//!                   ├─ needed_tables  tables that a script can see; others are not made
//!                   ├─ fallback, table_arguments   what is translated later
//!                   ├─ functions, table_functions
//!                   ├─ lake_table   a table of a lake; lake_*: its functions
//!                   ├─ trace_table  a table of all traces, with projection and filters
//!                   ├─ remote     an engine that runs plans on other machines
//!                   └─ traces     files, opened when needed; a bounded cache
//! ```

#![forbid(unsafe_code)]

mod answer;
mod args;
mod dialect;
mod fallback;
mod filter_pushdown;
mod functions;
mod interactive;
mod lake_args;
mod lake_arguments;
mod lake_clocks;
mod lake_commands;
mod lake_slices;
mod lake_table;
mod memberships;
mod missing_sorts;
mod needed_tables;
mod open;
mod output;
pub mod program;
pub mod remote;
mod rewrite;
mod script;
mod session;
mod set_operations;
mod single_groups;
mod sql_error;
mod syntax;
mod table_arguments;
mod table_functions;
mod text_groups;
mod trace_table;
mod traces;
mod views;

pub use esatto_lake::TRACE_COLUMNS;
pub use open::{OpenOptions, open, open_lake};
pub use output::{Format, Output, OutputError, printable};
pub use script::Parameter;
pub use session::{Answer, Options, Prepared, Session};
pub use sql_error::{Place, SqlError};
pub use trace_table::{ScanBatches, TraceScan};
pub use traces::{Broken, TracePool, Traces, find_files};
pub use views::views;
