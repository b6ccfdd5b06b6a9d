//! Files that have the columns of each table, for readers of tables that no trace has rows of.

use crate::layout::{SCHEMAS, derived};
use crate::table_file::empty_file;

/// Returns the files: their paths, and their bytes.
pub(crate) fn schema_files() -> impl Iterator<Item = (String, Vec<u8>)> {
    let tables = esatto_tables::tables().iter().filter(|table| derived(table.name).is_none());
    tables.map(|table| (format!("{SCHEMAS}/{}.parquet", table.name), empty_file(table)))
}
