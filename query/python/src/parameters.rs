//! Values of Python for the parameters of SQL.

use esatto_query::Parameter;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyMapping, PySequence, PyString};

/// Returns names and values: those of a list are 1, 2, and so on.
pub(crate) fn parameters(given: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<(String, Parameter)>> {
    let Some(given) = given.filter(|given| !given.is_none()) else { return Ok(Vec::new()) };
    if let Ok(named) = given.cast::<PyMapping>() {
        let pair = |item: Bound<'_, PyAny>| {
            let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            let name: String = name.extract().map_err(|_| PyTypeError::new_err("the names of parameters are texts"))?;
            let name = name.trim_start_matches(['$', ':', '@']).to_owned();
            let value = parameter(&value, &name)?;
            Ok((name, value))
        };
        return named.items()?.iter().map(pair).collect();
    }
    if let Ok(list) = given.cast::<PySequence>()
        && !given.is_instance_of::<PyString>()
    {
        let numbered = (1..=list.len()?).map(|number| {
            let name = number.to_string();
            let value = parameter(&list.get_item(number - 1)?, &name)?;
            Ok((name, value))
        });
        return numbered.collect();
    }
    let kind = given.get_type().name()?.to_string();
    Err(PyTypeError::new_err(format!("parameters are a list or a dict, not '{kind}'; write [value] for one value")))
}

fn parameter(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Parameter> {
    if value.is_none() {
        return Ok(Parameter::Null);
    }
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(Parameter::Bool(value.is_true()));
    }
    if let Ok(value) = value.cast::<PyString>() {
        return Ok(Parameter::Text(value.to_str()?.to_owned()));
    }
    // Numbers of numpy have these methods.
    if !value.is_instance_of::<PyFloat>() && value.hasattr("__index__")? {
        let whole = value.extract::<i64>().map_err(|_| {
            PyValueError::new_err(format!("parameter '{name}': {value} does not fit into 64 bits with a sign"))
        })?;
        return Ok(Parameter::Int(whole));
    }
    if value.hasattr("__float__")? {
        let real: f64 = value.extract()?;
        if !real.is_finite() {
            return Err(PyValueError::new_err(format!(
                "parameter '{name}': {real} cannot be written in SQL; leave the condition out, or use None"
            )));
        }
        return Ok(Parameter::Real(real));
    }
    let kind = value.get_type().name()?.to_string();
    let remedy = "a parameter is None, a bool, an int, a float or a str; convert it";
    Err(PyTypeError::new_err(format!("parameter '{name}' has the type '{kind}'; {remedy}")))
}
