//! `extract_arg(arg_set_id, key)`: the value of an argument.
//!
//! A column of SQLite can have values of any type, one of DataFusion has one type. So the type of
//! `extract_arg` is that of all values with this key in all traces: the traces are read before the
//! statement is planned. `extract_arg_int`, `extract_arg_real` and `extract_arg_text` need not.
//!
//! Over a lake, `crate::lake_arguments` makes joins of the calls.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, Float64Array, Int64Array, NullArray, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use esatto_tables::OpenTrace;
use esatto_trace::tables::ArgValue;

use super::SharedTraces;
use crate::traces::Traces;

/// The type that a function gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// That of the values.
    Own,
    Int,
    Real,
    Text,
}

impl Form {
    pub(super) const ALL: [Self; 4] = [Self::Own, Self::Int, Self::Real, Self::Text];
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ExtractArg {
    signature: Signature,
    traces: SharedTraces,
    form: Form,
}

impl ExtractArg {
    pub(super) fn new(traces: SharedTraces, form: Form) -> Self {
        let signature = Signature::exact(vec![DataType::Int64, DataType::Utf8], Volatility::Stable);
        Self { signature, traces, form }
    }

    pub(super) fn traces(&self) -> &Arc<Traces> {
        &self.traces.0
    }

    fn type_of(&self, key: Option<&str>) -> DataType {
        match (self.form, key) {
            (Form::Int, _) => DataType::Int64,
            (Form::Real, _) => DataType::Float64,
            (Form::Text, _) | (Form::Own, None) => DataType::Utf8View,
            (Form::Own, Some(key)) => match self.traces.arg_types().get(key) {
                None => DataType::Null,
                Some(types) if types.has_text => DataType::Utf8View,
                Some(types) if types.has_real => DataType::Float64,
                Some(types) if types.has_int => DataType::Int64,
                Some(_) => DataType::Null,
            },
        }
    }
}

/// A call, as a join with the table `args` has to answer it.
#[derive(Debug)]
pub(crate) struct ArgCall<'e> {
    /// The expression of the set.
    pub(crate) set: &'e Expr,
    /// The expression of the key, and the key if it is known.
    pub(crate) key: &'e Expr,
    pub(crate) literal: Option<&'e str>,
    /// The type of the value.
    pub(crate) data_type: DataType,
    /// Some of the values may be floating point numbers.
    pub(crate) may_be_real: bool,
}

/// Returns the call of `extract_arg` that an expression is; `None` if it is none.
pub(crate) fn arg_call(expr: &Expr) -> Option<ArgCall<'_>> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return None };
    let function = func.inner().downcast_ref::<ExtractArg>()?;
    let [set, key] = &args[..] else { return None };
    let literal = match key {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    };
    let data_type = function.type_of(literal);
    let may_be_real = match literal.filter(|_| function.traces.has_arg_types()) {
        Some(key) => function.traces.arg_types().get(key).is_some_and(|types| types.has_real),
        None => true,
    };
    Some(ArgCall { set, key, literal, data_type, may_be_real })
}

impl ScalarUDFImpl for ExtractArg {
    fn name(&self) -> &str {
        match self.form {
            Form::Own => "extract_arg",
            Form::Int => "extract_arg_int",
            Form::Real => "extract_arg_real",
            Form::Text => "extract_arg_text",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the type depends on the key")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let key = args.scalar_arguments.get(1).copied().flatten().and_then(|key| key.try_as_str().flatten());
        Ok(Arc::new(Field::new(self.name(), self.type_of(key), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.traces.are_of_lake() {
            return internal_err!("{}: a statement over a lake joins the table of arguments", self.name());
        }
        let rows = args.number_rows;
        let sets = cast(&args.args[0].to_array(rows)?, &DataType::Int64)?;
        let sets = sets.as_primitive::<Int64Type>();
        let keys: Box<dyn Iterator<Item = Option<String>>> = match &args.args[1] {
            ColumnarValue::Scalar(ScalarValue::Utf8(key)) => Box::new(core::iter::repeat_n(key.clone(), rows)),
            keys => {
                let keys = cast(&keys.to_array(rows)?, &DataType::Utf8)?;
                let keys: Vec<Option<String>> =
                    keys.as_string::<i32>().iter().map(|key| key.map(str::to_owned)).collect();
                Box::new(keys.into_iter())
            }
        };
        // Neighbours mostly belong to the same trace.
        let mut last: Option<(u32, Option<Arc<OpenTrace>>)> = None;
        let mut values: Vec<Found> = Vec::with_capacity(rows);
        for (set, key) in sets.iter().zip(keys) {
            let number = set.and_then(OpenTrace::number_of_id).filter(|number| (*number as usize) < self.traces.len());
            let (Some(set), Some(number), Some(key)) = (set, number, key) else {
                values.push(Found::Null);
                continue;
            };
            if last.as_ref().is_none_or(|(last, _)| *last != number) {
                last = Some((number, self.traces.open(number as usize)));
            }
            let trace = last.as_ref().and_then(|(_, trace)| trace.as_ref());
            values.push(trace.map_or(Found::Null, |trace| find(trace, set, &key)));
        }
        let array: ArrayRef = match args.return_type() {
            DataType::Int64 => Arc::new(values.iter().map(Found::int).collect::<Int64Array>()),
            DataType::Float64 => Arc::new(values.iter().map(Found::real).collect::<Float64Array>()),
            DataType::Utf8View => Arc::new(values.iter().map(Found::text).collect::<StringViewArray>()),
            _ => Arc::new(NullArray::new(rows)),
        };
        debug_assert_eq!(array.len(), rows);
        Ok(ColumnarValue::Array(array))
    }
}

enum Found {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
}

fn find(trace: &OpenTrace, set: i64, key: &str) -> Found {
    match trace.arg(set, key) {
        Some(ArgValue::Int(v)) => Found::Int(v),
        Some(ArgValue::Uint(v) | ArgValue::Pointer(v)) => Found::Int(v.cast_signed()),
        Some(ArgValue::Bool(v)) => Found::Int(i64::from(v)),
        Some(ArgValue::Real(v)) => Found::Real(v),
        Some(ArgValue::Text(Some(text)) | ArgValue::Json(text)) => Found::Text(trace.text(text).to_owned()),
        _ => Found::Null,
    }
}

/// Returns a floating point number as text. Over a lake, it is the same.
pub(super) fn text_of_real(real: f64) -> String {
    real.to_string()
}

impl Found {
    fn int(&self) -> Option<i64> {
        match self {
            Self::Int(v) => Some(*v),
            // A real number stays as it is in its own column.
            Self::Real(_) | Self::Text(_) | Self::Null => None,
        }
    }

    fn real(&self) -> Option<f64> {
        match self {
            Self::Int(v) => Some(*v as f64),
            Self::Real(v) => Some(*v),
            Self::Text(_) | Self::Null => None,
        }
    }

    fn text(&self) -> Option<String> {
        match self {
            Self::Int(v) => Some(v.to_string()),
            Self::Real(v) => Some(text_of_real(*v)),
            Self::Text(text) => Some(text.clone()),
            Self::Null => None,
        }
    }
}
