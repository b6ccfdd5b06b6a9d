//! Exports of traces into a lake.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use esatto_tables::{Damage, MAX_TRACES};

use crate::catalogue::TraceEntry;
use crate::folder_writer::{FolderWriter, Recovered, present};
use crate::layout::{PartitionKey, SCHEMA_VERSION, derived, file_stem, table_path};
use crate::remote_writer::RemoteWriter;
use crate::store::Store;
use crate::table_file::{self, Times, TraceValues};
use crate::trace_source::{TraceSource, describe};
use crate::{EXPORTER, Error};

/// Options of an export.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExportOptions {
    /// The partition keys of a new lake. They must be those of a lake that is there.
    pub partition: Option<Vec<PartitionKey>>,
    /// Values of partition keys that do not come from the traces.
    pub attributes: BTreeMap<PartitionKey, String>,
    /// Traces that are exported at a time.
    pub jobs: usize,
    /// Damaged traces are exported as far as they can be read.
    pub keeps_broken: bool,
    /// Bytes of memory that files of traces may have, of all jobs together.
    pub memory_limit: u64,
}

impl Default for ExportOptions {
    fn default() -> Self {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        Self { partition: None, attributes: BTreeMap::new(), jobs, keeps_broken: false, memory_limit: 1 << 30 }
    }
}

/// The result of an export.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Traces that are new in the lake.
    pub exported: usize,
    /// Traces that were in the lake before, and further files with the same content.
    pub present: usize,
    /// Traces that are new in the lake, but damaged.
    pub kept_broken: Vec<(PathBuf, String)>,
    /// Files that are left out, and the reasons.
    pub left_out: Vec<(PathBuf, String)>,
    /// Bytes of the new traces.
    pub trace_bytes: u64,
    /// Bytes of their files in the lake.
    pub lake_bytes: u64,
    /// Rows of their tables.
    pub rows: u64,
    /// Traces that exports before this one had left unfinished.
    pub recovered: Recovered,
}

/// An export that has begun.
#[derive(Debug)]
pub struct Exporter {
    writer: Writer,
    options: ExportOptions,
    state: Mutex<State>,
    report: Mutex<Report>,
    has_failed: AtomicBool,
}

#[derive(Debug)]
enum Writer {
    Folder(FolderWriter),
    Remote(RemoteWriter),
}

/// Traces by their hashes, and the next number.
#[derive(Debug, Default)]
struct State {
    traces: HashMap<String, Progress>,
    next: u32,
}

#[derive(Debug, Clone)]
enum Progress {
    Present,
    /// It is being exported, or it is left out, with a reason.
    Begun(Option<String>),
}

impl Exporter {
    /// Opens a lake for an export, or makes it. In a folder, completes or takes back what a crash
    /// interrupted. Waits for another export; `on_wait` is called before.
    ///
    /// # Errors
    ///
    /// The place cannot be written, it has other files, or the partition keys differ.
    pub fn open(place: &str, options: ExportOptions, on_wait: &dyn Fn()) -> Result<Self, Error> {
        let partition = options.partition.as_deref();
        let store = Store::new(place)?;
        let (writer, traces) = match store {
            Store::Folder(root) => {
                let writer = FolderWriter::open(&root, partition, on_wait)?;
                let traces = writer.present()?;
                (Writer::Folder(writer), traces)
            }
            store @ Store::Remote(_) => {
                let writer = RemoteWriter::open(store, partition)?;
                let traces = present(&writer.store)?;
                (Writer::Remote(writer), traces)
            }
        };
        let own = match &writer {
            Writer::Folder(writer) => &writer.file.partition,
            Writer::Remote(writer) => &writer.file.partition,
        };
        if let Some(wanted) = partition.filter(|wanted| wanted != own) {
            return Err(Error::layout(format!(
                "{place}: the lake has the partition keys '{}', not '{}'; leave --partition out, or make another lake",
                names(own),
                names(wanted)
            )));
        }
        let mut report = Report::default();
        if let Writer::Folder(writer) = &writer {
            report.recovered = writer.recovered;
        }
        let next = traces.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
        let traces = traces.into_iter().map(|(_, sha256)| (sha256, Progress::Present)).collect();
        let state = Mutex::new(State { traces, next });
        Ok(Self { writer, options, state, report: Mutex::new(report), has_failed: AtomicBool::new(false) })
    }

