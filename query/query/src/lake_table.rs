//! A table of a lake: the files that the catalogue names for it.
//!
//! The catalogue was read when the session began, so all tables show the same traces, each whole.
//! The columns that tell traces apart come from the catalogue, not from the files: conditions on
//! them choose files before any is opened.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{Constraint, Constraints, DFSchema, DataFusionError, Result, ScalarValue, Statistics};
use datafusion::datasource::file_format::FileFormat as _;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::object_store::path::Path as ObjectPath;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::prelude::SessionContext;
use datafusion_datasource::TableSchema;
use esatto_lake::{Lake, NUMBER_COLUMN, PartitionKey, Place, TRACE_COLUMNS, TableFile, TraceEntry};
use esatto_tables::TableDef;

use crate::filter_pushdown;
use crate::trace_table::rows_that_fit;

/// The traces of a lake, and the place of their files.
#[derive(Debug)]
pub(crate) struct LakeTraces {
    entries: Vec<TraceEntry>,
    partition: Vec<PartitionKey>,
    url: ObjectStoreUrl,
    /// The path of the lake in its store.
    prefix: String,
}

impl LakeTraces {
    /// Makes the store of a lake known, whose catalogue has been read.
    pub(crate) fn new(lake: &Lake, entries: Vec<TraceEntry>, context: &SessionContext) -> Result<Self> {
        let external = |error: esatto_lake::Error| DataFusionError::External(Box::new(error));
        let (url, prefix) = match lake.place().map_err(external)? {
            Place::Folder(path) => (ObjectStoreUrl::local_filesystem(), path_in_store(&path)?),
            Place::Remote { store, url, prefix } => {
                let url = ObjectStoreUrl::parse(url)?;
                context.register_object_store(url.as_ref(), store);
                (url, prefix)
            }
            place => return datafusion::common::not_impl_err!("a lake at {place:?}"),
        };
        Ok(Self { entries, partition: lake.partition().to_vec(), url, prefix })
    }

    pub(crate) fn entries(&self) -> &[TraceEntry] {
        &self.entries
    }

    /// Returns the trace of a number.
    pub(crate) fn entry(&self, number: u32) -> Option<&TraceEntry> {
        self.entries.iter().find(|entry| entry.trace_number == i64::from(number))
    }

    /// Returns the columns that tell traces apart.
    pub(crate) fn trace_fields(&self) -> Vec<FieldRef> {
        let number = Field::new(NUMBER_COLUMN, DataType::Int64, false);
        let facts = TRACE_COLUMNS.iter().map(|(name, fact)| Field::new(*name, DataType::Utf8View, fact.is_some()));
        let keys = self.partition.iter().map(|key| Field::new(key.column(), DataType::Utf8View, false));
        [number].into_iter().chain(facts).chain(keys).map(Arc::new).collect()
    }

    /// Returns the values of these columns for a trace.
    fn trace_values(&self, entry: &TraceEntry) -> Vec<ScalarValue> {
        let number = ScalarValue::Int64(Some(entry.trace_number));
        let facts = TRACE_COLUMNS.iter().map(|(name, _)| ScalarValue::Utf8View(fact(entry, name).map(str::to_owned)));
        let value = |key: &PartitionKey| ScalarValue::Utf8View(Some(entry.partition_value(*key).to_owned()));
        [number].into_iter().chain(facts).chain(self.partition.iter().map(value)).collect()
    }

    /// Returns the entries that the filters allow. Only those filters count that name no other
    /// columns than those that tell traces apart.
    fn select(&self, state: &dyn Session, filters: &[Expr]) -> Result<Vec<usize>> {
        let fields = self.trace_fields();
        let is_own = |name: &str| fields.iter().any(|field| field.name() == name);
        let names_only_own = |filter: &&Expr| {
            let columns = filter.column_refs();
            !columns.is_empty() && !filter.is_volatile() && columns.iter().all(|column| is_own(&column.name))
        };
        let filters: Vec<&Expr> = filters.iter().filter(names_only_own).collect();
        let all = 0..self.entries.len();
        if filters.is_empty() || self.entries.is_empty() {
            return Ok(all.collect());
        }
        let schema = Arc::new(Schema::new(fields.clone()));
        let numbers = Int64Array::from_iter_values(self.entries.iter().map(|entry| entry.trace_number));
        let mut columns: Vec<ArrayRef> = vec![Arc::new(numbers)];
        for (name, _) in TRACE_COLUMNS {
            columns.push(Arc::new(self.entries.iter().map(|entry| fact(entry, name)).collect::<StringViewArray>()));
        }
        for key in &self.partition {
            let values = self.entries.iter().map(|entry| entry.partition_value(*key));
            columns.push(Arc::new(StringViewArray::from_iter_values(values)));
        }
        let kept = rows_that_fit(state, &filters, &RecordBatch::try_new(schema, columns)?)?;
        Ok(all.filter(|&at| kept[at]).collect())
    }
}

