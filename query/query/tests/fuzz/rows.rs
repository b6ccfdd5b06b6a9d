//! Rows of an answer, and their comparison.

use core::cmp::Ordering;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use serde_json::Value;

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    Truth(bool),
    Int(i128),
    Real(f64),
    Text(String),
}

pub(crate) type Row = Vec<Cell>;

impl Cell {
    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Truth(_) => 1,
            Self::Int(_) => 2,
            Self::Real(_) => 3,
            Self::Text(_) => 4,
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Truth(a), Self::Truth(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Real(a), Self::Real(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }

    /// True if the cells are equal. Sums of floating point numbers depend on the order of rows.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Real(a), Self::Real(b)) => {
                a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
            }
            (a, b) => a == b,
        }
    }
}

fn order(a: &Row, b: &Row) -> Ordering {
    // Exact cells first: floating point numbers that differ a little do not change the order then.
    let exact = |row: &Row| -> Vec<Cell> { row.iter().filter(|cell| cell.rank() != 3).cloned().collect() };
    let cells = |a: &[Cell], b: &[Cell]| {
        let unequal = a.iter().zip(b).map(|(a, b)| a.order(b)).find(|order| order.is_ne());
        unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
    };
    cells(&exact(a), &exact(b)).then_with(|| cells(a, b))
}

fn is_like(a: &Row, b: &Row) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_like(b))
}

/// Returns the first difference of two answers: in their order if that is determined, else as
/// multisets.
pub(crate) fn difference(ours: &[Row], theirs: &[Row], is_ordered: bool) -> Option<String> {
    let (mut a, mut b) = (ours.to_vec(), theirs.to_vec());
    if !is_ordered {
        a.sort_by(order);
        b.sort_by(order);
    }
    let equal = a.iter().zip(&b).take_while(|(a, b)| is_like(a, b)).count();
    if equal == a.len() && equal == b.len() {
        return None;
    }
    let show = |row: Option<&Row>| row.map_or_else(|| "nothing".to_owned(), |row| format!("{row:?}"));
    Some(format!("{} and {} rows; row {equal}: {} and {}", a.len(), b.len(), show(a.get(equal)), show(b.get(equal))))
}

/// Takes the rows of a batch.
pub(crate) fn of_batch(batch: &RecordBatch) -> Result<Vec<Row>, String> {
    let mut rows: Vec<Row> = vec![Vec::new(); batch.num_rows()];
    for column in batch.columns() {
        let to = |data_type| cast(column, &data_type).map_err(|error| error.to_string());
        let cells: Vec<Cell> = match column.data_type() {
            DataType::Null => vec![Cell::Null; batch.num_rows()],
            DataType::Boolean => column.as_boolean().iter().map(|cell| cell.map_or(Cell::Null, Cell::Truth)).collect(),
            kind if kind.is_integer() => {
                let ints = to(DataType::Int64)?;
                let cell = |cell: Option<i64>| cell.map_or(Cell::Null, |value| Cell::Int(value.into()));
                ints.as_primitive::<Int64Type>().iter().map(cell).collect()
            }
            kind if kind.is_floating() => {
                let reals = to(DataType::Float64)?;
                reals.as_primitive::<Float64Type>().iter().map(|cell| cell.map_or(Cell::Null, Cell::Real)).collect()
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let texts = to(DataType::Utf8View)?;
                let cell = |cell: Option<&str>| cell.map_or(Cell::Null, |text| Cell::Text(text.to_owned()));
                texts.as_string_view().iter().map(cell).collect()
            }
            other => return Err(format!("a column has the type {other}")),
        };
        rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
    }
    Ok(rows)
}

/// Takes a row of DuckDB's: each cell is null, or a text whose first letter is its type.
pub(crate) fn of_json(row: &Value) -> Row {
    let cell = |cell: &Value| {
        let Some(text) = cell.as_str() else { return Cell::Null };
        match text.split_at(1) {
            ("b", value) => Cell::Truth(value == "True"),
            ("i", value) => Cell::Int(value.parse().expect("an integer")),
            ("f", value) => Cell::Real(value.parse().expect("a floating point number")),
            (_, value) => Cell::Text(value.to_owned()),
        }
    };
    row.as_array().expect("a row is a list").iter().map(cell).collect()
}
