//! Rows as tuples of Python.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, AsArray as _, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::error::error;
use crate::reader::Rows;

/// Iterator over the rows of a result, as tuples.
#[pyclass(frozen, module = "esatto")]
pub(crate) struct RowIterator {
    /// `None` while a thread takes a row.
    state: Mutex<Option<State>>,
}

struct State {
    rows: Rows,
    batch: Option<Batch>,
    next: usize,
}

/// Columns of a batch, with few types.
struct Batch {
    columns: Vec<ArrayRef>,
    length: usize,
}

impl Batch {
    fn new(batch: &RecordBatch) -> Result<Self, ArrowError> {
        let columns = batch.columns().iter().map(simple).collect::<Result<_, _>>()?;
        Ok(Self { columns, length: batch.num_rows() })
    }
}

/// Returns an array with one of the types that [`value`] knows.
fn simple(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let to = match array.data_type() {
        DataType::Null | DataType::Boolean => return Ok(Arc::clone(array)),
        DataType::UInt64 => DataType::UInt64,
        other if other.is_integer() => DataType::Int64,
        other if other.is_floating() => DataType::Float64,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            DataType::BinaryView
        }
        DataType::Dictionary(_, values) => return simple(&cast(array, values)?),
        _ => {
            let options = FormatOptions::new();
            let formatter = ArrayFormatter::try_new(array, &options)?;
            let text = |row| array.is_valid(row).then(|| formatter.value(row).to_string());
            let texts: arrow::array::StringViewArray = (0..array.len()).map(text).collect();
            return Ok(Arc::new(texts));
        }
    };
    cast(array, &to)
}

fn value<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).into_pyobject(py)?.to_owned().into_any(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::BinaryView => PyBytes::new(py, array.as_binary_view().value(row)).into_any(),
        DataType::Utf8View => array.as_string_view().value(row).into_pyobject(py)?.into_any(),
        // The type of NULL has no other value.
        _ => py.None().into_bound(py),
    })
}

impl RowIterator {
    pub(crate) fn new(rows: Rows) -> Self {
        Self { state: Mutex::new(Some(State { rows, batch: None, next: 0 })) }
    }

    pub(crate) fn next_row<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let take = || self.state.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut state) = take() else {
            return Err(error(py, "another thread reads these rows; give each thread its own iterator"));
        };
        let row = state.next_row(py);
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
        row
    }
}

impl State {
    fn next_row<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        loop {
            if let Some(batch) = &self.batch
                && self.next < batch.length
            {
                let row = batch.columns.iter().map(|column| value(py, column, self.next));
                let row = PyTuple::new(py, row.collect::<PyResult<Vec<_>>>()?)?;
                self.next += 1;
                return Ok(Some(row));
            }
            let Some(batch) = self.rows.next(py)? else { return Ok(None) };
            self.batch = Some(Batch::new(&batch).map_err(|failed| error(py, &failed.to_string()))?);
            self.next = 0;
        }
    }
}

#[pymethods]
impl RowIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.next_row(py)
    }
}
