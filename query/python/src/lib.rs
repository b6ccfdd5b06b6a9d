//! The Python module `esatto`.
//!
//! ```text
//! session ── open, statements, tables
//!   ├─ parameters  values of Python for $1, ? and $name
//!   ├─ result      rows of a statement, and their conversions
//!   │    ├─ reader    batches, for Arrow's C stream and for Python
//!   │    │    └─ python_lock   Python's lock in callbacks
//!   │    ├─ batches   batches for pyarrow, with exceptions of Python
//!   │    ├─ values    rows as tuples
//!   │    └─ display   first rows, as text and as HTML
//!   ├─ schema      columns
//!   ├─ runtime     threads of queries; Ctrl-C
//!   └─ error       exceptions and warnings
//! ```
//!
//! No thread holds Python's lock (the GIL) while it waits for a query, and none waits for one of
//! our locks while it holds Python's.

#![deny(unsafe_code)]

mod batches;
mod display;
mod error;
mod parameters;
mod python_lock;
mod reader;
mod result;
mod runtime;
mod schema;
mod session;
mod values;

/// SQL over Perfetto traces.
///
///     import esatto
///
///     trace = esatto.open("demo.pftrace")
///     trace.sql("select name, count(*) as n, sum(dur) from slice group by name").to_pandas()
///
/// `open` takes traces as files, patterns such as "traces/*.pftrace", and URLs; or a lake, which
/// `esatto export` writes. `Session.sql` returns a `Result`: its rows stream into anything that
/// takes Arrow's C stream (pyarrow, polars, pandas, DuckDB), or become a table by `to_arrow`,
/// `to_pandas` and `to_polars`. `for row in result` needs no other package.
///
/// `Session.tables` lists tables and views, `Session.schema("slice")` the columns of one. Mistakes
/// in the SQL raise `Error`; damaged traces are reported as `DamagedTraceWarning`.
#[pyo3::pymodule]
mod esatto {
    #[pymodule_export]
    use crate::error::{DamagedTraceWarning, Error};
    #[pymodule_export]
    use crate::result::QueryResult;
    #[pymodule_export]
    use crate::schema::{Column, Schema};
    #[pymodule_export]
    use crate::session::{Session, open, open_lake};
    #[pymodule_export]
    use crate::values::RowIterator;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
