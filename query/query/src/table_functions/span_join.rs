//! `span_join('a PARTITIONED x', 'b PARTITIONED x')`: the parts of time that rows of two tables
//! have in common. `span_left_join` keeps the rest of the first table, `span_outer_join` of both.
//!
//! Each table or view has columns `ts` and `dur`. Rows of one table and partition must not overlap.
//! Rows without an end (`dur` is -1) and those with NULL in place of the partition are left out, as
//! in the trace processor.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{cast, concat_batches, take};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err, plan_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};

use esatto_lake::TRACE_COLUMNS;

/// The rest that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Inner,
    Left,
    Outer,
}

#[derive(Debug)]
pub(super) struct SpanJoin {
    mode: Mode,
    has_trace_columns: bool,
}

impl SpanJoin {
    pub(super) fn new(mode: Mode, has_trace_columns: bool) -> Self {
        Self { mode, has_trace_columns }
    }

    fn name(&self) -> &'static str {
        match self.mode {
            Mode::Inner => "span_join",
            Mode::Left => "span_left_join",
            Mode::Outer => "span_outer_join",
        }
    }
}

/// A table of a join.
#[derive(Debug, Clone)]
struct Side {
    name: String,
    provider: Arc<dyn TableProvider>,
    ts: usize,
    dur: usize,
    partition: Option<usize>,
    trace: Option<usize>,
    /// Other columns.
    rest: Vec<usize>,
}

impl TableFunctionImpl for SpanJoin {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let [left, right] = args.exprs() else {
            return plan_err!("{}() takes two tables, as 'name' or 'name PARTITIONED column'", self.name());
        };
        let left = self.side(left, args.session())?;
        let right = self.side(right, args.session())?;
        let mut fields = vec![Field::new("ts", DataType::Int64, false), Field::new("dur", DataType::Int64, false)];
        let partition_name = |side: &Side| Some(side.provider.schema().field(side.partition?).name().clone());
        match (partition_name(&left), partition_name(&right)) {
            (Some(left), Some(right)) if left != right => {
                return plan_err!(
                    "{}(): the partitions '{left}' and '{right}' differ; both tables need a column of the same name",
                    self.name()
                );
            }
            (Some(name), _) | (_, Some(name)) => fields.push(Field::new(name, DataType::Int64, false)),
            (None, None) => {}
        }
        for side in [&left, &right] {
            let schema = side.provider.schema();
            for &column in &side.rest {
                let field = schema.field(column).clone().with_nullable(true);
                if fields.iter().any(|own| own.name() == field.name()) {
                    return plan_err!(
                        "{}(): both tables have a column '{}'; rename it in a view of one of them",
                        self.name(),
                        field.name()
                    );
                }
                fields.push(field);
            }
        }
        if left.trace.is_some() && right.trace.is_some() {
            fields.push(Field::new(TRACE_COLUMNS[0].0, DataType::Utf8View, true));
        }
        let schema = Arc::new(Schema::new(fields));
        Ok(Arc::new(Join { mode: self.mode, left, right, schema }))
    }
}

impl SpanJoin {
    fn side(&self, expr: &Expr, session: &dyn Session) -> Result<Side> {
        let Expr::Literal(text, _) = expr else {
            return plan_err!("{}(): a table is named by a text: 'name PARTITIONED column'", self.name());
        };
        let text = text.try_as_str().flatten().unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().collect();
        let (name, partition) = match words[..] {
            [name] => (name, None),
            [name, word, column] if word.eq_ignore_ascii_case("partitioned") => (name, Some(column)),
            _ => return plan_err!("{}(): '{text}' is not 'name' or 'name PARTITIONED column'", self.name()),
        };
        let plain = name.trim_matches(['"', '`']).to_lowercase();
        let schema = session.catalog_list().catalog("datafusion").and_then(|catalog| catalog.schema("public"));
        let table = schema.and_then(|schema| schema.table(&plain).now_or_never());
        let Some(provider) = table.transpose()?.flatten() else {
            return plan_err!("table '{plain}' not found");
        };
        let columns = provider.schema();
        let find = |column: &str| columns.index_of(column).ok();
        let need = |column: &str| {
            find(column).ok_or_else(|| {
                DataFusionError::Plan(format!("{}(): the table '{name}' has no column '{column}'", self.name()))
            })
        };
        let (ts, dur) = (need("ts")?, need("dur")?);
        let partition = partition.map(|column| need(&column.to_lowercase())).transpose()?;
        let trace = find(TRACE_COLUMNS[0].0).filter(|_| self.has_trace_columns);
        let is_trace_column = |column: usize| {
            self.has_trace_columns && TRACE_COLUMNS.iter().any(|(name, _)| *name == columns.field(column).name())
        };
        let rest = (0..columns.fields().len())
            .filter(|column| ![Some(ts), Some(dur), partition].contains(&Some(*column)) && !is_trace_column(*column))
            .collect();
        Ok(Side { name: name.to_owned(), provider, ts, dur, partition, trace, rest })
    }
}

