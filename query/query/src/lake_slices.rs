//! Rows of one trace of a lake in memory, which count as memory of the query.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::Int64Type;
use datafusion::common::{Result, exec_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SessionState, TaskContext};
use datafusion::physical_plan::execute_stream;
use esatto_lake::TraceEntry;
use esatto_tables::TableDef;
use futures::StreamExt as _;

use crate::lake_table::{LakeTable, LakeTraces};

/// Reads tables of a lake, trace by trace.
#[derive(Debug, Clone)]
pub(crate) struct TraceReader {
    lake: Arc<LakeTraces>,
    state: Arc<SessionState>,
}

/// Rows of a table of one trace.
#[derive(Debug)]
pub(crate) struct TraceRows {
    pub(crate) batch: RecordBatch,
    /// The memory of the rows, and of what is made of them.
    pub(crate) memory: MemoryReservation,
}

impl TraceReader {
    pub(crate) fn new(lake: &Arc<LakeTraces>, state: SessionState) -> Self {
        Self { lake: Arc::clone(lake), state: Arc::new(state) }
    }

    pub(crate) fn lake(&self) -> &Arc<LakeTraces> {
        &self.lake
    }

    /// Reads the rows of a trace. `columns` are positions in the table.
    pub(crate) async fn read(
        &self,
        table: &'static TableDef,
        entry: &TraceEntry,
        columns: &[usize],
        context: &Arc<TaskContext>,
    ) -> Result<TraceRows> {
        let consumer = MemoryConsumer::new(format!("'{}' of a trace", table.name));
        let memory = consumer.register(context.memory_pool());
        let plan = LakeTable::new(Arc::clone(&self.lake), table).scan_trace(&*self.state, entry, columns).await?;
        let schema = plan.schema();
        let mut rows = execute_stream(plan, Arc::clone(context))?;
        let mut batches = Vec::new();
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            memory.try_grow(batch.get_array_memory_size())?;
            batches.push(batch);
        }
        // Both are there for a moment.
        let parts = memory.size();
        memory.try_grow(parts)?;
        let batch = concat_batches(&schema, &batches)?;
        memory.shrink(parts);
        Ok(TraceRows { batch, memory })
    }
}

/// Position of a slice that has none.
const NO_PARENT: u32 = u32::MAX;

/// The slices of a trace, and the tree that they make.
#[derive(Debug)]
pub(crate) struct LakeSlices {
    rows: TraceRows,
    /// Positions by id.
    by_id: HashMap<i64, u32>,
    parents: Vec<u32>,
    /// The position of the column `id`.
    id: usize,
    /// The positions of the columns that the caller wants.
    wanted: Vec<usize>,
}

/// Bytes for a slice, beside its row: its id, its parent, and its place in a tree.
const SLICE_BYTES: usize = 2 * size_of::<(i64, u32)>() + size_of::<(u32, u128)>();

impl LakeSlices {
    /// Reads the slices of a trace, with these columns.
    pub(crate) async fn read(
        reader: &TraceReader,
        entry: &TraceEntry,
        columns: &[usize],
        context: &Arc<TaskContext>,
    ) -> Result<Self> {
        let table = esatto_tables::table("slice").expect("there are slices");
        let column = |name| table.column_index(name).expect("slices have it");
        let own = ["id", "parent_id", "depth"].map(column);
        let mut all = columns.to_vec();
        all.extend(own);
        all.sort_unstable();
        all.dedup();
        let position = |column: &usize| all.binary_search(column).expect("it is read");
        let [id, parent, depth] = own.map(|column| position(&column));
        let wanted = columns.iter().map(position).collect();
        let rows = reader.read(table, entry, &all, context).await?;
        rows.memory.try_grow(rows.batch.num_rows() * SLICE_BYTES)?;
        let number = |column: usize| rows.batch.column(column).as_primitive::<Int64Type>();
        let mut by_id = HashMap::with_capacity(rows.batch.num_rows());
        for (at, id) in (0_u32..).zip(number(id).values()) {
            by_id.insert(*id, at);
        }
        let (parent_ids, depths) = (number(parent), number(depth));
        let mut parents = Vec::with_capacity(rows.batch.num_rows());
        for row in 0..rows.batch.num_rows() {
            let parent = by_id.get(&parent_ids.value(row)).filter(|_| parent_ids.is_valid(row));
            // So the tree has no cycle, whatever the file says.
            if parent.is_some_and(|parent| depths.value(*parent as usize) >= depths.value(row)) {
                return exec_err!(
                    "the slices of trace {} of the lake are no tree: slice {} is not deeper than its parent; export \
                     '{}' into another lake",
                    entry.trace_number,
                    number(id).value(row),
                    entry.trace_file
                );
            }
            parents.push(parent.copied().unwrap_or(NO_PARENT));
        }
        Ok(Self { rows, by_id, parents, id, wanted })
    }

    /// Returns the number of slices.
    pub(crate) fn len(&self) -> usize {
        self.parents.len()
    }

    /// Returns the position of a slice.
    pub(crate) fn position(&self, id: i64) -> Option<usize> {
        self.by_id.get(&id).map(|at| *at as usize)
    }

    /// Returns the id of a slice.
    pub(crate) fn id(&self, at: usize) -> i64 {
        self.rows.batch.column(self.id).as_primitive::<Int64Type>().value(at)
    }

    /// Returns the parent of a slice.
    pub(crate) fn parent(&self, at: usize) -> Option<usize> {
        Some(self.parents[at]).filter(|parent| *parent != NO_PARENT).map(|parent| parent as usize)
    }

    /// Returns rows with the columns that are wanted.
    pub(crate) fn take(&self, rows: Vec<u32>) -> Result<RecordBatch> {
        Ok(take_record_batch(&self.rows.batch.project(&self.wanted)?, &UInt32Array::from(rows))?)
    }
}
