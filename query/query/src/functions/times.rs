//! Functions of times and durations.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{AsArray as _, Float64Array, Int64Array, TimestampNanosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use esatto_tables::{ClockOffsets, OpenTrace};

use super::SharedTraces;
use crate::traces::Traces;

/// The clock of the time of the day.
const CLOCK_REALTIME: i64 = 1;
const UTC: &str = "+00:00";

/// `dur_ms(dur)`: a duration in milliseconds; NULL if the event did not end.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct DurMs(Signature);

impl DurMs {
    pub(super) fn new() -> Self {
        Self(Signature::exact(vec![DataType::Int64], Volatility::Immutable))
    }
}

impl ScalarUDFImpl for DurMs {
    fn name(&self) -> &str {
        "dur_ms"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let durations = args.args[0].to_array(args.number_rows)?;
        let durations = durations.as_primitive::<Int64Type>();
        let milliseconds: Float64Array =
            durations.iter().map(|dur| dur.filter(|dur| *dur >= 0).map(|dur| dur as f64 / 1e6)).collect();
        Ok(ColumnarValue::Array(Arc::new(milliseconds)))
    }
}

/// The form of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Form {
    Timestamp,
    Nanoseconds,
}

/// `to_time(ts)` and `to_realtime(ts)`: the time of the day. If there are several traces, a second
/// argument tells the trace: any id of it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ToTime {
    signature: Signature,
    traces: SharedTraces,
    form: Form,
}

impl ToTime {
    pub(super) fn new(traces: SharedTraces, form: Form) -> Self {
        let numbers = |count| TypeSignature::Exact(vec![DataType::Int64; count]);
        let signature = Signature::one_of(vec![numbers(1), numbers(2)], Volatility::Stable);
        Self { signature, traces, form }
    }

    pub(super) fn traces(&self) -> &Arc<Traces> {
        &self.traces.0
    }

    fn offsets(&self, number: usize) -> ClockOffsets {
        let trace = (number < self.traces.len()).then(|| self.traces.open(number)).flatten();
        trace.map(|trace| trace.clock_offsets(CLOCK_REALTIME)).unwrap_or_default()
    }
}

impl ScalarUDFImpl for ToTime {
    fn name(&self) -> &str {
        match self.form {
            Form::Timestamp => "to_time",
            Form::Nanoseconds => "to_realtime",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        self.traces.require(self.name(), "join 'traces' on trace_number: start_time + (ts - start_ts)")?;
        Ok(match self.form {
            Form::Timestamp => DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into())),
            Form::Nanoseconds => DataType::Int64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let times = cast(&arrays[0], &DataType::Int64)?;
        let times = times.as_primitive::<Int64Type>();
        let times: Int64Array = match arrays.get(1) {
            None if self.traces.len() > 1 => {
                return exec_err!(
                    "{}(ts): there are several traces, and each has its own clock; \
                     give an id of the row as the second argument",
                    self.name()
                );
            }
            None => {
                let offsets = self.offsets(0);
                times.iter().map(|ts| offsets.convert(ts?)).collect()
            }
            Some(ids) => {
                let ids = ids.as_primitive::<Int64Type>();
                let mut of_traces: HashMap<u32, ClockOffsets> = HashMap::new();
                let mut convert = |ts: Option<i64>, id: Option<i64>| {
                    let number = OpenTrace::number_of_id(id?)?;
                    let offsets = of_traces.entry(number).or_insert_with(|| self.offsets(number as usize));
                    offsets.convert(ts?)
                };
                times.iter().zip(ids).map(|(ts, id)| convert(ts, id)).collect()
            }
        };
        Ok(ColumnarValue::Array(match self.form {
            Form::Nanoseconds => Arc::new(times),
            Form::Timestamp => {
                let (_, values, nulls) = times.into_parts();
                Arc::new(TimestampNanosecondArray::try_new(values, nulls)?.with_timezone(UTC))
            }
        }))
    }
}
