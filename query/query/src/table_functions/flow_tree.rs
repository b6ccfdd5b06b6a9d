//! `flow_following(id)`, `flow_preceding(id)`, `directly_connected_flow(id)`: the arrows that lead
//! from a slice, to it, and both.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use arrow::array::{AsArray as _, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{Int64Type, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{MemTable, Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, plan_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use esatto_tables::{OpenTrace, TableDef};
use esatto_trace::tables::Row;

use super::{id_argument, lake_reader};
use crate::lake_slices::{LakeSlices, TraceReader};
use crate::traces::Traces;

/// The arrows that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Forwards, over the slices inside of those that are reached.
    Following,
    /// Backwards, over the slices around those that are reached.
    Preceding,
    /// Both, over arrows alone.
    Direct,
}

#[derive(Debug)]
pub(super) struct FlowTree {
    traces: Arc<Traces>,
    way: Way,
}

impl FlowTree {
    pub(super) fn new(traces: Arc<Traces>, way: Way) -> Self {
        Self { traces, way }
    }
}

fn flows() -> &'static TableDef {
    esatto_tables::table("flow").expect("there are flows")
}

impl TableFunctionImpl for FlowTree {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let name = match self.way {
            Way::Following => "flow_following",
            Way::Preceding => "flow_preceding",
            Way::Direct => "directly_connected_flow",
        };
        let Some(start) = id_argument(name, args.exprs())? else {
            return plan_err!("{name}(id) needs the id of a slice");
        };
        let traces = Arc::clone(&self.traces);
        let mut schema = esatto_tables::schema(flows());
        if traces.are_of_lake() {
            // Files of a lake may lack columns.
            let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
            schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        }
        Ok(Arc::new(Arrows { traces, way: self.way, start, schema }))
    }
}

#[derive(Debug)]
struct Arrows {
    traces: Arc<Traces>,
    way: Way,
    start: i64,
    schema: SchemaRef,
}

impl Arrows {
    fn batch(&self) -> Result<Option<RecordBatch>> {
        let number = OpenTrace::number_of_id(self.start).map(|number| number as usize);
        let trace = number.filter(|number| *number < self.traces.len()).and_then(|number| self.traces.open(number));
        let Some(trace) = trace else { return Ok(None) };
        let start = usize::try_from(self.start - trace.first_id()).unwrap_or(usize::MAX);
        if start >= trace.engine().tables.slice.depth.len() {
            return Ok(None);
        }
        let tables = &trace.engine().tables;
        let ends = tables.flow.slice_out.iter().zip(&tables.flow.slice_in);
        let id = |row: Row| i64::try_from(row.index()).unwrap_or(-1);
        let parent_of = &tables.slice.parent_id;
        let graph = Graph {
            ends: ends.map(|(out, into)| (id(*out), id(*into))).collect(),
            parent: |slice: i64| usize::try_from(slice).ok().and_then(|row| parent_of[row]).map(id),
            parents: (0_i64..).zip(parent_of.iter()).filter_map(|(slice, parent)| Some((slice, id((*parent)?)))),
        };
        let start = i64::try_from(start).unwrap_or(-1);
        let rows = graph.reach(self.way, start).into_iter().collect();
        let columns: Vec<usize> = (0..flows().columns.len()).collect();
        Ok(Some(trace.read_rows(flows(), &columns, rows)?))
    }
}

/// Arrows between slices, and the tree of slices.
struct Graph<F, I> {
    /// The slices of each arrow: from, to.
    ends: Vec<(i64, i64)>,
    /// Returns the parent of a slice.
    parent: F,
    /// All slices with a parent, and the parent.
    parents: I,
}

