//! The rows of a statement, and their conversions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{Array as _, RecordBatch};
use arrow::datatypes::{Schema as ArrowSchema, SchemaRef};
use arrow::ffi_stream::FFI_ArrowArrayStream;
use esatto_query::{Answer, Parameter, Prepared, SqlError};
use pyo3::exceptions::PyModuleNotFoundError;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyCapsule, PyDict, PyTuple};

use crate::batches::BatchIterator;
use crate::display::{FirstRows, SHOWN_ROWS};
use crate::error::{error, sql_error};
use crate::reader::{Rows, StreamReader};
use crate::runtime::wait;
use crate::schema::{Schema, schema_capsule};
use crate::session::{Shared, check_process};
use crate::values::RowIterator;

/// The rows of a statement.
///
/// They are computed when they are read, and stream: into anything that takes Arrow's C stream,
/// such as `polars.DataFrame(result)`, or as tuples by `for row in result`. Reading again runs the
/// statement again, unless `collect` has kept the rows. Python shows the first rows.
#[pyclass(frozen, module = "esatto", name = "Result")]
pub(crate) struct QueryResult {
    shared: Arc<Shared>,
    sql: Arc<str>,
    /// The statement that returns rows, if one does.
    statement: Option<Prepared>,
    schema: SchemaRef,
    state: Mutex<State>,
}

/// Nobody waits for anything else while it is locked.
#[derive(Default)]
struct State {
    /// The statement has been run, and its rows wait for their reader.
    begun: Option<Rows>,
    kept: Option<Arc<Vec<RecordBatch>>>,
}