#[derive(Debug)]
struct Join {
    mode: Mode,
    left: Side,
    right: Side,
    schema: SchemaRef,
}

#[async_trait]
impl TableProvider for Join {
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
        let left = self.left.provider.scan(state, None, &[], None).await?;
        let right = self.right.provider.scan(state, None, &[], None).await?;
        let stream = JoinStream {
            mode: self.mode,
            sides: [self.left.clone(), self.right.clone()],
            plans: [left, right],
            schema: Arc::clone(&self.schema),
        };
        let schema = Arc::clone(&self.schema);
        Ok(Arc::new(StreamingTableExec::try_new(schema, vec![Arc::new(stream)], projection, [], false, limit)?))
    }
}

struct JoinStream {
    mode: Mode,
    sides: [Side; 2],
    plans: [Arc<dyn ExecutionPlan>; 2],
    schema: SchemaRef,
}

impl fmt::Debug for JoinStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinStream").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl PartitionStream for JoinStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (mode, sides, plans) = (self.mode, self.sides.clone(), self.plans.clone());
        let schema = Arc::clone(&self.schema);
        let batches = async move {
            let reservation = MemoryConsumer::new("span_join").register(context.memory_pool());
            let mut names = HashMap::new();
            let [left, right] = plans;
            let left = Spans::collect(&sides[0], left, &context, &reservation, &mut names).await?;
            let right = Spans::collect(&sides[1], right, &context, &reservation, &mut names).await?;
            let pieces = join(mode, &left, &right);
            reservation.try_grow(pieces.len() * size_of::<Piece>())?;
            let output = Output { left, right, schema, pieces, next: 0, names, _reservation: reservation };
            Ok::<_, DataFusionError>(futures::stream::iter(output))
        };
        let batches = futures::stream::once(batches).try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches.boxed()))
    }
}

/// A trace, and a partition of its rows.
type Key = (u32, i64);

/// A row: begin, end, and its position.
type Span = (i64, i64, u32);

/// The rows of a table.
struct Spans {
    rows: RecordBatch,
    columns: Vec<usize>,
    is_partitioned: bool,
    groups: BTreeMap<Key, Vec<Span>>,
}

impl Spans {
    async fn collect(
        side: &Side,
        plan: Arc<dyn ExecutionPlan>,
        context: &Arc<TaskContext>,
        reservation: &MemoryReservation,
        names: &mut HashMap<String, u32>,
    ) -> Result<Self> {
        let schema = plan.schema();
        let mut stream = execute_stream(plan, Arc::clone(context))?;
        let mut batches = Vec::new();
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            // Texts are shared with the trace.
            let bytes = batch.num_rows() * (batch.num_columns() * 12 + size_of::<Span>());
            reservation.try_grow(bytes)?;
            batches.push(batch);
        }
        let rows = concat_batches(&schema, &batches)?;
        let ints = |column: usize| -> Result<Int64Array> {
            Ok(cast(rows.column(column), &DataType::Int64)?.as_primitive::<Int64Type>().clone())
        };
        let (ts, dur) = (ints(side.ts)?, ints(side.dur)?);
        let partition = side.partition.map(ints).transpose()?;
        let trace = side.trace.map(|column| cast(rows.column(column), &DataType::Utf8View)).transpose()?;
        let mut groups: BTreeMap<Key, Vec<Span>> = BTreeMap::new();
        for row in 0..rows.num_rows() {
            let partition = match &partition {
                None => Some(0),
                Some(column) => value(column, row),
            };
            let (Some(ts), Some(dur), Some(partition)) = (value(&ts, row), value(&dur, row), partition) else {
                continue;
            };
            if dur < 0 {
                continue;
            }
            let trace = match &trace {
                None => 0,
                Some(column) => {
                    let name = column.as_string_view().value(row);
                    let next = u32::try_from(names.len()).unwrap_or(u32::MAX);
                    match names.get(name) {
                        Some(number) => *number,
                        None => *names.entry(name.to_owned()).or_insert(next),
                    }
                }
            };
            let row = u32::try_from(row).map_err(|_| DataFusionError::Execution("more than 2^32 rows".to_owned()))?;
            groups.entry((trace, partition)).or_default().push((ts, ts.saturating_add(dur), row));
        }
        for spans in groups.values_mut() {
            spans.sort_by_key(|(start, end, _)| (*start, *end));
            if let Some(pair) = spans.windows(2).find(|pair| pair[1].0 < pair[0].1) {
                return exec_err!(
                    "span join: rows of '{}' overlap at ts {}; name a column that tells them apart: \
                     '{} PARTITIONED column'",
                    side.name,
                    pair[1].0,
                    side.name
                );
            }
        }
        Ok(Self { rows, columns: side.rest.clone(), is_partitioned: side.partition.is_some(), groups })
    }

    /// Returns the rows of a partition. A table without partitions has the same rows in each.
    fn of(&self, key: Key) -> &[Span] {
        let key = if self.is_partitioned { key } else { (key.0, 0) };
        self.groups.get(&key).map_or(&[], Vec::as_slice)
    }
}

