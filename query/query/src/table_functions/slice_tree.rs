//! `ancestors(id)` and `descendants(id)`: the slices around a slice, and inside of it.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use esatto_tables::{BATCH_ROWS, OpenTrace, TableDef};

use super::id_argument;
use crate::traces::Traces;

/// A direction in the tree of slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

#[derive(Debug)]
pub(super) struct SliceTree {
    traces: Arc<Traces>,
    direction: Direction,
}

impl SliceTree {
    pub(super) fn new(traces: Arc<Traces>, direction: Direction) -> Self {
        Self { traces, direction }
    }
}

fn slices() -> &'static TableDef {
    esatto_tables::table("slice").expect("there are slices")
}

impl TableFunctionImpl for SliceTree {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let name = if self.direction == Direction::Up { "ancestors" } else { "descendants" };
        self.traces.require(name, "join 'slice' on parent_id")?;
        let start = id_argument(name, args.exprs())?;
        let own = esatto_tables::schema(slices());
        let more = ["start_id", "distance"].map(|name| Arc::new(Field::new(name, DataType::Int64, false)));
        let schema = Arc::new(Schema::new(own.fields().iter().cloned().chain(more).collect::<Vec<_>>()));
        let traces = Arc::clone(&self.traces);
        Ok(Arc::new(Tree { traces, direction: self.direction, start, schema }))
    }
}

#[derive(Debug, Clone)]
struct Tree {
    traces: Arc<Traces>,
    direction: Direction,
    start: Option<i64>,
    schema: SchemaRef,
}

#[async_trait]
impl TableProvider for Tree {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let part: Arc<dyn PartitionStream> = Arc::new(self.clone());
        let schema = Arc::clone(&self.schema);
        Ok(Arc::new(StreamingTableExec::try_new(schema, vec![part], projection, [], false, limit)?))
    }
}

impl PartitionStream for Tree {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let numbers = match self.start {
            None => 0..self.traces.len(),
            Some(id) => match OpenTrace::number_of_id(id).map(|number| number as usize) {
                Some(number) if number < self.traces.len() => number..number + 1,
                _ => 0..0,
            },
        };
        let tree = self.clone();
        let batches = numbers.flat_map(move |number| {
            let trace = tree.traces.open(number);
            trace.into_iter().flat_map({
                let tree = tree.clone();
                move |trace| Pairs::new(&tree, trace)
            })
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), futures::stream::iter(batches)))
    }
}

/// Pairs of slices, of which one contains the other.
struct Pairs {
    trace: Arc<OpenTrace>,
    direction: Direction,
    start: Option<usize>,
    schema: SchemaRef,
    /// The next slice whose ancestors are listed.
    next: usize,
    /// True for the slices inside of the start; `None` if it is not known yet.
    is_inside: Vec<Option<bool>>,
    is_done: bool,
}

/// A slice, one that contains it or is inside of it, and the number of steps between them.
type Pair = (usize, usize, i64);

impl Pairs {
    fn new(tree: &Tree, trace: Arc<OpenTrace>) -> Self {
        let rows = trace.engine().tables.slice.depth.len();
        let start = tree.start.map(|id| usize::try_from(id - trace.first_id()).unwrap_or(usize::MAX));
        let is_done = start.is_some_and(|start| start >= rows);
        let is_inside = match start {
            Some(_) if !is_done && tree.direction == Direction::Down => vec![None; rows],
            _ => Vec::new(),
        };
        let (direction, schema) = (tree.direction, Arc::clone(&tree.schema));
        Self { trace, direction, start, schema, next: 0, is_inside, is_done }
    }

    fn parent(&self, row: usize) -> Option<usize> {
        self.trace.engine().tables.slice.parent_id[row].map(esatto_trace::tables::Row::index)
    }

    fn add_ancestors(&self, row: usize, pairs: &mut Vec<Pair>) {
        let mut at = row;
        for distance in 1.. {
            let Some(parent) = self.parent(at) else { return };
            pairs.push(match (self.direction, self.start) {
                (Direction::Down, None) => (parent, row, distance),
                _ => (row, parent, distance),
            });
            at = parent;
        }
    }

    /// Returns whether a slice is inside of the start. Each slice is looked at a few times.
    fn is_inside(&mut self, row: usize, start: usize) -> bool {
        let (mut path, mut at) = (Vec::new(), row);
        let found = loop {
            if let Some(known) = self.is_inside[at] {
                break known;
            }
            path.push(at);
            match self.parent(at) {
                Some(parent) if parent == start => break true,
                Some(parent) => at = parent,
                None => break false,
            }
        };
        path.into_iter().for_each(|row| self.is_inside[row] = Some(found));
        found
    }

    fn next_pairs(&mut self) -> Vec<Pair> {
        let rows = self.trace.engine().tables.slice.depth.len();
        let mut pairs = Vec::new();
        match (self.direction, self.start) {
            (Direction::Up, Some(start)) => {
                self.is_done = true;
                self.add_ancestors(start, &mut pairs);
            }
            (Direction::Down, Some(start)) => {
                let depth = |pairs: &Self, row: usize| i64::from(pairs.trace.engine().tables.slice.depth[row]);
                while self.next < rows && pairs.len() < BATCH_ROWS {
                    let row = self.next;
                    self.next += 1;
                    if self.is_inside(row, start) {
                        pairs.push((start, row, depth(self, row) - depth(self, start)));
                    }
                }
                self.is_done = self.next == rows;
            }
            (_, None) => {
                while self.next < rows && pairs.len() < BATCH_ROWS {
                    self.add_ancestors(self.next, &mut pairs);
                    self.next += 1;
                }
                self.is_done = self.next == rows;
            }
        }
        pairs
    }

    fn batch(&self, pairs: &[Pair]) -> Result<RecordBatch> {
        let number = |row: usize| u32::try_from(row).expect("a table has less than 2^32 rows");
        let rows: Vec<u32> = pairs.iter().map(|(_, row, _)| number(*row)).collect();
        let columns: Vec<usize> = (0..slices().columns.len()).collect();
        let batch = Arc::clone(&self.trace).read_rows(slices(), &columns, rows)?;
        let id = |row: usize| self.trace.first_id() + i64::from(number(row));
        let starts: ArrayRef = Arc::new(Int64Array::from_iter_values(pairs.iter().map(|(start, ..)| id(*start))));
        let distances: ArrayRef = Arc::new(Int64Array::from_iter_values(pairs.iter().map(|(.., distance)| *distance)));
        let columns = batch.columns().iter().cloned().chain([starts, distances]).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(DataFusionError::from)
    }
}

impl Iterator for Pairs {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_done {
            let pairs = self.next_pairs();
            if !pairs.is_empty() {
                return Some(self.batch(&pairs));
            }
        }
        None
    }
}
