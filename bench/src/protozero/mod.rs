//! Group `protozero`: encoding and decoding beside other crates for protobuf.

mod size;
mod time;

use crate::options::Options;
use crate::row::Row;

const GROUP: &str = "protozero";

pub(crate) fn run(options: &Options) -> Result<Vec<Row>, String> {
    let mut rows = time::rows(options)?;
    rows.extend(size::rows()?);
    Ok(rows)
}
