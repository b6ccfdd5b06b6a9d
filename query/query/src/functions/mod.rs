//! Functions of SQL that DataFusion does not have.

mod arg_text;
mod extract_arg;
mod glob;
mod printf;
mod times;
mod truth;

use core::hash::{Hash, Hasher};
use core::ops::Deref;
use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

use crate::traces::Traces;

pub(crate) use arg_text::arg_text;
pub(crate) use extract_arg::{ArgCall, arg_call};
pub(crate) use times::{CLOCK_REALTIME, is_time};

/// Returns all of them.
pub(crate) fn all(traces: &Arc<Traces>) -> Vec<ScalarUDF> {
    let shared = || SharedTraces(Arc::clone(traces));
    let mut all = vec![
        ScalarUDF::from(truth::Truth::new()),
        arg_text(),
        ScalarUDF::from(glob::Glob::new()),
        ScalarUDF::from(printf::Printf::new()),
        ScalarUDF::from(times::DurMs::new()),
        ScalarUDF::from(times::ToTime::new(shared(), times::Form::Timestamp)),
        ScalarUDF::from(times::ToTime::new(shared(), times::Form::Nanoseconds)),
    ];
    all.extend(extract_arg::Form::ALL.map(|form| ScalarUDF::from(extract_arg::ExtractArg::new(shared(), form))));
    all
}

/// Returns the traces that a function looks into, if it does.
pub(crate) fn traces_of(function: &ScalarUDF) -> Option<&Arc<Traces>> {
    let function = function.inner();
    let of_arg = function.downcast_ref::<extract_arg::ExtractArg>().map(extract_arg::ExtractArg::traces);
    of_arg.or_else(|| function.downcast_ref::<times::ToTime>().map(times::ToTime::traces))
}

/// The traces, as a part of functions. DataFusion wants to compare functions.
#[derive(Debug, Clone)]
struct SharedTraces(Arc<Traces>);

impl Deref for SharedTraces {
    type Target = Traces;

    fn deref(&self) -> &Traces {
        &self.0
    }
}

impl PartialEq for SharedTraces {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SharedTraces {}

impl Hash for SharedTraces {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}
