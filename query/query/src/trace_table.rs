//! The tables of the traces as tables of DataFusion.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringViewArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Constraint, Constraints, DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use esatto_lake::TRACE_COLUMNS;
use esatto_tables::{OpenTrace, ReadTables as _, Request, TableDef};

use crate::remote::ScanBuilder;
use crate::traces::Traces;

/// Rows for which a second thread is worth its start.
const ROWS_OF_PART: usize = 65_536;

/// A table of all traces.
#[derive(Debug)]
pub(crate) struct TraceTable {
    traces: Arc<Traces>,
    table: &'static TableDef,
    schema: SchemaRef,
    constraints: Constraints,
    has_trace_columns: bool,
}

impl TraceTable {
    pub(crate) fn new(traces: Arc<Traces>, table: &'static TableDef, has_trace_columns: bool) -> Self {
        let own = esatto_tables::schema(table);
        let schema = if has_trace_columns { with_trace_columns(&own) } else { own };
        let keys = table.columns.iter().enumerate().filter(|(_, column)| column.is_key);
        let keys = keys.map(|(index, _)| Constraint::PrimaryKey(vec![index])).collect();
        let constraints = Constraints::new_unverified(keys);
        Self { traces, table, schema, constraints, has_trace_columns }
    }

    /// Returns the numbers of the traces that the filters allow.
    fn select_traces(&self, state: &dyn Session, filters: &[Expr]) -> Result<Vec<usize>> {
        let all: Vec<usize> = (0..self.traces.len()).collect();
        let names_only_file = |filter: &&Expr| {
            let columns = filter.column_refs();
            !columns.is_empty() && columns.iter().all(|column| column.name == TRACE_COLUMNS[0].0)
        };
        let filters: Vec<&Expr> = filters.iter().filter(names_only_file).collect();
        if !self.has_trace_columns || filters.is_empty() {
            return Ok(all);
        }
        let schema = Arc::new(Schema::new(vec![Field::new(TRACE_COLUMNS[0].0, DataType::Utf8View, false)]));
        let paths = all.iter().map(|&number| self.traces.path(number).to_string_lossy().into_owned());
        let files: ArrayRef = Arc::new(StringViewArray::from_iter_values(paths));
        let kept = rows_that_fit(state, &filters, &RecordBatch::try_new(schema, vec![files])?)?;
        Ok(all.into_iter().filter(|&number| kept[number]).collect())
    }
}

/// Returns for each row of a batch whether it fits all filters.
pub(crate) fn rows_that_fit(state: &dyn Session, filters: &[&Expr], batch: &RecordBatch) -> Result<Vec<bool>> {
    let df_schema = DFSchema::try_from(batch.schema())?;
    let mut fits = vec![true; batch.num_rows()];
    for filter in filters {
        // The filter may name the column with the name of the table.
        let filter = datafusion::logical_expr::expr_rewriter::unnormalize_col((*filter).clone());
        let filter = state.create_physical_expr(filter, &df_schema)?;
        let found = filter.evaluate(batch)?.into_array(batch.num_rows())?;
        let found = datafusion::common::cast::as_boolean_array(&found)?;
        fits.iter_mut().zip(found).for_each(|(fits, found)| *fits &= found == Some(true));
    }
    Ok(fits)
}

/// Returns the schema with the columns that tell traces apart.
pub(crate) fn with_trace_columns(schema: &Schema) -> SchemaRef {
    let more = TRACE_COLUMNS.iter().map(|(name, fact)| Arc::new(Field::new(*name, DataType::Utf8View, fact.is_some())));
    Arc::new(Schema::new(schema.fields().iter().cloned().chain(more).collect::<Vec<_>>()))
}

#[async_trait]
impl TableProvider for TraceTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns: Vec<usize> = projection.map_or_else(|| (0..self.schema.fields().len()).collect(), Clone::clone);
        let schema = Arc::new(self.schema.project(&columns)?);
        let traces = self.select_traces(state, filters)?;
        let threads = state.config().target_partitions().max(1);
        let times = filters.iter().fold(i64::MIN..=i64::MAX, |times, filter| intersect(times, &times_of(filter)));
        if let Some(builder) = state.config().get_extension::<ScanBuilder>() {
            let scan = TraceScan::new(Arc::clone(&self.traces), traces, self.table, columns, times)?;
            return builder.build(scan, limit);
        }
        self.traces.note_scan();
        let part = |traces: Vec<usize>, part: (usize, usize)| -> Arc<dyn PartitionStream> {
            Arc::new(TraceScan {
                traces: Arc::clone(&self.traces),
                numbers: traces,
                table: self.table,
                schema: Arc::clone(&schema),
                columns: columns.clone(),
                times: times.clone(),
                part,
                was_read: Arc::default(),
            })
        };
        let parts: Vec<Arc<dyn PartitionStream>> = match traces[..] {
            [only] => {
                let rows = match self.traces.open(only) {
                    Some(trace) => trace.rows(self.table),
                    None => 0,
                };
                let parts = threads.min(rows.div_ceil(ROWS_OF_PART)).max(1);
                (0..parts).map(|at| part(vec![only], (at, parts))).collect()
            }
            _ => {
                let parts = threads.min(traces.len()).max(1);
                // Neighbours are opened at about the same time, also by the other tables of a join.
                (0..parts).map(|at| part(traces.iter().copied().skip(at).step_by(parts).collect(), (0, 1))).collect()
            }
        };
        Ok(Arc::new(StreamingTableExec::try_new(schema, parts, None, [], false, limit)?))
    }
}

fn intersect(a: RangeInclusive<i64>, b: &RangeInclusive<i64>) -> RangeInclusive<i64> {
    *a.start().max(b.start())..=*a.end().min(b.end())
}

