//! The page of the documentation that describes the tables.

use core::fmt::Write as _;

use esatto_trace::tables::Kind;

use crate::{ColumnDef, TableDef, tables};

/// Returns the page, in Markdown.
pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for table in tables() {
        describe(table, &mut page);
    }
    page
}

const INTRODUCTION: &str = "\
# Tables of a trace

`esatto query` and the crate `esatto-tables` offer these tables. Their names, and those of the
columns, are those of Perfetto's trace processor. How to ask them:
[Ask a trace with SQL](../how-to/query-a-trace.md).

- Integers, ids and truth values (0 or 1) are 64 bits wide (`Int64` of Arrow). Numbers of type real
  are `Float64`, and texts are `Utf8View`.
- Times (`ts`, `start_ts`, `end_ts`) are nanoseconds of the trace clock. Durations are nanoseconds.
- An id is the position of a row. In the n-th trace of several, from 0, ids begin at n · 2³². So ids
  of different traces differ, and a join on ids never mixes traces.
- If a query asks several traces, each table has further columns that tell them apart, `trace_file`
  first.

This page is generated: `cargo run --manifest-path query/Cargo.toml --example page` prints it.
";

fn describe(table: &TableDef, page: &mut String) {
    let TableDef { name, doc, columns, .. } = table;
    let _infallible =
        write!(page, "\n## `{name}`\n\n{doc}\n\n| column | type | null | meaning |\n| --- | --- | --- | --- |\n");
    for column in columns {
        let ColumnDef { name, is_nullable, .. } = column;
        let null = if *is_nullable { "yes" } else { "" };
        let _infallible = writeln!(page, "| `{name}` | {} | {null} | {} |", kind(column), meaning(column));
    }
}

fn kind(column: &ColumnDef) -> &'static str {
    match column.kind {
        Kind::Int => "integer",
        Kind::Bool => "0 or 1",
        Kind::Real => "real",
        Kind::Text => "text",
        Kind::Row if column.is_key => "id, key",
        Kind::Row => "id",
    }
}

fn meaning(column: &ColumnDef) -> String {
    match column.refers_to {
        Some((table, column_name)) => format!("{} Refers to `{table}.{column_name}`.", column.doc),
        None => column.doc.to_owned(),
    }
}
