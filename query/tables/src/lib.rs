//! The tables of a trace as Apache Arrow record batches.
//!
//! [`tables`] has the definitions: names, columns, kinds, keys. The names are those of Perfetto's
//! trace processor, so SQL that was written for it finds what it asks for. [`ReadTables`] is the
//! interface through which engines of SQL read rows, with the columns and the times that they need.
//! [`OpenTrace`] implements it with the engine of `esatto-trace`.
//!
//! ```no_run
//! use esatto_tables::{OpenTrace, ReadTables as _, Request, table};
//!
//! let file = std::fs::File::open("demo.pftrace")?;
//! let trace = std::sync::Arc::new(OpenTrace::read(file, 0));
//! let slices = table("slice").expect("there are slices");
//! for batch in trace.read_table(&Request::all(slices)) {
//!     println!("{} slices", batch?.num_rows());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Types
//!
//! Integers, ids and truth values (0 or 1) are `Int64`, floating point numbers are `Float64`, texts
//! are `Utf8View`. Times and durations are nanoseconds; times are on the trace clock.
//!
//! # Ids
//!
//! An id is the position of a row. In the n-th trace of several, from 0, ids begin at n · 2³². So
//! ids of different traces differ, and a join on ids never mixes traces.

#![forbid(unsafe_code)]

mod batches;
mod catalog;
mod open_trace;
mod page;

pub use catalog::{ColumnDef, TableDef, table, tables};
pub use esatto_trace::ReadOptions;
pub use esatto_trace::tables::Kind;
pub use open_trace::{ArgTypes, ClockOffsets, Damage, MAX_TRACES, OpenTrace, ROW_BITS};
pub use page::page;

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

/// Rows of a batch.
pub const BATCH_ROWS: usize = 8192;

/// Rows that a reader wants.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// The table.
    pub table: &'static TableDef,
    /// Positions of the columns, in the order of the result.
    pub columns: Vec<usize>,
    /// Rows with a `ts` outside may be left out.
    pub times: RangeInclusive<i64>,
    /// The part of the rows, and the number of parts.
    pub part: (usize, usize),
    /// The rows come in the order of `ts` if there is such a column. Those of the same time come in
    /// their order in the table.
    pub is_by_time: bool,
}

impl Request {
    /// Asks for all columns of all rows.
    pub fn all(table: &'static TableDef) -> Self {
        let columns = (0..table.columns.len()).collect();
        Self { table, columns, times: i64::MIN..=i64::MAX, part: (0, 1), is_by_time: false }
    }
}

/// Record batches of a table.
pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// A trace whose tables can be read.
pub trait ReadTables: core::fmt::Debug + Send + Sync {
    /// Reads rows. The batches have the columns of the request.
    fn read_table(self: Arc<Self>, request: &Request) -> Batches;
}

/// Returns the schema of a table.
pub fn schema(table: &TableDef) -> SchemaRef {
    let field = |column: &ColumnDef| Field::new(column.name, data_type(column.kind), column.is_nullable);
    Arc::new(Schema::new(table.columns.iter().map(field).collect::<Vec<_>>()))
}

/// Returns the type of Arrow for a kind of values.
pub fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Real => DataType::Float64,
        Kind::Text => DataType::Utf8View,
        Kind::Int | Kind::Bool | Kind::Row => DataType::Int64,
    }
}
