//! Functions of times and durations.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{AsArray as _, Float64Array, Int64Array, TimestampNanosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use esatto_tables::{ClockOffsets, OpenTrace};

use super::SharedTraces;
use crate::lake_clocks::LakeClocks;
use crate::traces::Traces;

/// The clock of the time of the day.
pub(crate) const CLOCK_REALTIME: i64 = 1;
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

    /// Converts times. `ids` tell the traces; without them there is one trace.
    fn convert(&self, times: &Int64Array, ids: Option<&Int64Array>) -> Result<Int64Array> {
        let lake = match (self.traces.are_of_lake(), self.traces.lake_clocks()) {
            (true, None) => return internal_err!("{}: the clocks of the lake have not been read", self.name()),
            (_, clocks) => clocks,
        };
        let count = lake.map_or(self.traces.len(), LakeClocks::traces);
        let Some(ids) = ids else {
            if count > 1 {
                return exec_err!(
                    "{}(ts): there are several traces, and each has its own clock; \
                     give an id of the row as the second argument",
                    self.name()
                );
            }
            if let Some(clocks) = lake {
                let offsets = clocks.of_single_trace();
                return Ok(times.iter().map(|ts| offsets?.convert(ts?)).collect());
            }
            let offsets = self.offsets(0);
            return Ok(times.iter().map(|ts| offsets.convert(ts?)).collect());
        };
        if let Some(clocks) = lake {
            let convert =
                |ts: Option<i64>, id: Option<i64>| clocks.of_trace(OpenTrace::number_of_id(id?)?)?.convert(ts?);
            return Ok(times.iter().zip(ids).map(|(ts, id)| convert(ts, id)).collect());
        }
        let mut of_traces: HashMap<u32, ClockOffsets> = HashMap::new();
        let mut convert = |ts: Option<i64>, id: Option<i64>| {
            let number = OpenTrace::number_of_id(id?)?;
            let offsets = of_traces.entry(number).or_insert_with(|| self.offsets(number as usize));
            offsets.convert(ts?)
        };
        Ok(times.iter().zip(ids).map(|(ts, id)| convert(ts, id)).collect())
    }
}

/// Returns whether a function is one of these, which look into the clocks of traces.
pub(crate) fn is_time(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<ToTime>().is_some()
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
        Ok(match self.form {
            Form::Timestamp => DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into())),
            Form::Nanoseconds => DataType::Int64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let times = cast(&arrays[0], &DataType::Int64)?;
        let ids = arrays.get(1).map(|ids| ids.as_primitive::<Int64Type>());
        let times = self.convert(times.as_primitive::<Int64Type>(), ids)?;
        Ok(ColumnarValue::Array(match self.form {
            Form::Nanoseconds => Arc::new(times),
            Form::Timestamp => {
                let (_, values, nulls) = times.into_parts();
                Arc::new(TimestampNanosecondArray::try_new(values, nulls)?.with_timezone(UTC))
            }
        }))
    }
}