fn value(column: &Int64Array, row: usize) -> Option<i64> {
    use arrow::array::Array as _;
    column.is_valid(row).then(|| column.value(row))
}

/// A piece of time, with the rows that are there.
struct Piece {
    key: Key,
    start: i64,
    end: i64,
    left: Option<u32>,
    right: Option<u32>,
}

fn join(mode: Mode, left: &Spans, right: &Spans) -> Vec<Piece> {
    let keys: BTreeSet<Key> = match (left.is_partitioned, right.is_partitioned) {
        (true, false) => left.groups.keys().copied().collect(),
        (false, true) => right.groups.keys().copied().collect(),
        _ => left.groups.keys().chain(right.groups.keys()).copied().collect(),
    };
    let mut pieces = Vec::new();
    for key in keys {
        sweep(mode, key, left.of(key), right.of(key), &mut pieces);
    }
    pieces
}

fn sweep<'s>(mode: Mode, key: Key, mut left: &'s [Span], mut right: &'s [Span], pieces: &mut Vec<Piece>) {
    let mut now = i64::MIN;
    loop {
        let begin = |spans: &[Span]| spans.first().map(|span| span.0.max(now));
        let Some(start) = begin(left).into_iter().chain(begin(right)).min() else { return };
        let (has_left, has_right) = (begin(left) == Some(start), begin(right) == Some(start));
        // A row ends where it ends, or where a row of the other table begins.
        let limit = |spans: &[Span], is_here: bool| spans.first().map(|span| if is_here { span.1 } else { span.0 });
        let end = limit(left, has_left).into_iter().chain(limit(right, has_right)).min().unwrap_or(start);
        let is_kept = match (has_left, has_right) {
            (true, true) => true,
            (true, false) => mode != Mode::Inner,
            (false, _) => mode == Mode::Outer,
        };
        if is_kept {
            let row = |spans: &[Span], is_here: bool| spans.first().filter(|_| is_here).map(|span| span.2);
            let (left, right) = (row(left, has_left), row(right, has_right));
            pieces.push(Piece { key, start, end, left, right });
        }
        now = end;
        for (spans, is_here) in [(&mut left, has_left), (&mut right, has_right)] {
            if is_here && spans[0].1 <= end {
                *spans = &spans[1..];
            }
        }
    }
}

struct Output {
    left: Spans,
    right: Spans,
    schema: SchemaRef,
    pieces: Vec<Piece>,
    next: usize,
    /// Numbers of the traces by name.
    names: HashMap<String, u32>,
    /// Counts the memory until the end.
    _reservation: MemoryReservation,
}

impl Output {
    fn batch(&self, pieces: &[Piece]) -> Result<RecordBatch> {
        let ints =
            |value: fn(&Piece) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(pieces.iter().map(value))) };
        let mut columns = vec![ints(|piece| piece.start), ints(|piece| piece.end - piece.start)];
        if self.left.is_partitioned || self.right.is_partitioned {
            columns.push(ints(|piece| piece.key.1));
        }
        for (spans, row) in
            [(&self.left, (|piece| piece.left) as fn(&Piece) -> Option<u32>), (&self.right, |piece| piece.right)]
        {
            let rows: UInt32Array = pieces.iter().map(row).collect();
            for &column in &spans.columns {
                columns.push(take(spans.rows.column(column), &rows, None)?);
            }
        }
        if self.schema.fields().len() > columns.len() {
            let mut names = vec![""; self.names.len()];
            self.names.iter().for_each(|(name, number)| names[*number as usize] = name);
            let names = pieces.iter().map(|piece| ScalarValue::Utf8View(Some(names[piece.key.0 as usize].to_owned())));
            columns.push(ScalarValue::iter_to_array(names)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(pieces.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

impl Iterator for Output {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.pieces.len() {
            return None;
        }
        let end = self.pieces.len().min(self.next + esatto_tables::BATCH_ROWS);
        let batch = self.batch(&self.pieces[self.next..end]);
        self.next = end;
        Some(batch)
    }
}
