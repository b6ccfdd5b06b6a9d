//! SQL over traces.
//!
//! [`Session`] has the tables of [`esatto_tables`] in Apache DataFusion, views above them, and the
//! functions of the trace processor that queries use. Statements may be in SQLite's dialect, as
//! people have written them for the trace processor: what differs is translated.
//!
//! ```text
//! args ─ main ─┬─ output          rows as a table, CSV, JSON, Parquet, Arrow
//!              └─ session         tables, views, statements
//!                   ├─ script     parser, parameters, PerfettoSQL: dialect, rewrite
//!                   ├─ fallback, table_arguments   what is translated later
//!                   ├─ functions, table_functions
//!                   ├─ trace_table  a table of all traces, with projection and filters
//!                   └─ traces     files, opened when needed; a bounded cache
//! ```

#![forbid(unsafe_code)]

mod dialect;
mod fallback;
mod functions;
mod lake_table;
mod output;
mod rewrite;
mod script;
mod session;
mod sql_error;
mod syntax;
mod table_arguments;
mod table_functions;
mod trace_table;
mod traces;
mod views;

pub use output::{Format, Output, OutputError};
pub use session::{Answer, Options, Prepared, Session};
pub use sql_error::{Place, SqlError};
pub use trace_table::TRACE_COLUMNS;
pub use traces::{Broken, Traces, find_files};
pub use views::views;
