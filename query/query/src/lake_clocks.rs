//! The clocks of the traces of a lake, for `to_time` and `to_realtime`.
//!
//! Moments at which the distance of two clocks stays the same need one entry, so a trace of hours
//! takes some hundred bytes. They are read once in a session, and count as memory of queries.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _};
use arrow::datatypes::Int64Type;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::datasource::provider_as_source;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, col, lit};
use datafusion::prelude::SessionContext;
use esatto_lake::NUMBER_COLUMN;
use esatto_tables::{ClockOffsets, OpenTrace};
use futures::StreamExt as _;

use crate::functions::{CLOCK_REALTIME, is_time};
use crate::lake_table::{LakeTable, LakeTraces};

/// The distances of the clock of the time of the day and the trace clock, by trace.
#[derive(Debug)]
pub(crate) struct LakeClocks {
    of_traces: HashMap<u32, ClockOffsets>,
    /// The number of the first trace of the lake, and how many traces there are.
    first: Option<u32>,
    traces: usize,
    memory: MemoryReservation,
}

/// Bytes of an entry of the table of traces, with what it has free.
const ENTRY_BYTES: usize = 2 * size_of::<(u32, ClockOffsets)>();

/// Returns whether a plan has a function that needs the clocks.
pub(crate) fn are_needed(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found |= expr.exists(|expr| Ok(matches!(expr, Expr::ScalarFunction(call) if is_time(&call.func))))?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(found)
}

impl LakeClocks {
    /// Reads the clocks of all traces.
    pub(crate) async fn read(context: &SessionContext, lake: &Arc<LakeTraces>) -> Result<Self> {
        let memory = MemoryConsumer::new("clocks of the lake").register(&context.runtime_env().memory_pool);
        let table = esatto_tables::table("clock_snapshot").expect("there are clocks");
        let source = provider_as_source(Arc::new(LakeTable::new(Arc::clone(lake), table)));
        let columns = [NUMBER_COLUMN, "machine_id", "ts", "clock_value"];
        let plan = LogicalPlanBuilder::scan(table.name, source, None)?
            .filter(col("clock_id").eq(lit(CLOCK_REALTIME)))?
            .project(columns.map(col))?
            // The snapshots of a trace come together.
            .sort([col(NUMBER_COLUMN).sort(true, true)])?
            .build()?;
        let mut rows = context.execute_logical_plan(plan).await?.execute_stream().await?;
        let first = lake.entries().first().and_then(|entry| u32::try_from(entry.trace_number).ok());
        let mut clocks = Self { of_traces: HashMap::new(), first, traces: lake.entries().len(), memory };
        let mut of_trace: (u32, Vec<(i64, i64)>) = (0, Vec::new());
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            let column = |index: usize| batch.column(index).as_primitive::<Int64Type>();
            for row in 0..batch.num_rows() {
                let Ok(number) = u32::try_from(column(0).value(row)) else { continue };
                // The machine of the service has none, or is the first one.
                let machines = column(1);
                if machines.is_valid(row) && machines.value(row) != OpenTrace::first_id_of(number) {
                    continue;
                }
                if of_trace.0 != number {
                    clocks.add(of_trace.0, core::mem::take(&mut of_trace.1))?;
                    of_trace.0 = number;
                }
                of_trace.1.push((column(2).value(row), column(3).value(row)));
            }
        }
        clocks.add(of_trace.0, of_trace.1)?;
        Ok(clocks)
    }

    fn add(&mut self, number: u32, snapshots: Vec<(i64, i64)>) -> Result<()> {
        if !snapshots.is_empty() {
            let offsets = ClockOffsets::new(snapshots);
            self.memory.try_grow(offsets.memory_size() + ENTRY_BYTES)?;
            self.of_traces.insert(number, offsets);
        }
        Ok(())
    }

    /// Returns the number of traces.
    pub(crate) fn traces(&self) -> usize {
        self.traces
    }

    /// Returns the clock of a trace.
    pub(crate) fn of_trace(&self, number: u32) -> Option<&ClockOffsets> {
        self.of_traces.get(&number)
    }

    /// Returns the clock of the only trace.
    pub(crate) fn of_single_trace(&self) -> Option<&ClockOffsets> {
        self.of_trace(self.first?)
    }
}
