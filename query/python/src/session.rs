//! Traces and lakes that are open, and the statements on them.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use esatto_lake::{Lake, is_url};
use esatto_query::program::parse_size;
use esatto_query::{Broken, OpenOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::error::{DamagedTraceWarning, error, sql_error};
use crate::parameters::parameters;
use crate::result::QueryResult;
use crate::runtime::{runtime, wait, wait_blocking};
use crate::schema::Schema;

/// Damaged traces that warnings of a session name; further warnings count the others.
const NAMED_TRACES: usize = 20;

/// The mistake of a child process.
pub(crate) const FORKED: &str =
    "the session was opened before this process was forked; open the traces in the new process";

/// A session, and what Python has been told about it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) session: esatto_query::Session,
    told: Mutex<BTreeSet<PathBuf>>,
    /// The process that opened it.
    process: u32,
    /// The sources, for people.
    name: String,
}

impl Shared {
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }

    /// Returns the damaged traces that were found so far.
    fn damaged(&self) -> Vec<(PathBuf, String)> {
        self.session.traces().known_defects().into_iter().map(|(path, defect)| (path.to_owned(), defect)).collect()
    }

    /// Warns of damaged traces that were found since the last call.
    pub(crate) fn warn(&self, py: Python<'_>) -> PyResult<()> {
        let (new, left) = py.detach(|| {
            let mut new = self.damaged();
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            let left = NAMED_TRACES.saturating_sub(told.len());
            new.retain(|(path, _)| told.insert(path.clone()));
            (new, left)
        });
        let warn = |text: String| {
            let text = CString::new(text.replace('\0', "\u{fffd}"))?;
            PyErr::warn(py, &py.get_type::<DamagedTraceWarning>(), &text, 1)
        };
        for (path, defect) in new.iter().take(left) {
            warn(format!("{}: {defect}", path.display()))?;
        }
        if new.len() > left {
            warn(format!("… and {} more damaged traces", new.len() - left))?;
        }
        Ok(())
    }
}

/// Traces or a lake, ready for statements. `open` makes it.
///
/// Traces are read when a statement needs them, and stay in memory while it allows. A session is
/// also a context manager, which closes it.
#[pyclass(frozen, module = "esatto")]
#[derive(Debug)]
pub(crate) struct Session {
    shared: Mutex<Option<Arc<Shared>>>,
}

impl Session {
    fn new(shared: Shared) -> Self {
        Self { shared: Mutex::new(Some(Arc::new(shared))) }
    }

    fn shared(&self, py: Python<'_>) -> PyResult<Arc<Shared>> {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let shared = shared.ok_or_else(|| error(py, "the session is closed; open the traces again"))?;
        check_process(py, &shared)?;
        Ok(shared)
    }
}

/// Refuses a session of another process: the threads that may hold its locks do not exist here.
pub(crate) fn check_process(py: Python<'_>, shared: &Shared) -> PyResult<()> {
    if shared.is_of_this_process() { Ok(()) } else { Err(error(py, FORKED)) }
}

#[pymethods]
impl Session {
    /// Runs statements, and returns the rows of the one that has some.
    ///
    /// Parameters are the values of `?` and `$1` as a list, or of `$name` as a dict. Call it once
    /// for each statement with rows. The rows are computed when they are read.
    #[pyo3(signature = (sql, parameters=None))]
    fn sql(&self, py: Python<'_>, sql: &str, parameters: Option<&Bound<'_, PyAny>>) -> PyResult<QueryResult> {
        let shared = self.shared(py)?;
        let parameters = self::parameters(parameters)?;
        QueryResult::run(py, &shared, sql, parameters)
    }

    /// Returns the names of all tables and views, in alphabetical order.
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let shared = self.shared(py)?;
        Ok(py.detach(|| shared.session.relations()))
    }

    /// Returns the names of all functions of SQL, in alphabetical order.
    fn functions(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let shared = self.shared(py)?;
        Ok(py.detach(|| shared.session.functions()))
    }

    /// Returns the columns of a table or a view.
    fn schema(&self, py: Python<'_>, table: &str) -> PyResult<Schema> {
        let shared = self.shared(py)?;
        let (in_task, name) = (Arc::clone(&shared), table.to_owned());
        let schema = wait(py, async move { in_task.session.describe(&name).await })?;
        let schema = schema.map_err(|error| sql_error(py, &error, ""))?;
        shared.warn(py)?;
        Ok(Schema::new(schema, esatto_tables::table(table)))
    }

    /// Returns the damaged traces that were found so far: their names, and the reasons.
    fn damaged(&self, py: Python<'_>) -> PyResult<std::collections::BTreeMap<String, String>> {
        let shared = self.shared(py)?;
        let damaged = py.detach(|| shared.damaged());
        Ok(damaged.into_iter().map(|(path, defect)| (path.to_string_lossy().into_owned(), defect)).collect())
    }

    /// Lets go of the traces. Results that exist can still be read.
    fn close(&self) {
        let closed = self.shared.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(closed);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        match &*self.shared.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(shared) => format!("<esatto.Session of {}>", shared.name),
            None => "<esatto.Session, closed>".to_owned(),
        }
    }
}

