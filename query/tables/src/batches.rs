//! Record batches from columns of the engine.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringViewArray, UInt32Array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use esatto_trace::tables::{Kind, RawValue, Row, Rows, Table};

use crate::catalog::{ColumnDef, Source};
use crate::open_trace::OpenTrace;
use crate::{BATCH_ROWS, Request, TableDef, schema};

/// The rows of a request, batch by batch.
#[derive(Debug)]
pub(crate) struct TableBatches {
    trace: Arc<OpenTrace>,
    request: Request,
    schema: SchemaRef,
    /// The rows, unless they are neighbours.
    list: Option<Vec<u32>>,
    /// Positions in the list, or rows.
    rest: Range<usize>,
}

impl TableBatches {
    pub(crate) fn new(trace: Arc<OpenTrace>, request: Request) -> Result<Self, ArrowError> {
        let schema = Arc::new(schema(request.table).project(&request.columns)?);
        let list = select(&trace, &request);
        let count = list.as_ref().map_or_else(|| trace.base(request.table).rows(), Vec::len);
        let (part, parts) = request.part;
        let rest = count * part / parts..count * (part + 1) / parts;
        Ok(Self { trace, request, schema, list, rest })
    }

    /// Builds a batch of rows by their positions in the engine's table.
    pub(crate) fn of_rows(
        trace: Arc<OpenTrace>,
        table: &'static TableDef,
        columns: &[usize],
        rows: Vec<u32>,
    ) -> Result<RecordBatch, ArrowError> {
        let mut request = Request::all(table);
        request.columns = columns.to_vec();
        let schema = Arc::new(schema(table).project(columns)?);
        let count = rows.len();
        Self { trace, request, schema, list: Some(rows), rest: 0..0 }.batch(0..count)
    }

    fn batch(&self, rows: Range<usize>) -> Result<RecordBatch, ArrowError> {
        let count = rows.len();
        let rows = match &self.list {
            Some(list) => Rows::List(&list[rows]),
            None => Rows::Range(rows),
        };
        let table = self.trace.base(self.request.table);
        let columns = self.request.columns.iter().map(|&column| {
            let column = &self.request.table.columns[column];
            array(&self.trace, table, column, &rows, count)
        });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

impl Iterator for TableBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.end.min(self.rest.start + BATCH_ROWS);
        let rows = self.rest.start..end;
        self.rest.start = end;
        Some(self.batch(rows))
    }
}

/// Returns the rows of a request; `None` for all.
fn select(trace: &OpenTrace, request: &Request) -> Option<Vec<u32>> {
    let table = trace.base(request.table);
    let number = |row: usize| u32::try_from(row).expect("a table has less than 2^32 rows");
    let filter = request.table.filter;
    let mut list = filter.map(|filter| {
        let tables = trace.tables();
        (0..table.rows()).filter(|&row| filter(tables, row)).map(number).collect::<Vec<_>>()
    });
    let is_bounded = request.times != (i64::MIN..=i64::MAX);
    let ts = request.table.column_index("ts").filter(|_| is_bounded || request.is_by_time);
    if let Some(ColumnDef { source: Source::Engine(ts), .. }) = ts.map(|ts| &request.table.columns[ts]) {
        let mut kept = Vec::new();
        let mut next = 0;
        let (mut last, mut is_sorted) = (i64::MIN, true);
        let rows = list.as_deref().map_or_else(|| Rows::Range(0..table.rows()), Rows::List);
        table.scan(*ts, rows, &mut |value| {
            let row = list.as_ref().map_or_else(|| number(next), |list| list[next]);
            next += 1;
            // A row without a time comes first.
            let ts = if let RawValue::Int(ts) = value { Some(ts) } else { None };
            let order = ts.unwrap_or(i64::MIN);
            is_sorted &= last <= order;
            last = order;
            if !is_bounded || ts.is_some_and(|ts| request.times.contains(&ts)) {
                kept.push((order, row));
            }
        });
        let must_sort = request.is_by_time && !is_sorted;
        if is_bounded || must_sort {
            if must_sort {
                kept.sort_by_key(|(ts, _)| *ts);
            }
            list = Some(kept.into_iter().map(|(_, row)| row).collect());
        }
    }
    list
}