/// Returns the value of a column of [`TRACE_COLUMNS`].
fn fact<'a>(entry: &'a TraceEntry, column: &str) -> Option<&'a str> {
    match column {
        "trace_file" => Some(&entry.trace_file),
        "trace_uuid" => entry.trace_uuid.as_deref(),
        "trace_session_name" => entry.session_name.as_deref(),
        "trace_system_name" => entry.system_name.as_deref(),
        "trace_system_release" => entry.system_release.as_deref(),
        "trace_system_machine" => entry.system_machine.as_deref(),
        _ => None,
    }
}

fn path_in_store(path: &Path) -> Result<String> {
    Ok(ObjectPath::from_absolute_path(path)
        .map_err(|error| DataFusionError::ObjectStore(Box::new(error.into())))?
        .to_string())
}

/// A table of a lake.
#[derive(Debug)]
pub(crate) struct LakeTable {
    traces: Arc<LakeTraces>,
    table: &'static TableDef,
    schema: TableSchema,
    constraints: Constraints,
}

impl LakeTable {
    pub(crate) fn new(traces: Arc<LakeTraces>, table: &'static TableDef) -> Self {
        // Files of earlier versions may lack columns, which are NULL there.
        let own = esatto_tables::schema(table);
        let fields = own.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let own = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let keys = table.columns.iter().enumerate().filter(|(_, column)| column.is_key);
        let keys = keys.map(|(index, _)| Constraint::PrimaryKey(vec![index])).collect();
        let schema = TableSchema::builder(own).with_table_partition_cols(traces.trace_fields()).build();
        Self { traces, table, schema, constraints: Constraints::new_unverified(keys) }
    }

    /// Returns a file for the plan, with the number of its rows: counting them needs no file.
    fn file(&self, entry: &TraceEntry, file: &TableFile) -> Result<PartitionedFile> {
        let path = match &*self.traces.prefix {
            "" => file.path.clone(),
            prefix => format!("{prefix}/{}", file.path),
        };
        let location = ObjectPath::parse(path).map_err(|error| DataFusionError::ObjectStore(Box::new(error.into())))?;
        let mut planned = PartitionedFile::new("", u64::try_from(file.size).unwrap_or(0));
        planned.object_meta.location = location;
        let rows = usize::try_from(file.rows).map_or(Precision::Absent, Precision::Exact);
        let statistics = Statistics { num_rows: rows, ..Statistics::new_unknown(self.schema.file_schema()) };
        Ok(planned.with_partition_values(self.traces.trace_values(entry)).with_statistics(Arc::new(statistics)))
    }

    /// Returns the file of a trace for the plan; `None` if the trace has no rows in this table.
    fn file_of(&self, entry: &TraceEntry) -> Result<Option<PartitionedFile>> {
        let file = entry.tables.iter().find(|file| file.name == self.table.name);
        file.map(|file| self.file(entry, file)).transpose()
    }

    /// Plans a scan of one trace. `columns` are positions in the table.
    pub(crate) async fn scan_trace(
        &self,
        state: &dyn Session,
        entry: &TraceEntry,
        columns: &[usize],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let files = self.file_of(entry)?.into_iter().collect();
        self.plan(state, files, Some(&columns.to_vec()), &[], None).await
    }

    async fn plan(
        &self,
        state: &dyn Session,
        files: Vec<PartitionedFile>,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if files.is_empty() {
            let schema = datafusion::common::project_schema(&self.schema(), projection)?;
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        let rows: Option<usize> = files
            .iter()
            .map(|file| file.statistics.as_ref().and_then(|statistics| statistics.num_rows.get_value().copied()))
            .sum();
        let rows = rows.map_or(Precision::Absent, Precision::Exact);
        let statistics = Statistics { num_rows: rows, ..Statistics::new_unknown(self.schema.table_schema()) };
        let groups = FileGroup::new(files).split_files(state.config().target_partitions().max(1));
        let mut source = ParquetSource::new(self.schema.clone());
        let table_schema = DFSchema::try_from(self.schema())?;
        if let Some(predicate) = filter_pushdown::predicate(state, filters, &table_schema) {
            source = source.with_predicate(predicate);
        }
        let source = Arc::new(source);
        let config = FileScanConfigBuilder::new(self.traces.url.clone(), source)
            .with_file_groups(groups)
            // Without constraints: DataFusion does not number their columns anew in projections, so
            // it leaves out sorts that are needed.
            .with_statistics(statistics)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        let format = ParquetFormat::default().with_options(state.table_options().parquet.clone());
        format.create_physical_plan(state, config).await
    }
}

#[async_trait]
impl TableProvider for LakeTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.schema.table_schema())
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
        let mut files = Vec::new();
        for at in self.traces.select(state, filters)? {
            files.extend(self.file_of(&self.traces.entries[at])?);
        }
        self.plan(state, files, projection, filters, limit).await
    }
}
