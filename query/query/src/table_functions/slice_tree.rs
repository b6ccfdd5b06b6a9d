//! `ancestors(id)` and `descendants(id)`: the slices around a slice, and inside of it.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use esatto_lake::TraceEntry;
use esatto_tables::{BATCH_ROWS, OpenTrace, TableDef};
use futures::{StreamExt as _, TryStreamExt as _};

use super::{id_argument, lake_reader};
use crate::lake_slices::{LakeSlices, TraceReader};
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
        let start = id_argument(name, args.exprs())?;
        let own = esatto_tables::schema(slices());
        let more = ["start_id", "distance"].map(|name| Arc::new(Field::new(name, DataType::Int64, false)));
        // Files of a lake may lack columns.
        let is_of_lake = self.traces.are_of_lake();
        let own = own.fields().iter().map(|field| match is_of_lake {
            true => Arc::new(field.as_ref().clone().with_nullable(true)),
            false => Arc::clone(field),
        });
        let schema = Arc::new(Schema::new(own.chain(more).collect::<Vec<_>>()));
        let traces = Arc::clone(&self.traces);
        Ok(Arc::new(Tree { traces, direction: self.direction, start, schema }))
    }
}

#[derive(Debug)]
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
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns: Vec<usize> = projection.map_or_else(|| (0..self.schema.fields().len()).collect(), Clone::clone);
        let schema = Arc::new(self.schema.project(&columns)?);
        let part = TreeScan {
            traces: Arc::clone(&self.traces),
            reader: lake_reader(&self.traces, state)?,
            direction: self.direction,
            start: self.start,
            columns,
            schema: Arc::clone(&schema),
        };
        Ok(Arc::new(StreamingTableExec::try_new(schema, vec![Arc::new(part)], None, [], false, limit)?))
    }
}

/// The pairs of all traces, one trace after the other.
#[derive(Debug, Clone)]
struct TreeScan {
    traces: Arc<Traces>,
    /// Reads the slices, if the traces are in a lake.
    reader: Option<TraceReader>,
    direction: Direction,
    start: Option<i64>,
    /// Positions of the columns; `start_id` and `distance` follow those of slices.
    columns: Vec<usize>,
    schema: SchemaRef,
}

impl TreeScan {
    /// Returns the columns of slices.
    fn own_columns(&self) -> Vec<usize> {
        self.columns.iter().copied().filter(|column| *column < slices().columns.len()).collect()
    }

    /// Reads the trees of a lake.
    fn execute_over_lake(&self, reader: &TraceReader, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let lake = reader.lake();
        let entries: Vec<TraceEntry> = match self.start {
            None => lake.entries().to_vec(),
            Some(id) => {
                OpenTrace::number_of_id(id).and_then(|number| lake.entry(number)).cloned().into_iter().collect()
            }
        };
        let (scan, reader) = (self.clone(), reader.clone());
        // A trace is read when the one before is done.
        let batches = futures::stream::iter(entries).then(move |entry| {
            let (scan, reader, context) = (scan.clone(), reader.clone(), Arc::clone(&context));
            async move {
                let slices = LakeSlices::read(&reader, &entry, &scan.own_columns(), &context).await?;
                Ok::<_, DataFusionError>(futures::stream::iter(Pairs::new(&scan, Slices::Lake(slices))))
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches.try_flatten()))
    }
}

impl PartitionStream for TreeScan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        if let Some(reader) = &self.reader {
            return self.execute_over_lake(reader, context);
        }
        let numbers = match self.start {
            None => 0..self.traces.len(),
            Some(id) => match OpenTrace::number_of_id(id).map(|number| number as usize) {
                Some(number) if number < self.traces.len() => number..number + 1,
                _ => 0..0,
            },
        };
        let scan = self.clone();
        let batches = numbers.flat_map(move |number| {
            let trace = scan.traces.open(number);
            let pairs = trace.map(|trace| Pairs::new(&scan, Slices::Trace(trace)));
            pairs.into_iter().flatten()
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), futures::stream::iter(batches)))
    }
}

/// The slices of a trace, by their positions.
enum Slices {
    Trace(Arc<OpenTrace>),
    Lake(LakeSlices),
}

impl Slices {
    fn len(&self) -> usize {
        match self {
            Self::Trace(trace) => trace.engine().tables.slice.depth.len(),
            Self::Lake(slices) => slices.len(),
        }
    }

    fn position(&self, id: i64) -> Option<usize> {
        match self {
            Self::Trace(trace) => usize::try_from(id - trace.first_id()).ok().filter(|at| *at < self.len()),
            Self::Lake(slices) => slices.position(id),
        }
    }

    fn id(&self, at: usize) -> i64 {
        match self {
            Self::Trace(trace) => trace.first_id() + i64::from(row_number(at)),
            Self::Lake(slices) => slices.id(at),
        }
    }