    /// Exports files. `on_trace` is called after each of them.
    ///
    /// # Errors
    ///
    /// The lake cannot be written. Traces that are done stay in it.
    pub fn run(self, files: &[PathBuf], on_trace: &(dyn Fn(&Path) + Sync)) -> Result<Report, Error> {
        let next = AtomicUsize::new(0);
        let jobs = self.options.jobs.clamp(1, files.len().max(1));
        let limit = self.options.memory_limit / jobs as u64;
        let duplicates: Mutex<Vec<(PathBuf, String)>> = Mutex::default();
        let work = || -> Result<(), Error> {
            while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.has_failed.load(Ordering::Relaxed) {
                    break;
                }
                if let Some(sha256) = self.export(path, limit)? {
                    lock(&duplicates).push((path.clone(), sha256));
                }
                on_trace(path);
            }
            Ok(())
        };
        let work = || work().inspect_err(|_| self.has_failed.store(true, Ordering::Relaxed));
        std::thread::scope(|scope| {
            let builder = || std::thread::Builder::new().stack_size(STACK);
            let start =
                |_| builder().spawn_scoped(scope, work).map_err(Error::io("start a thread for", Path::new("export")));
            let threads: Vec<_> = (0..jobs).map(start).collect::<Result<_, _>>()?;
            let ends = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            ends.collect::<Vec<_>>().into_iter().collect::<Result<(), Error>>()
        })?;
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut report = self.report.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (path, sha256) in duplicates.into_inner().unwrap_or_else(PoisonError::into_inner) {
            match state.traces.get(&sha256) {
                Some(Progress::Begun(Some(why))) => report.left_out.push((path, why.clone())),
                _ => report.present += 1,
            }
        }
        let order: HashMap<&Path, usize> = files.iter().enumerate().map(|(at, path)| (&**path, at)).collect();
        report.left_out.sort_by_key(|(path, _)| order.get(&**path).copied());
        report.kept_broken.sort_by_key(|(path, _)| order.get(&**path).copied());
        Ok(report)
    }

    /// Exports a file. Returns its hash if another file of this export has the same content.
    fn export(&self, path: &Path, limit: u64) -> Result<Option<String>, Error> {
        let source = match TraceSource::open(path, limit) {
            Ok(source) => source,
            Err(why) => {
                lock(&self.report).left_out.push((path.to_owned(), why));
                return Ok(None);
            }
        };
        let sha256 = source.sha256.clone();
        {
            let mut state = lock(&self.state);
            match state.traces.get(&sha256) {
                None => state.traces.insert(sha256.clone(), Progress::Begun(None)),
                Some(Progress::Present) => {
                    lock(&self.report).present += 1;
                    return Ok(None);
                }
                Some(Progress::Begun(_)) => return Ok(Some(sha256)),
            };
        }
        if let Err(why) = self.export_new(path, source)? {
            lock(&self.state).traces.insert(sha256, Progress::Begun(Some(why.clone())));
            lock(&self.report).left_out.push((path.to_owned(), why));
        }
        Ok(None)
    }

    /// Exports a trace that is new. The inner error is why it is left out.
    fn export_new(&self, path: &Path, source: TraceSource) -> Result<Result<(), String>, Error> {
        let (sha256, size) = (source.sha256.clone(), source.size);
        // Ids need the number before the trace is read. One of a trace that is left out stays free.
        let number = self.take_number(&sha256)?;
        let (trace, damage) = match source.read(number) {
            Ok(read) => read,
            Err(why) => return Ok(Err(why)),
        };
        if let Some(damage) = damage.as_ref().filter(|_| !self.options.keeps_broken) {
            return Ok(Err(damage.to_string()));
        }
        let trace = Arc::new(trace);
        let trace_file = path.to_string_lossy();
        let staging = match &self.writer {
            Writer::Folder(writer) => writer.stage(number, &sha256)?,
            Writer::Remote(writer) => writer.stage(number)?,
        };
        let values = TraceValues::new(&trace, &trace_file);
        let mut times = Times::default();
        let mut tables = Vec::new();
        let written = esatto_tables::tables().iter().try_for_each(|table| {
            if derived(table.name).is_some() || trace.rows(table) == 0 {
                return Ok(());
            }
            let file = staging.join(format!("{}.parquet", table.name));
            tables.push(table_file::write(&trace, table, &values, &file, &mut times)?);
            Ok(())
        });
        let committed = written.and_then(|()| {
            let mut entry = describe(&trace, times, damage.as_ref(), &self.options.attributes);
            let keys = match &self.writer {
                Writer::Folder(writer) => &writer.file.partition,
                Writer::Remote(writer) => &writer.file.partition,
            };
            let partition: Vec<_> = keys.iter().map(|key| (*key, entry.partition_value(*key).to_owned())).collect();
            let stem = file_stem(number, &sha256);
            for file in &mut tables {
                file.path = table_path(&file.name, &partition, &stem);
            }
            entry.sha256.clone_from(&sha256);
            entry.trace_file = trace_file.clone().into_owned();
            entry.size = i64::try_from(size).unwrap_or(i64::MAX);
            entry.rows = tables.iter().map(|file| file.rows).sum();
            entry.bytes = tables.iter().map(|file| file.size).sum();
            entry.schema_version = SCHEMA_VERSION;
            EXPORTER.clone_into(&mut entry.exporter);
            entry.exported_at = now();
            entry.tables = std::mem::take(&mut tables);
            match &self.writer {
                Writer::Folder(writer) => writer.commit(&staging, &entry)?,
                Writer::Remote(writer) => writer.commit(&staging, &entry)?,
            }
            Ok(entry)
        });
        let entry = match committed {
            Ok(entry) => entry,
            Err(error) => {
                // A folder with a row is completed by the next export.
                if !staging.join(crate::folder_writer::ROW).exists() {
                    let _first_error_counts = match &self.writer {
                        Writer::Folder(writer) => writer.discard(&staging),
                        Writer::Remote(writer) => writer.discard(&staging),
                    };
                }
                return Err(error);
            }
        };
        self.note(path, &entry, damage.as_ref());
        Ok(Ok(()))
    }

    fn note(&self, path: &Path, entry: &TraceEntry, damage: Option<&Damage>) {
        lock(&self.state).traces.insert(entry.sha256.clone(), Progress::Present);
        let mut report = lock(&self.report);
        report.exported += 1;
        report.trace_bytes += entry.size.unsigned_abs();
        report.lake_bytes += entry.bytes.unsigned_abs();
        report.rows += entry.rows.unsigned_abs();
        if let Some(damage) = damage {
            report.kept_broken.push((path.to_owned(), damage.to_string()));
        }
    }

    fn take_number(&self, sha256: &str) -> Result<u32, Error> {
        let first = {
            let mut state = lock(&self.state);
            state.next += 1;
            state.next - 1
        };
        match &self.writer {
            Writer::Remote(writer) => writer.number(sha256, first),
            Writer::Folder(_) if first < MAX_TRACES => Ok(first),
            Writer::Folder(_) => Err(Error::layout(format!("the lake has {MAX_TRACES} traces; make another one"))),
        }
    }
}

/// Stack of a thread that reads traces.
const STACK: usize = 16 << 20;

fn names(keys: &[PartitionKey]) -> String {
    keys.iter().map(|key| key.name()).collect::<Vec<_>>().join(",")
}

fn now() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
