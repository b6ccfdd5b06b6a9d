//! `flow_following(id)`, `flow_preceding(id)`, `directly_connected_flow(id)`: the arrows that lead
//! from a slice, to it, and both.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{MemTable, Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use esatto_tables::{OpenTrace, TableDef};
use esatto_trace::tables::Row;

use super::id_argument;
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
        self.traces.require(name, "join 'flow' on slice_out and slice_in")?;
        let Some(start) = id_argument(name, args.exprs())? else {
            return plan_err!("{name}(id) needs the id of a slice");
        };
        let traces = Arc::clone(&self.traces);
        Ok(Arc::new(Arrows { traces, way: self.way, start, schema: esatto_tables::schema(flows()) }))
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
        let rows = reach(&trace, self.way, start);
        let columns: Vec<usize> = (0..flows().columns.len()).collect();
        Ok(Some(trace.read_rows(flows(), &columns, rows.into_iter().collect())?))
    }
}

/// Returns the arrows that are reached from a slice.
fn reach(trace: &OpenTrace, way: Way, start: usize) -> BTreeSet<u32> {
    let tables = &trace.engine().tables;
    let flow = &tables.flow;
    let count = u32::try_from(flow.slice_out.len()).expect("a table has less than 2^32 rows");
    let ends = |row: u32| {
        let (out, into) = (flow.slice_out[row as usize].index(), flow.slice_in[row as usize].index());
        if way == Way::Preceding { (into, out) } else { (out, into) }
    };
    let mut from: HashMap<usize, Vec<u32>> = HashMap::new();
    for row in 0..count {
        from.entry(ends(row).0).or_default().push(row);
        if way == Way::Direct {
            from.entry(ends(row).1).or_default().push(row);
        }
    }
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    if way == Way::Following {
        for (row, parent) in tables.slice.parent_id.iter().enumerate() {
            if let Some(parent) = parent {
                children.entry(parent.index()).or_default().push(row);
            }
        }
    }
    let (mut rows, mut seen, mut queue) = (BTreeSet::new(), HashSet::from([start]), VecDeque::from([start]));
    while let Some(slice) = queue.pop_front() {
        let mut reached: Vec<usize> = Vec::new();
        for &row in from.get(&slice).into_iter().flatten() {
            rows.insert(row);
            let (near, far) = ends(row);
            reached.push(if far == slice { near } else { far });
        }
        match way {
            Way::Following => reached.extend(children.get(&slice).into_iter().flatten()),
            Way::Preceding => reached.extend(tables.slice.parent_id[slice].map(Row::index)),
            Way::Direct => {}
        }
        queue.extend(reached.into_iter().filter(|slice| seen.insert(*slice)));
    }
    rows
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
        let batches = self.batch()?.into_iter().collect();
        let table = MemTable::try_new(Arc::clone(&self.schema), vec![batches])?;
        table.scan(state, projection, filters, limit).await
    }
}
