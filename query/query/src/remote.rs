//! The interface to an engine that runs plans on other machines.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_plan::ExecutionPlan;

use crate::functions;
use crate::trace_table::TraceScan;
use crate::traces::Traces;

/// An engine that runs plans on other machines.
pub trait Remote: core::fmt::Debug + Send + Sync {
    /// Sets up a session: its configuration, its rules and its planner, whose plans run elsewhere
    /// if they can, else here.
    fn set_up(&self, builder: SessionStateBuilder) -> SessionStateBuilder;

    /// Returns what the user should know about the statements so far, once.
    fn take_notes(&self) -> Vec<String>;

    /// Leaves interrupts to the caller, who drops the rows that nobody wants. Else an interrupt
    /// ends the statements elsewhere and this process.
    fn leave_interrupts(&self);

    /// Sets the seconds after which a statement that makes no progress elsewhere is given up; 0
    /// waits without end.
    fn set_timeout(&self, seconds: u64);

    /// Returns the traces that were found damaged elsewhere: their files, and the reasons.
    fn defects(&self) -> Vec<(PathBuf, String)>;
}

/// Builds the scans of tables in plans for elsewhere. A planner adds it to the configuration of the
/// session with which it plans.
pub struct ScanBuilder {
    #[expect(clippy::type_complexity, reason = "it is used once")]
    build: Box<dyn Fn(TraceScan, Option<usize>) -> Result<Arc<dyn ExecutionPlan>> + Send + Sync>,
}

impl ScanBuilder {
    /// Makes it of a function, which takes a scan and the number of rows that are enough.
    pub fn new(
        build: impl Fn(TraceScan, Option<usize>) -> Result<Arc<dyn ExecutionPlan>> + Send + Sync + 'static,
    ) -> Self {
        Self { build: Box::new(build) }
    }

    pub(crate) fn build(&self, scan: TraceScan, limit: Option<usize>) -> Result<Arc<dyn ExecutionPlan>> {
        (self.build)(scan, limit)
    }
}

impl core::fmt::Debug for ScanBuilder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ScanBuilder").finish_non_exhaustive()
    }
}

/// Returns the function of this crate with a name, for these traces.
pub fn function(name: &str, traces: &Arc<Traces>) -> Option<ScalarUDF> {
    functions::all(traces).into_iter().find(|function| function.name() == name)
}

/// Returns the traces that a function of this crate looks into, if it does.
pub fn traces_of_function(function: &ScalarUDF) -> Option<&Arc<Traces>> {
    functions::traces_of(function)
}
