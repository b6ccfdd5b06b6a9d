//! The scan of a table of traces, as a source of files. Ballista gives each task some of the files.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _, RecordBatch, RecordBatchOptions};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, exec_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileGroup, FileOpenFuture, FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::object_store::ObjectStore;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, PhysicalExpr};
use esatto_query::TraceScan;
use futures::{FutureExt as _, StreamExt as _};

use crate::wire::Scan;

/// Bytes of traces that are worth a task: it costs some milliseconds, and its rows some files.
const BYTES_OF_PARTITION: u64 = 4 << 20;
/// Partitions of a scan, if there are as many traces, however small they are.
const FEWEST_PARTITIONS: usize = 32;
/// Partitions of a scan.
const MAX_SCAN_PARTITIONS: usize = 1024;

/// Beginning of the names of metrics that tell of damaged traces.
const DAMAGE_METRIC: &str = "esatto damage";
/// Separates the parts of such a name.
const DAMAGE_SEPARATOR: char = '\u{1f}';

/// The number of a trace, as an extension of its file.
#[derive(Debug, Clone, Copy)]
struct TraceNumber(usize);

/// A table of traces as a source of files.
#[derive(Debug, Clone)]
pub(crate) struct TraceSource {
    scan: Arc<TraceScan>,
    schema: TableSchema,
    folder: PathBuf,
    metrics: ExecutionPlanMetricsSet,
}

/// Splits a scan into partitions: one for each trace, or for some if they are small.
pub(crate) fn split(scan: TraceScan, folder: &Path, limit: Option<usize>) -> Scan {
    let numbers = scan.numbers();
    // A file that is not here is an error of the executor, which needs it.
    let size = |number: &usize| std::fs::metadata(scan.traces().path(*number)).map_or(0, |file| file.len());
    let bytes: u64 = numbers.iter().map(size).sum();
    let worth = usize::try_from(bytes / BYTES_OF_PARTITION).unwrap_or(MAX_SCAN_PARTITIONS);
    let count = worth.clamp(FEWEST_PARTITIONS, MAX_SCAN_PARTITIONS).min(numbers.len());
    let part = |at: usize| numbers[numbers.len() * at / count..numbers.len() * (at + 1) / count].to_vec();
    // A plan needs a partition, also if no trace is read.
    let partitions = if count == 0 { vec![Vec::new()] } else { (0..count).map(part).collect() };
    Scan { partitions, folder: folder.to_owned(), limit, scan }
}

/// Returns the plan of a scan.
pub(crate) fn plan(scan: Scan) -> Arc<dyn ExecutionPlan> {
    let Scan { scan, partitions, folder, limit } = scan;
    let group = |numbers: &Vec<usize>| FileGroup::new(numbers.iter().map(|number| file(&scan, *number)).collect());
    let groups = partitions.iter().map(group).collect();
    let schema = TableSchema::from(Arc::clone(scan.schema()));
    let source = TraceSource { schema, folder, metrics: ExecutionPlanMetricsSet::new(), scan: Arc::new(scan) };
    // The object store is not asked: traces are files of the machine.
    let builder = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source));
    DataSourceExec::from_data_source(builder.with_file_groups(groups).with_limit(limit).build())
}

fn file(scan: &TraceScan, number: usize) -> PartitionedFile {
    let mut file = PartitionedFile::new(scan.traces().path(number).to_string_lossy(), 0);
    file.extensions.insert(TraceNumber(number));
    file
}

/// Returns the scan that a plan is, if it is one of traces.
pub(crate) fn of_plan(plan: &dyn ExecutionPlan) -> Option<Scan> {
    let config = plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()?;
    let source = config.file_source().downcast_ref::<TraceSource>()?;
    let number = |file: &PartitionedFile| file.extensions.get::<TraceNumber>().map(|number| number.0);
    let partitions = config.file_groups.iter().map(|group| group.iter().filter_map(number).collect()).collect();
    let (scan, folder) = ((*source.scan).clone(), source.folder.clone());
    Some(Scan { scan, partitions, folder, limit: config.limit })
}

/// Returns the path and the damage that a metric tells of.
pub(crate) fn damage_of_metric(name: &str) -> Option<(PathBuf, String)> {
    let mut parts = name.splitn(3, DAMAGE_SEPARATOR);
    let (DAMAGE_METRIC, path, damage) = (parts.next()?, parts.next()?, parts.next()?) else { return None };
    Some((PathBuf::from(path), damage.to_owned()))
}

impl FileSource for TraceSource {
    fn create_file_opener(
        &self,
        _: Arc<dyn ObjectStore>,
        _: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        Ok(Arc::new(TraceOpener { scan: Arc::clone(&self.scan), metrics: self.metrics.clone(), partition }))
    }

    fn table_schema(&self) -> &TableSchema {
        &self.schema
    }

    fn with_batch_size(&self, _: usize) -> Arc<dyn FileSource> {
        Arc::new(self.clone())
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "trace"
    }

    fn fmt_extra(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ", table={}", self.scan.table().name)
    }

    fn supports_repartitioning(&self) -> bool {
        false
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}

struct TraceOpener {
    scan: Arc<TraceScan>,
    metrics: ExecutionPlanMetricsSet,
    partition: usize,
}

impl FileOpener for TraceOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let Some(number) = file.extensions.get::<TraceNumber>().map(|number| number.0) else {
            return exec_err!("a scan of traces has a file without a number");
        };
        let (scan, metrics, partition) = (Arc::clone(&self.scan), self.metrics.clone(), self.partition);
        let open = async move {
            let path = scan.traces().path(number).display().to_string();
            let batches = match scan.read_readable(number) {
                Ok(batches) => batches,
                Err(error) => return exec_err!("trace {path} on {}: {error}", host_name()),
            };
            if let Some(damage) = scan.traces().defect(number) {
                let name = format!("{DAMAGE_METRIC}{DAMAGE_SEPARATOR}{path}{DAMAGE_SEPARATOR}{damage}");
                MetricBuilder::new(&metrics).counter(name, partition).add(1);
            }
            Ok(futures::stream::iter(batches.map(|batch| batch.and_then(|batch| compact(&batch)))).boxed())
        };
        Ok(open.boxed())
    }
}

/// Returns the name of this machine.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "an executor".to_owned(), |name| name.trim().to_owned())
}

/// Takes the texts of a batch out of those of the trace: between machines a batch travels with all
/// texts that it shares.
fn compact(batch: &RecordBatch) -> Result<RecordBatch> {
    let column = |column: &ArrayRef| match column.data_type() {
        DataType::Utf8View => Arc::new(column.as_string_view().gc()),
        _ => Arc::clone(column),
    };
    let columns = batch.columns().iter().map(column).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_travels_as_the_name_of_a_metric() {
        let name = format!("{DAMAGE_METRIC}\u{1f}/a b/t.pftrace\u{1f}byte 7: it ends \u{1f} here");
        let expected = (PathBuf::from("/a b/t.pftrace"), "byte 7: it ends \u{1f} here".to_owned());
        assert_eq!(damage_of_metric(&name), Some(expected));
        assert_eq!(damage_of_metric("output_rows"), None);
    }
}