/// Returns the times to which a filter restricts `ts`.
fn times_of(filter: &Expr) -> RangeInclusive<i64> {
    let all = i64::MIN..=i64::MAX;
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => intersect(times_of(left), &times_of(right)),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (op, value) = match (&**left, &**right) {
                (Expr::Column(column), Expr::Literal(ScalarValue::Int64(Some(value)), _)) if column.name == "ts" => {
                    (*op, *value)
                }
                (Expr::Literal(ScalarValue::Int64(Some(value)), _), Expr::Column(column)) if column.name == "ts" => {
                    match op.swap() {
                        Some(op) => (op, *value),
                        None => return all,
                    }
                }
                _ => return all,
            };
            match op {
                Operator::Eq => value..=value,
                Operator::Gt | Operator::GtEq => value..=i64::MAX,
                Operator::Lt | Operator::LtEq => i64::MIN..=value,
                _ => all,
            }
        }
        Expr::Between(between) if !between.negated => match (&*between.expr, &*between.low, &*between.high) {
            (
                Expr::Column(column),
                Expr::Literal(ScalarValue::Int64(Some(low)), _),
                Expr::Literal(ScalarValue::Int64(Some(high)), _),
            ) if column.name == "ts" => *low..=*high,
            _ => all,
        },
        _ => all,
    }
}

/// Rows of a table that one thread reads: those of several traces, or a part of those of one trace.
#[derive(Debug, Clone)]
pub struct TraceScan {
    traces: Arc<Traces>,
    numbers: Vec<usize>,
    table: &'static TableDef,
    schema: SchemaRef,
    /// Positions of the columns. Those that tell traces apart follow the others.
    columns: Vec<usize>,
    times: RangeInclusive<i64>,
    part: (usize, usize),
    was_read: Arc<AtomicBool>,
}

impl PartitionStream for TraceScan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let part = self.clone();
        // Recursive statements read the same rows again and again.
        if self.was_read.swap(true, Ordering::AcqRel) {
            self.traces.keep_open();
        }
        // A trace is opened when the one before has been read.
        let batches = self.numbers.clone().into_iter().flat_map(move |number| part.read(number));
        let schema = Arc::clone(&self.schema);
        Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches)))
    }
}

/// Record batches of a scan.
pub type ScanBatches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

impl TraceScan {
    /// Makes a scan of whole traces. `columns` are positions in the table; those that tell traces
    /// apart follow the others.
    ///
    /// # Errors
    ///
    /// There is no such column.
    pub fn new(
        traces: Arc<Traces>,
        numbers: Vec<usize>,
        table: &'static TableDef,
        columns: Vec<usize>,
        times: RangeInclusive<i64>,
    ) -> Result<Self> {
        let schema = with_trace_columns(&esatto_tables::schema(table));
        let schema = Arc::new(schema.project(&columns)?);
        Ok(Self { traces, numbers, table, schema, columns, times, part: (0, 1), was_read: Arc::default() })
    }

    /// Returns the traces.
    pub fn traces(&self) -> &Arc<Traces> {
        &self.traces
    }

    /// Returns the numbers of the traces that are read.
    pub fn numbers(&self) -> &[usize] {
        &self.numbers
    }

    /// Returns the table.
    pub fn table(&self) -> &'static TableDef {
        self.table
    }

    /// Returns the positions of the columns.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Returns the times: rows with a `ts` outside may be left out.
    pub fn times(&self) -> &RangeInclusive<i64> {
        &self.times
    }

    /// Returns names and types of the columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Reads the rows of a trace.
    ///
    /// # Errors
    ///
    /// The file cannot be read. A trace that is damaged has no rows, or those that can be read.
    pub fn read_readable(&self, number: usize) -> Result<ScanBatches, String> {
        match self.traces.open_readable(number)? {
            Some(trace) => Ok(self.read_trace(&trace, number)),
            None => Ok(Box::new(std::iter::empty())),
        }
    }

    fn read(&self, number: usize) -> ScanBatches {
        match self.traces.open_for_scan(number) {
            Some(trace) => self.read_trace(&trace, number),
            None => Box::new(std::iter::empty()),
        }
    }

    fn read_trace(&self, trace: &Arc<OpenTrace>, number: usize) -> ScanBatches {
        let own = self.table.columns.len();
        let mut request = Request::all(self.table);
        request.columns = self.columns.iter().copied().filter(|column| *column < own).collect();
        request.times = self.times.clone();
        request.part = self.part;
        let facts: Vec<(usize, ArrayRef)> = (self.columns.iter().enumerate())
            .filter(|(_, column)| **column >= own)
            .map(|(at, column)| (at, self.fact(trace, number, column - own)))
            .collect();
        let schema = Arc::clone(&self.schema);
        let batches = Arc::clone(trace).read_table(&request);
        Box::new(batches.map(move |batch| {
            let batch = batch?;
            if facts.is_empty() {
                return Ok(batch);
            }
            let (rows, mut columns) = (batch.num_rows(), batch.columns().to_vec());
            let same = UInt32Array::from_value(0, rows);
            for (at, fact) in &facts {
                columns.insert(*at, take(fact, &same, None)?);
            }
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options).map_err(DataFusionError::from)
        }))
    }

    /// Returns a fact about a trace as an array of one value.
    fn fact(&self, trace: &OpenTrace, number: usize, column: usize) -> ArrayRef {
        let value = match TRACE_COLUMNS[column].1 {
            None => Some(self.traces.path(number).to_string_lossy().into_owned()),
            Some(fact) => trace.metadata(fact),
        };
        Arc::new(StringViewArray::from_iter([value]))
    }
}