fn array(
    trace: &OpenTrace,
    table: &dyn Table,
    column: &ColumnDef,
    rows: &Rows<'_>,
    count: usize,
) -> Result<ArrayRef, ArrowError> {
    let first_id = trace.first_id();
    let id = |row: Row| first_id + i64::try_from(row.index()).expect("a table has less than 2^32 rows");
    let index = match column.source {
        Source::Id => {
            let id = |row: usize| first_id + i64::try_from(row).expect("a table has less than 2^32 rows");
            let ids: Vec<i64> = match rows {
                Rows::Range(rows) => rows.clone().map(id).collect(),
                Rows::List(rows) => rows.iter().map(|row| id(*row as usize)).collect(),
            };
            return Ok(Arc::new(Int64Array::from(ids)));
        }
        Source::Sum(first, second) => {
            let (first, _) = integers(table, first, rows, count, |_| 0, 0);
            let (second, _) = integers(table, second, rows, count, |_| 0, 0);
            let sums = first.into_iter().zip(second).map(|(a, b)| a.saturating_add(b));
            return Ok(Arc::new(Int64Array::from_iter_values(sums)));
        }
        Source::Engine(index) | Source::CpuId(index) => index,
    };
    Ok(match column.kind {
        Kind::Int | Kind::Bool | Kind::Row => {
            let base = if matches!(column.source, Source::CpuId(_)) { first_id } else { 0 };
            let (values, nulls) = integers(table, index, rows, count, id, base);
            Arc::new(Int64Array::try_new(values.into(), nulls)?)
        }
        Kind::Real => {
            let mut validity = Validity::new(count);
            let mut values = Vec::with_capacity(count);
            table.scan(index, rows.clone(), &mut |value| {
                let value = if let RawValue::Real(v) = value { Some(v) } else { None };
                validity.push(value.is_some());
                values.push(value.unwrap_or(0.0));
            });
            Arc::new(Float64Array::try_new(values.into(), validity.finish())?)
        }
        Kind::Text => texts(trace, table, index, rows, count)?,
    })
}

fn integers(
    table: &dyn Table,
    index: usize,
    rows: &Rows<'_>,
    count: usize,
    id: impl Fn(Row) -> i64,
    base: i64,
) -> (Vec<i64>, Option<NullBuffer>) {
    let mut validity = Validity::new(count);
    let mut values = Vec::with_capacity(count);
    table.scan(index, rows.clone(), &mut |value| {
        let value = match value {
            RawValue::Int(v) => Some(base + v),
            RawValue::Row(row) => Some(id(row)),
            _ => None,
        };
        validity.push(value.is_some());
        values.push(value.unwrap_or(0));
    });
    (values, validity.finish())
}

fn texts(
    trace: &OpenTrace,
    table: &dyn Table,
    index: usize,
    rows: &Rows<'_>,
    count: usize,
) -> Result<ArrayRef, ArrowError> {
    let mut validity = Validity::new(count);
    let mut symbols: Vec<u32> = Vec::with_capacity(count);
    let mut words: Vec<Option<&'static str>> = Vec::new();
    table.scan(index, rows.clone(), &mut |value| match value {
        RawValue::Text(symbol) => {
            validity.push(true);
            symbols.push(u32::try_from(symbol.index()).expect("a trace has less than 2^32 strings"));
        }
        RawValue::Word(word) => words.push(Some(word)),
        _ => {
            validity.push(false);
            symbols.push(0);
        }
    });
    if !words.is_empty() {
        return Ok(Arc::new(StringViewArray::from_iter(words)));
    }
    let texts = trace.texts();
    if texts.is_empty() {
        return Ok(Arc::new(StringViewArray::new_null(count)));
    }
    // All views share the texts of the trace.
    take(texts, &UInt32Array::try_new(symbols.into(), validity.finish())?, None)
}

/// Collects which values of a column there are.
struct Validity {
    valid: Vec<bool>,
    has_null: bool,
}

impl Validity {
    fn new(count: usize) -> Self {
        Self { valid: Vec::with_capacity(count), has_null: false }
    }

    fn push(&mut self, is_valid: bool) {
        self.valid.push(is_valid);
        self.has_null |= !is_valid;
    }

    fn finish(self) -> Option<NullBuffer> {
        self.has_null.then(|| NullBuffer::from(self.valid))
    }
}
