//! Columns of a table or a result.

use arrow::datatypes::SchemaRef;
use arrow::ffi::FFI_ArrowSchema;
use esatto_tables::TableDef;
use pyo3::exceptions::{PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyIterator, PyList};

use crate::display::text_table;
use crate::error::error;

/// A column: its name, its Arrow type, if it may be null, and its meaning if it is known.
#[pyclass(frozen, module = "esatto", get_all, eq, from_py_object)]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    /// Its name.
    name: String,
    /// Its Arrow type.
    r#type: String,
    /// True if a row may have no value.
    nullable: bool,
    /// Its meaning, in a sentence; None if it is not a column of a table.
    doc: Option<String>,
}

#[pymethods]
impl Column {
    fn __repr__(&self) -> String {
        let nullable = if self.nullable { "True" } else { "False" };
        format!("Column({:?}, {}, nullable={nullable})", self.name, self.r#type)
    }
}

/// Columns of a table or a result, in their order. `schema["ts"]` and `schema[0]` are columns.
#[pyclass(frozen, module = "esatto")]
#[derive(Debug)]
pub(crate) struct Schema {
    schema: SchemaRef,
    columns: Vec<Column>,
    doc: Option<&'static str>,
}

impl Schema {
    pub(crate) fn new(schema: SchemaRef, table: Option<&'static TableDef>) -> Self {
        let column = |field: &arrow::datatypes::Field| {
            let own = table.and_then(|table| table.columns.get(table.column_index(field.name())?));
            Column {
                name: field.name().clone(),
                r#type: field.data_type().to_string(),
                nullable: field.is_nullable(),
                doc: own.map(|column| column.doc.to_owned()),
            }
        };
        let columns = schema.fields().iter().map(|field| column(field)).collect();
        Self { schema, columns, doc: table.map(|table| &*table.doc) }
    }
}

#[pymethods]
impl Schema {
    /// The names of the columns.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| &*column.name).collect()
    }

    /// The content of the table, in a sentence; None if it is no table.
    #[getter]
    fn doc(&self) -> Option<&'static str> {
        self.doc
    }

    fn __len__(&self) -> usize {
        self.columns.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let columns = self.columns.iter().cloned().map(|column| Bound::new(py, column));
        PyList::new(py, columns.collect::<PyResult<Vec<_>>>()?)?.try_iter()
    }

    fn __contains__(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<Column> {
        if let Ok(name) = key.extract::<String>() {
            let column = self.columns.iter().find(|column| column.name == name);
            return column.cloned().ok_or_else(|| PyKeyError::new_err(name));
        }
        let index: isize = key.extract()?;
        let length = self.columns.len();
        let at = if index < 0 { length.checked_add_signed(index) } else { usize::try_from(index).ok() };
        let column = at.and_then(|at| self.columns.get(at));
        column.cloned().ok_or_else(|| PyIndexError::new_err(format!("{index}: there are {length} columns")))
    }

    /// Arrow's C schema, for packages that take it: `pyarrow.schema(schema)`.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    fn __repr__(&self) -> String {
        let names = ["name", "type", "null", "meaning"].map(str::to_owned);
        let row = |column: &Column| {
            let null = if column.nullable { "may be" } else { "" };
            let doc = column.doc.clone().unwrap_or_default();
            vec![column.name.clone(), column.r#type.clone(), null.to_owned(), doc]
        };
        let rows: Vec<Vec<String>> = self.columns.iter().map(row).collect();
        text_table(&names, &[false; 4], &rows)
    }
}

pub(crate) fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(&**schema).map_err(|failed| error(py, &failed.to_string()))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}