/// The reason why statements did not run.
enum Stop {
    Sql(SqlError),
    Usage(&'static str),
}

/// Runs statements. Returns the one that has rows.
async fn run(
    shared: &Shared,
    sql: &str,
    parameters: Vec<(String, Parameter)>,
) -> Result<Option<(Prepared, Answer)>, Stop> {
    let statements = shared.session.prepare_with(sql, parameters).map_err(Stop::Sql)?;
    if statements.is_empty() {
        return Err(Stop::Usage("the SQL has no statement"));
    }
    // Without `Session::expect`: rows are read later, perhaps after statements on other tables.
    let mut found = None;
    for statement in statements {
        let Some(answer) = shared.session.run(&statement).await.map_err(Stop::Sql)? else { continue };
        if found.is_some() {
            return Err(Stop::Usage("several statements return rows; call sql() once for each"));
        }
        found = Some((statement, answer));
    }
    Ok(found)
}

impl QueryResult {
    pub(crate) fn run(
        py: Python<'_>,
        shared: &Arc<Shared>,
        sql: &str,
        parameters: Vec<(String, Parameter)>,
    ) -> PyResult<Self> {
        let sql: Arc<str> = sql.into();
        let (in_task, text) = (Arc::clone(shared), Arc::clone(&sql));
        let found = wait(py, async move { run(&in_task, &text, parameters).await })?;
        // Also if the statement fails: the damage may be the reason.
        shared.warn(py)?;
        let found = found.map_err(|stop| match stop {
            Stop::Sql(error) => sql_error(py, &error, &sql),
            Stop::Usage(message) => error(py, message),
        })?;
        let (statement, schema, state) = match found {
            Some((statement, answer)) => {
                let schema = Arc::clone(&answer.schema);
                let begun = Some(Rows::new(answer, shared, &sql));
                (Some(statement), schema, State { begun, kept: None })
            }
            None => {
                let kept = Some(Arc::default());
                (None, Arc::new(ArrowSchema::empty()), State { begun: None, kept })
            }
        };
        Ok(Self { shared: Arc::clone(shared), sql, statement, schema, state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the rows from the first one on. Runs the statement again if they have been read.
    pub(crate) fn rows(&self, py: Python<'_>) -> PyResult<Rows> {
        check_process(py, &self.shared)?;
        let (kept, begun) = {
            let mut state = self.lock();
            (state.kept.clone(), state.begun.take())
        };
        if let Some(kept) = kept {
            return Ok(Rows::kept(Arc::clone(&self.schema), &kept, &self.shared, &self.sql));
        }
        if let Some(begun) = begun {
            return Ok(begun);
        }
        let (shared, statement) = (Arc::clone(&self.shared), self.statement.clone());
        let answer = wait(py, async move {
            match &statement {
                Some(statement) => shared.session.run(statement).await,
                None => Ok(None),
            }
        })?;
        let answer = answer.map_err(|error| sql_error(py, &error, &self.sql))?;
        let answer = answer.ok_or_else(|| error(py, "the statement returns no rows any more"))?;
        if answer.schema != self.schema {
            return Err(error(py, "the tables of the statement have changed; call sql() again"));
        }
        Ok(Rows::new(answer, &self.shared, &self.sql))
    }

    /// Returns all batches, and keeps none.
    fn batches(&self, py: Python<'_>) -> PyResult<Arc<Vec<RecordBatch>>> {
        if let Some(kept) = self.lock().kept.clone() {
            return Ok(kept);
        }
        let mut rows = self.rows(py)?;
        let mut batches = Vec::new();
        while let Some(batch) = rows.next(py)? {
            batches.push(batch);
        }
        Ok(Arc::new(batches))
    }

    /// Returns a result that has all rows, for a reader that could not pass on our exceptions.
    fn collected(&self, py: Python<'_>) -> PyResult<Self> {
        let kept = Some(self.batches(py)?);
        Ok(Self {
            shared: Arc::clone(&self.shared),
            sql: Arc::clone(&self.sql),
            statement: self.statement.clone(),
            schema: Arc::clone(&self.schema),
            state: Mutex::new(State { begun: None, kept }),
        })
    }

    /// Returns the first rows. They are not lost for the next reader.
    fn first_rows(&self, py: Python<'_>) -> PyResult<FirstRows> {
        let mut rows = self.rows(py)?;
        let (mut batches, mut count) = (Vec::new(), 0);
        // One more row shows that there are more.
        while count <= SHOWN_ROWS
            && let Some(batch) = rows.next(py)?
        {
            count += batch.num_rows();
            batches.push(batch);
        }
        let first = FirstRows::new(&self.schema, &batches).map_err(|failed| error(py, &failed.to_string()));
        rows.unread(batches);
        let mut state = self.lock();
        // Rows of another thread that did the same.
        let other = if state.kept.is_none() { state.begun.replace(rows) } else { None };
        drop(state);
        drop(other);
        first
    }
}

/// Imports a package that a conversion needs.
fn import<'py>(py: Python<'py>, package: &str, method: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import(package).map_err(|error| {
        if !error.is_instance_of::<PyModuleNotFoundError>(py) {
            return error;
        }
        let missing = error.value(py).getattr("name").and_then(|name| name.extract::<String>());
        let missing = missing.unwrap_or_else(|_| package.to_owned());
        PyModuleNotFoundError::new_err(format!("{method}() needs the package {missing}: pip install {missing}"))
    })
}

#[pymethods]
impl QueryResult {
    /// The columns.
    #[getter]
    fn schema(&self) -> Schema {
        Schema::new(Arc::clone(&self.schema), None)
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Computes all rows and keeps them, so that the result can be read again at no cost. Returns
    /// the result itself.
    fn collect(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let kept = slf.get().batches(slf.py())?;
        let old = {
            let mut state = slf.get().lock();
            state.kept = Some(kept);
            state.begun.take()
        };
        drop(old);
        Ok(slf)
    }

    /// Returns the rows as a list of tuples.
    ///
    /// Numbers, texts, truth values, bytes and None are Python's own. Other values, such as
    /// timestamps and lists, are texts.
    fn fetchall(slf: Bound<'_, Self>) -> PyResult<Vec<Bound<'_, PyTuple>>> {
        let rows = RowIterator::new(slf.get().rows(slf.py())?);
        let mut all = Vec::new();
        while let Some(row) = rows.next_row(slf.py())? {
            all.push(row);
        }
        Ok(all)
    }

    /// Iterates over the rows as tuples, as `fetchall` returns them.
    fn __iter__(&self, py: Python<'_>) -> PyResult<RowIterator> {
        Ok(RowIterator::new(self.rows(py)?))
    }

    /// Returns a pyarrow.Table.
    fn to_arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let pyarrow = import(py, "pyarrow", "to_arrow")?;
        pyarrow.call_method1("table", (self.collected(py)?,))
    }

    /// Returns a pyarrow.Table, as `to_arrow`.
    fn arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_arrow(py)
    }

    /// Returns a pyarrow.RecordBatchReader, which computes rows when they are read.
    fn to_reader<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let pyarrow = import(py, "pyarrow", "to_reader")?;
        let batches = BatchIterator::new(slf.get().rows(py)?, pyarrow.getattr("record_batch")?.unbind());
        let schema = pyarrow.call_method1("schema", (&slf,))?;
        pyarrow.getattr("RecordBatchReader")?.call_method1("from_batches", (schema, batches))
    }

    /// Returns a pandas.DataFrame.
    ///
    /// Columns of whole numbers that have a null get the type Int64, because floating-point numbers
    /// cannot hold the time of an event. Options are those of pyarrow.Table.to_pandas.
    #[pyo3(signature = (**options))]
    fn to_pandas<'py>(&self, py: Python<'py>, options: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        let pandas = import(py, "pandas", "to_pandas")?;
        import(py, "pyarrow", "to_pandas")?;
        let collected = self.collected(py)?;
        let mut has_null = vec![false; self.schema.fields().len()];
        for batch in collected.batches(py)?.iter() {
            for (column, has_null) in batch.columns().iter().zip(&mut has_null) {
                *has_null |= column.null_count() > 0;
            }
        }
        let table = collected.to_arrow(py)?;
        let has_choice = |name: &str| options.is_some_and(|options| options.contains(name).unwrap_or(false));
        let is_exact = has_choice("types_mapper") || has_choice("integer_object_nulls");
        // Before the table: an option makes it unusable.
        let mut exact = Vec::new();
        for (index, field) in self.schema.fields().iter().enumerate() {
            if is_exact || !has_null[index] || !field.data_type().is_integer() {
                continue;
            }
            // Int64Dtype for Arrow's Int64, and so on.
            let dtype = pandas.getattr(format!("{}Dtype", field.data_type()))?.call0()?.unbind();
            let mapper = PyCFunction::new_closure(py, None, None, move |args, _| dtype.clone_ref(args.py()))?;
            let own = PyDict::new(py);
            own.set_item("types_mapper", mapper)?;
            exact.push((index, table.call_method1("column", (index,))?.call_method("to_pandas", (), Some(&own))?));
        }
        let frame = table.call_method("to_pandas", (), options)?;
        for column in exact {
            frame.call_method1("isetitem", column)?;
        }
        Ok(frame)
    }

    /// Returns a pandas.DataFrame, as `to_pandas`.
    #[pyo3(signature = (**options))]
    fn df<'py>(&self, py: Python<'py>, options: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        self.to_pandas(py, options)
    }

    /// Returns a polars.DataFrame.
    fn to_polars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let polars = import(py, "polars", "to_polars")?;
        polars.call_method1("DataFrame", (self.collected(py)?,))
    }

    /// Returns a polars.DataFrame, as `to_polars`.
    fn pl<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_polars(py)
    }

    /// Arrow's C stream of the rows, for packages that take it. The rows have the types of the
    /// statement, whatever schema is requested.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _hint = requested_schema;
        let reader = StreamReader::new(self.rows(py)?);
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Arrow's C schema of the rows, for packages that take it.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.first_rows(py)?.text())
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.first_rows(py)?.html())
    }
}
