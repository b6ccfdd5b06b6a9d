//! Exceptions and warnings.

use esatto_query::SqlError;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyUserWarning};
use pyo3::prelude::*;

create_exception!(
    esatto,
    Error,
    PyException,
    "A trace or a lake cannot be opened, or a statement fails.\n\n\
     `message` is the reason alone, `help` a remedy or None. `line` and `column` are the place in the SQL,\n\
     from 1, or None."
);

create_exception!(
    esatto,
    DamagedTraceWarning,
    PyUserWarning,
    "A trace is damaged: it has the rows that can be read, or none if traces are skipped (`broken`)."
);

/// Makes an exception of a text.
pub(crate) fn error(py: Python<'_>, message: &str) -> PyErr {
    with_fields(py, message.to_owned(), message, None, None)
}

/// Makes an exception of an error in SQL.
pub(crate) fn sql_error(py: Python<'_>, error: &SqlError, sql: &str) -> PyErr {
    let mut error = error.clone();
    error.help = error.help.map(|help| in_python(&help));
    let place = error.place.map(|place| (place.line, place.column));
    with_fields(py, error.with_line(sql), &error.message, error.help.as_deref(), place)
}

fn with_fields(py: Python<'_>, text: String, message: &str, help: Option<&str>, place: Option<(u64, u64)>) -> PyErr {
    let error = Error::new_err(text);
    let value = error.value(py);
    let fields = value
        .setattr("message", message)
        .and_then(|()| value.setattr("help", help))
        .and_then(|()| value.setattr("line", place.map(|(line, _)| line)))
        .and_then(|()| value.setattr("column", place.map(|(_, column)| column)));
    match fields {
        Ok(()) => error,
        Err(failed) => failed,
    }
}

/// Puts a remedy for the command line into words of Python.
fn in_python(help: &str) -> String {
    if let Some(rest) = help.strip_prefix("give it with --param ") {
        let name = rest.strip_suffix("=VALUE").unwrap_or(rest);
        return match name.parse::<usize>() {
            Ok(number) => format!("give a list with at least {number} values as the second argument of sql()"),
            Err(_) => format!("give {{'{name}': VALUE}} as the second argument of sql()"),
        };
    }
    help.replace("--memory-limit", "memory_limit")
}