    fn parent(&self, at: usize) -> Option<usize> {
        match self {
            Self::Trace(trace) => trace.engine().tables.slice.parent_id[at].map(esatto_trace::tables::Row::index),
            Self::Lake(slices) => slices.parent(at),
        }
    }

    fn read(&self, columns: &[usize], rows: Vec<u32>) -> Result<RecordBatch> {
        match self {
            Self::Trace(trace) => Ok(Arc::clone(trace).read_rows(slices(), columns, rows)?),
            Self::Lake(slices) => slices.take(rows),
        }
    }
}

fn row_number(at: usize) -> u32 {
    u32::try_from(at).expect("a table has less than 2^32 rows")
}

/// Pairs of slices, of which one contains the other.
struct Pairs {
    slices: Slices,
    direction: Direction,
    start: Option<usize>,
    columns: Vec<usize>,
    own_columns: Vec<usize>,
    schema: SchemaRef,
    /// The next slice whose ancestors are listed.
    next: usize,
    /// Steps from a slice up to the start, by slice.
    inside: Vec<Inside>,
    is_done: bool,
}

/// The place of a slice.
#[derive(Debug, Clone, Copy)]
enum Inside {
    Unknown,
    Outside,
    /// So many steps inside of the start.
    Steps(i64),
}

/// A slice, one that contains it or is inside of it, and the number of steps between them.
type Pair = (usize, usize, i64);

impl Pairs {
    fn new(scan: &TreeScan, slices: Slices) -> Self {
        let start = scan.start.map(|id| slices.position(id));
        let is_done = start == Some(None);
        let inside = match start {
            Some(Some(_)) if scan.direction == Direction::Down => vec![Inside::Unknown; slices.len()],
            _ => Vec::new(),
        };
        Self {
            slices,
            direction: scan.direction,
            start: start.flatten(),
            columns: scan.columns.clone(),
            own_columns: scan.own_columns(),
            schema: Arc::clone(&scan.schema),
            next: 0,
            inside,
            is_done,
        }
    }

    fn add_ancestors(&self, row: usize, pairs: &mut Vec<Pair>) {
        let mut at = row;
        for distance in 1.. {
            let Some(parent) = self.slices.parent(at) else { return };
            pairs.push(match (self.direction, self.start) {
                (Direction::Down, None) => (parent, row, distance),
                _ => (row, parent, distance),
            });
            at = parent;
        }
    }

    /// Returns how many steps a slice is inside of the start; `None` if it is not. Each slice is
    /// looked at a few times.
    fn steps_inside(&mut self, row: usize, start: usize) -> Option<i64> {
        let (mut path, mut at) = (Vec::new(), row);
        let mut found = loop {
            match self.inside[at] {
                Inside::Steps(steps) => break Some(steps),
                Inside::Outside => break None,
                Inside::Unknown => {}
            }
            path.push(at);
            match self.slices.parent(at) {
                Some(parent) if parent == start => break Some(0),
                Some(parent) => at = parent,
                None => break None,
            }
        };
        for row in path.into_iter().rev() {
            found = found.map(|steps| steps + 1);
            self.inside[row] = found.map_or(Inside::Outside, Inside::Steps);
        }
        match self.inside[row] {
            Inside::Steps(steps) => Some(steps),
            Inside::Outside | Inside::Unknown => None,
        }
    }

    fn next_pairs(&mut self) -> Vec<Pair> {
        let rows = self.slices.len();
        let mut pairs = Vec::new();
        match (self.direction, self.start) {
            (Direction::Up, Some(start)) => {
                self.is_done = true;
                self.add_ancestors(start, &mut pairs);
            }
            (Direction::Down, Some(start)) => {
                while self.next < rows && pairs.len() < BATCH_ROWS {
                    let row = self.next;
                    self.next += 1;
                    if let Some(steps) = self.steps_inside(row, start) {
                        pairs.push((start, row, steps));
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
        let rows: Vec<u32> = pairs.iter().map(|(_, row, _)| row_number(*row)).collect();
        let of_slices = match self.own_columns.is_empty() {
            true => Vec::new(),
            false => self.slices.read(&self.own_columns, rows)?.columns().to_vec(),
        };
        let mut of_slices = of_slices.into_iter();
        let own = slices().columns.len();
        let column = |column: &usize| -> ArrayRef {
            if *column < own {
                return of_slices.next().expect("all columns of slices are read");
            }
            Arc::new(match column - own {
                0 => Int64Array::from_iter_values(pairs.iter().map(|(start, ..)| self.slices.id(*start))),
                _ => Int64Array::from_iter_values(pairs.iter().map(|(.., distance)| *distance)),
            })
        };
        let columns = self.columns.iter().map(column).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(pairs.len()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options).map_err(DataFusionError::from)
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
