//! States that tracks have at the current time of the import.

use crate::string_table::Symbol;
use crate::tables::Row;
use hashbrown::HashMap;

/// The row and the name of the state of each track that has one.
#[derive(Debug, Default)]
pub(crate) struct CurrentStates(pub(super) HashMap<Row, (Row, Symbol)>);
