//! Batches of a result, for pyarrow. Exceptions in them remain what they are, which Arrow's C
//! stream cannot do.

use std::sync::{Mutex, PoisonError};

use arrow::array::{Array as _, RecordBatch, StructArray};
use arrow::ffi::to_ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::error;
use crate::reader::Rows;

/// Iterator over batches, as those of pyarrow.
#[pyclass(frozen)]
pub(crate) struct BatchIterator {
    /// `None` while a thread takes a batch.
    rows: Mutex<Option<Rows>>,
    /// The function `pyarrow.record_batch`.
    record_batch: Py<PyAny>,
}

impl BatchIterator {
    pub(crate) fn new(rows: Rows, record_batch: Py<PyAny>) -> Self {
        Self { rows: Mutex::new(Some(rows)), record_batch }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Rows>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl BatchIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let rows = self.lock().take();
        let mut rows =
            rows.ok_or_else(|| error(py, "another thread reads these batches; give each thread its own reader"))?;
        let batch = rows.next(py);
        *self.lock() = Some(rows);
        let Some(batch) = batch? else { return Ok(None) };
        self.record_batch.bind(py).call1((Batch(batch),)).map(Some)
    }
}

/// A batch with Arrow's PyCapsule interface.
#[pyclass(frozen)]
struct Batch(RecordBatch);

#[pymethods]
impl Batch {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _hint = requested_schema;
        let (array, schema) =
            to_ffi(&StructArray::from(self.0.clone()).to_data()).map_err(|failed| error(py, &failed.to_string()))?;
        let schema = PyCapsule::new_with_value(py, schema, c"arrow_schema")?;
        Ok((schema, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }
}