/// Opens traces or a lake.
///
/// Sources are traces as files, as patterns such as "traces/*.pftrace", or as URLs (http:, https:,
/// s3:); or one lake: its folder or its URL. With a pattern or several sources, tables have further
/// columns that tell traces apart, such as trace_file; `trace_columns` adds them to a single trace.
///
/// `broken` is "keep" (a damaged trace has the rows that can be read; the default for a single
/// trace) or "skip" (it has none; the default for several). `memory_limit` is a number of bytes or
/// a text such as "8G", by default half of the machine's memory. `threads` work on a query, by
/// default as many as there are processors.
#[pyfunction]
#[pyo3(signature = (*sources, broken=None, trace_columns=false, memory_limit=None, threads=None))]
pub(crate) fn open(
    py: Python<'_>,
    sources: &Bound<'_, PyTuple>,
    broken: Option<&str>,
    trace_columns: bool,
    memory_limit: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Session> {
    let mut names = Vec::new();
    for source in sources {
        match source.cast::<PyList>() {
            Ok(list) => names.extend(list.iter().map(|source| name_of(&source)).collect::<PyResult<Vec<_>>>()?),
            Err(_) => names.push(name_of(&source)?),
        }
    }
    if names.is_empty() {
        return Err(PyTypeError::new_err("no trace is named: give a file, a pattern, a URL or a lake"));
    }
    let mut options = options(memory_limit, threads)?;
    options.has_trace_columns = trace_columns;
    options.broken = match broken {
        None => None,
        Some("keep") => Some(Broken::Keep),
        Some("skip") => Some(Broken::Skip),
        Some(other) => {
            return Err(PyValueError::new_err(format!("broken is 'keep' or 'skip', not '{other}'")));
        }
    };
    let shared = wait_blocking(py, move || {
        let runtime = runtime()?;
        let session = esatto_query::open(&names, &options, runtime.handle())?;
        check_files(&session, &names)?;
        Ok(shared(session, &names))
    })?;
    shared.map(Session::new).map_err(|message: String| error(py, &message))
}

/// Opens a lake: its folder or its URL. `open` does the same, and takes traces too.
#[pyfunction]
#[pyo3(signature = (lake, *, memory_limit=None, threads=None))]
pub(crate) fn open_lake(
    py: Python<'_>,
    lake: &Bound<'_, PyAny>,
    memory_limit: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Session> {
    let name = name_of(lake)?;
    let options = options(memory_limit, threads)?;
    let shared = wait_blocking(py, move || {
        let runtime = runtime()?;
        let lake = Lake::open(&name).map_err(|error| error.to_string())?;
        let session = esatto_query::open_lake(&lake, &options, runtime.handle())?;
        Ok(shared(session, &[name]))
    })?;
    shared.map(Session::new).map_err(|message: String| error(py, &message))
}

fn shared(session: esatto_query::Session, names: &[String]) -> Shared {
    let name = match names {
        [name] => format!("'{name}'"),
        [name, ..] => format!("'{name}' and {} more", names.len() - 1),
        [] => String::new(),
    };
    Shared { session, told: Mutex::default(), process: std::process::id(), name }
}

fn options(memory_limit: Option<&Bound<'_, PyAny>>, threads: Option<usize>) -> PyResult<OpenOptions> {
    let mut options = OpenOptions::default();
    if let Some(limit) = memory_limit {
        let text = match limit.cast::<PyString>() {
            Ok(text) => text.to_str()?.to_owned(),
            Err(_) => limit.extract::<usize>()?.to_string(),
        };
        options.memory_limit =
            parse_size(&text).map_err(|why| PyValueError::new_err(format!("memory_limit: {why}")))?;
    }
    if let Some(threads) = threads {
        if !(1..=1024).contains(&threads) {
            return Err(PyValueError::new_err(format!("threads: {threads} is not between 1 and 1024")));
        }
        options.threads = threads;
    }
    Ok(options)
}

/// Returns the name of a source: a text or a path.
fn name_of(source: &Bound<'_, PyAny>) -> PyResult<String> {
    let path: PathBuf = source.extract()?;
    let text = path.into_os_string().into_string();
    text.map_err(|name| PyValueError::new_err(format!("the name {} is not UTF-8", name.display())))
}

/// Refuses files that are named and not there. Those of a pattern are.
fn check_files(session: &esatto_query::Session, names: &[String]) -> Result<(), String> {
    let names: BTreeSet<&Path> = names.iter().map(Path::new).collect();
    for (_, path) in session.traces().paths() {
        if path.to_str().is_some_and(is_url) || !names.contains(path) {
            continue;
        }
        let shown = path.display();
        let metadata = std::fs::metadata(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
        if metadata.is_dir() {
            return Err(format!(
                "{shown} is a folder and no lake: lake.json is missing; name the traces in it, such as \
                 '{shown}/*.pftrace', or make a lake with `esatto export`"
            ));
        }
    }
    Ok(())
}