impl<F: Fn(i64) -> Option<i64>, I: Iterator<Item = (i64, i64)>> Graph<F, I> {
    /// Returns the positions of the arrows that are reached from a slice.
    fn reach(self, way: Way, start: i64) -> BTreeSet<u32> {
        let ends = |row: u32| {
            let (out, into) = self.ends[row as usize];
            if way == Way::Preceding { (into, out) } else { (out, into) }
        };
        let count = u32::try_from(self.ends.len()).expect("a table has less than 2^32 rows");
        let mut from: HashMap<i64, Vec<u32>> = HashMap::new();
        for row in 0..count {
            from.entry(ends(row).0).or_default().push(row);
            if way == Way::Direct {
                from.entry(ends(row).1).or_default().push(row);
            }
        }
        let mut children: HashMap<i64, Vec<i64>> = HashMap::new();
        if way == Way::Following {
            for (slice, parent) in self.parents {
                children.entry(parent).or_default().push(slice);
            }
        }
        let (mut rows, mut seen, mut queue) = (BTreeSet::new(), HashSet::from([start]), VecDeque::from([start]));
        while let Some(slice) = queue.pop_front() {
            let mut reached: Vec<i64> = Vec::new();
            for &row in from.get(&slice).into_iter().flatten() {
                rows.insert(row);
                let (near, far) = ends(row);
                reached.push(if far == slice { near } else { far });
            }
            match way {
                Way::Following => reached.extend(children.get(&slice).into_iter().flatten()),
                Way::Preceding => reached.extend((self.parent)(slice)),
                Way::Direct => {}
            }
            queue.extend(reached.into_iter().filter(|slice| seen.insert(*slice)));
        }
        rows
    }
}

/// The arrows of a trace of a lake.
#[derive(Debug)]
struct LakeArrows {
    reader: TraceReader,
    way: Way,
    start: i64,
    schema: SchemaRef,
}

impl LakeArrows {
    async fn read(arrows: Arc<Self>, context: Arc<TaskContext>) -> Result<RecordBatch> {
        let none = || Ok(RecordBatch::new_empty(Arc::clone(&arrows.schema)));
        let number = OpenTrace::number_of_id(arrows.start);
        let Some(entry) = number.and_then(|number| arrows.reader.lake().entry(number)) else { return none() };
        let columns: Vec<usize> = (0..flows().columns.len()).collect();
        let flows_of_trace = arrows.reader.read(flows(), entry, &columns, &context).await?;
        if flows_of_trace.batch.num_rows() == 0 {
            return none();
        }
        flows_of_trace.memory.try_grow(flows_of_trace.batch.num_rows() * ARROW_BYTES)?;
        let column = |name: &str| {
            let index = flows().column_index(name).expect("flows have it");
            flows_of_trace.batch.column(index).as_primitive::<Int64Type>()
        };
        let ends = column("slice_out").values().iter().copied().zip(column("slice_in").values().iter().copied());
        let ends = ends.collect();
        let slices = match arrows.way {
            Way::Direct => None,
            Way::Following | Way::Preceding => {
                let slices = LakeSlices::read(&arrows.reader, entry, &[], &context).await?;
                flows_of_trace.memory.try_grow(slices.len() * CHILD_BYTES)?;
                Some(slices)
            }
        };
        let parent_at = |slices: &LakeSlices, at: usize| slices.parent(at).map(|parent| slices.id(parent));
        let parents = slices
            .iter()
            .flat_map(|slices| (0..slices.len()).filter_map(move |at| Some((slices.id(at), parent_at(slices, at)?))));
        let parent = |slice: i64| slices.as_ref().and_then(|slices| parent_at(slices, slices.position(slice)?));
        let rows = Graph { ends, parent, parents }.reach(arrows.way, arrows.start);
        let rows = UInt32Array::from_iter_values(rows);
        let batch = take_record_batch(&flows_of_trace.batch, &rows)?;
        Ok(RecordBatch::try_new(Arc::clone(&arrows.schema), batch.columns().to_vec())?)
    }
}

/// Bytes for an arrow, and for a slice inside of another one, in the maps of a search.
const ARROW_BYTES: usize = 128;
const CHILD_BYTES: usize = 64;

/// The only part of a plan over the arrows of a lake.
#[derive(Debug)]
struct LakePart(Arc<LakeArrows>);

impl PartitionStream for LakePart {
    fn schema(&self) -> &SchemaRef {
        &self.0.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = futures::stream::once(LakeArrows::read(Arc::clone(&self.0), context));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.0.schema), rows))
    }
}

#[async_trait]
impl TableProvider for Arrows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(reader) = lake_reader(&self.traces, state)? {
            let schema = Arc::clone(&self.schema);
            let arrows = LakeArrows { reader, way: self.way, start: self.start, schema: Arc::clone(&schema) };
            let part: Arc<dyn PartitionStream> = Arc::new(LakePart(Arc::new(arrows)));
            return Ok(Arc::new(StreamingTableExec::try_new(schema, vec![part], projection, [], false, limit)?));
        }
        let batches = self.batch()?.into_iter().collect();
        let table = MemTable::try_new(Arc::clone(&self.schema), vec![batches])?;
        table.scan(state, projection, filters, limit).await
    }
}
