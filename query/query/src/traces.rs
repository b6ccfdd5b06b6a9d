//! The traces of a query: files, which are opened when they are needed, and a bounded cache.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};
use std::time::SystemTime;

use esatto_lake::{fetch, is_url};
use esatto_tables::{ArgTypes, MAX_TRACES, OpenTrace, ReadOptions};

use crate::lake_clocks::LakeClocks;
use crate::lake_table::LakeTraces;

/// The treatment of traces that are damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Broken {
    /// They have no rows.
    Skip,
    /// They have the rows that can be read.
    Keep,
}

/// The traces of a query.
#[derive(Debug)]
pub struct Traces {
    files: BTreeMap<usize, Arc<TraceFile>>,
    broken: Broken,
    /// The folder in which relative paths begin, if it is not that of this process.
    folder: Option<PathBuf>,
    pool: Arc<TracePool>,
    /// There are tables of a lake instead.
    lake: Option<LakeSide>,
    arg_types: OnceLock<HashMap<String, ArgTypes>>,
    /// Traces are read without the table of kernel events.
    is_part: AtomicBool,
    once: Once,
}

/// Tells that traces are read once only, so that none needs to stay open.
#[derive(Debug, Default)]
struct Once {
    /// So far nothing has needed a trace again.
    is_likely: AtomicBool,
    /// Tables of the statement that read traces.
    scans: AtomicUsize,
}

/// The lake that has the tables instead of the traces.
#[derive(Debug, Default)]
struct LakeSide {
    tables: OnceLock<Arc<LakeTraces>>,
    clocks: OnceLock<LakeClocks>,
}

/// Memory that open traces share. A process that answers many queries keeps one: traces stay open
/// from query to query, until their files change.
#[derive(Debug)]
pub struct TracePool {
    /// Bytes of memory that open traces may take.
    memory_limit: usize,
    /// Folders that traces must be in, if only those may be read.
    folders: Option<Vec<PathBuf>>,
    /// Traces are read again when their files change.
    outlives_queries: bool,
    cache: Mutex<Cache>,
    files: Mutex<HashMap<FileKey, Arc<TraceFile>>>,
}

/// The number of a trace, its name, its path, and its treatment if it is damaged.
type FileKey = (usize, PathBuf, PathBuf, Broken);

/// Files that a pool remembers before it forgets those that are not open.
const MAX_POOL_FILES: usize = 65_536;

#[derive(Debug)]
struct TraceFile {
    /// The path as it was named.
    path: PathBuf,
    /// The path from the folder in which it was named.
    location: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: Weak<OpenTrace>,
    is_skipped: bool,
    /// The file could not be read at all.
    is_unreadable: bool,
    defect: Option<String>,
    /// The open trace has no table of kernel events.
    is_part: bool,
    /// Size and time of the file when it was read.
    version: Option<(u64, Option<SystemTime>)>,
}

/// Traces that stay open. The most recent one is last.
#[derive(Debug, Default)]
struct Cache {
    traces: VecDeque<CachedTrace>,
    bytes: usize,
}

#[derive(Debug)]
struct CachedTrace {
    bytes: usize,
    trace: Arc<OpenTrace>,
}

impl TracePool {
    /// Makes a pool for many queries. If `folders` are given, only traces inside of them can be
    /// read.
    ///
    /// # Errors
    ///
    /// A folder cannot be found.
    pub fn new(memory_limit: usize, folders: Option<&[PathBuf]>) -> Result<Arc<Self>, String> {
        let canonical = |folder: &PathBuf| {
            folder.canonicalize().map_err(|error| format!("folder of traces {}: {error}", folder.display()))
        };
        let folders = folders.map(|folders| folders.iter().map(canonical).collect()).transpose()?;
        let pool = Self::of_query(memory_limit);
        Ok(Arc::new(Self { folders, outlives_queries: true, ..pool }))
    }

    fn of_query(memory_limit: usize) -> Self {
        let (cache, files) = (Mutex::default(), Mutex::default());
        Self { memory_limit, folders: None, outlives_queries: false, cache, files }
    }

    fn file(&self, key: FileKey) -> Arc<TraceFile> {
        let mut files = lock(&self.files);
        if files.len() >= MAX_POOL_FILES && !files.contains_key(&key) {
            files.retain(|_, file| Arc::strong_count(file) > 1 || lock(&file.state).open.strong_count() > 0);
        }
        let (path, location) = (key.1.clone(), key.2.clone());
        let file = || Arc::new(TraceFile { path, location, state: Mutex::default() });
        Arc::clone(files.entry(key).or_insert_with(file))
    }
}

impl Traces {
    /// Makes the list of traces. They are not opened yet.
    ///
    /// # Errors
    ///
    /// There are too many.
    pub fn new(paths: Vec<PathBuf>, broken: Broken, memory_limit: usize) -> Result<Self, String> {
        if paths.len() > MAX_TRACES as usize {
            return Err(format!("{} traces: a query can have {MAX_TRACES}; name fewer", paths.len()));
        }
        let file = |path: PathBuf| Arc::new(TraceFile { location: path.clone(), path, state: Mutex::default() });
        let files = paths.into_iter().map(file).enumerate().collect();
        let pool = Arc::new(TracePool::of_query(memory_limit));
        Ok(Self {
            files,
            broken,
            folder: None,
            pool,
            lake: None,
            arg_types: OnceLock::new(),
            is_part: AtomicBool::new(false),
            once: Once::default(),
        })
    }

    /// Makes a list of some traces of a query with their numbers, in the memory of a pool. A trace
    /// is read again if its file has changed. Paths begin in `folder`.
    pub fn in_pool(
        pool: &Arc<TracePool>,
        folder: &Path,
        paths: impl IntoIterator<Item = (usize, PathBuf)>,
        broken: Broken,
    ) -> Self {
        let paths = paths.into_iter().filter(|(number, _)| *number < MAX_TRACES as usize);
        let file = |(number, path): (usize, PathBuf)| {
            // A URL stays one, whatever the folder.
            let is_url = path.to_str().is_some_and(is_url);
            let location = if is_url { path.clone() } else { folder.join(&path) };
            (number, pool.file((number, path, location, broken)))
        };
        let files = paths.map(file).collect();
        let (folder, pool) = (Some(folder.to_owned()), Arc::clone(pool));
        Self {
            files,
            broken,
            folder,
            pool,
            lake: None,
            arg_types: OnceLock::new(),
            is_part: AtomicBool::new(false),
            once: Once::default(),
        }
    }

    /// The traces of a lake, which have tables only.
    pub(crate) fn of_lake() -> Self {
        Self {
            files: BTreeMap::new(),
            broken: Broken::Skip,
            folder: None,
            pool: Arc::new(TracePool::of_query(0)),
            lake: Some(LakeSide::default()),
            arg_types: OnceLock::new(),
            is_part: AtomicBool::new(false),
            once: Once::default(),
        }
    }

    /// Returns whether there are tables of a lake instead.
    pub fn are_of_lake(&self) -> bool {
        self.lake.is_some()
    }

    /// Sets the tables of the lake, which are known after the session.
    pub(crate) fn set_lake(&self, tables: &Arc<LakeTraces>) {
        if let Some(lake) = &self.lake {
            // A session has one lake.
            let _was_known = lake.tables.set(Arc::clone(tables));
        }
    }

    /// Returns the tables of the lake, if there is one.
    pub(crate) fn lake(&self) -> Option<&Arc<LakeTraces>> {
        self.lake.as_ref()?.tables.get()
    }

    /// Returns the clocks of the lake, once they have been read.
    pub(crate) fn lake_clocks(&self) -> Option<&LakeClocks> {
        self.lake.as_ref()?.clocks.get()
    }

    pub(crate) fn set_lake_clocks(&self, clocks: LakeClocks) {
        if let Some(lake) = &self.lake {
            // Two statements read the same.
            let _was_known = lake.clocks.set(clocks);
        }
    }

    /// Reads traces without the table of kernel events from now on.
    pub(crate) fn leave_out_kernel_events(&self) {
        self.is_part.store(true, Ordering::Release);
    }

    /// Reads traces whole from now on, also those that have been read without kernel events.
    pub(crate) fn require_kernel_events(&self) {
        self.is_part.store(false, Ordering::Release);
    }

    /// Begins a statement. After the last one, traces that only one of its tables reads need not
    /// stay open: memory does not grow with their number.
    pub(crate) fn begin_statement(&self, is_last: bool) {
        self.once.scans.store(0, Ordering::Release);
        self.once.is_likely.store(is_last && !self.pool.outlives_queries, Ordering::Release);
    }

    /// Notes that a table of the statement will read traces.
    pub(crate) fn note_scan(&self) {
        if self.once.scans.fetch_add(1, Ordering::AcqRel) > 0 {
            self.keep_open();
        }
    }

    /// Lets traces stay open.
    pub(crate) fn keep_open(&self) {
        self.once.is_likely.store(false, Ordering::Release);
    }

    /// Returns the number of traces.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns whether there are no traces.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the file of a trace.
    ///
    /// # Panics
    ///
    /// There is no trace with this number.
    pub fn path(&self, number: usize) -> &Path {
        &self.files[&number].path
    }

    /// Returns the numbers and the files of the traces.
    pub fn paths(&self) -> impl Iterator<Item = (usize, &Path)> {
        self.files.iter().map(|(number, file)| (*number, &*file.path))
    }

    /// Returns the folder in which relative paths begin, if it is not that of this process.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Returns the treatment of traces that are damaged.
    pub fn broken(&self) -> Broken {
        self.broken
    }

    /// Returns the reason if a trace was found damaged.
    pub fn defect(&self, number: usize) -> Option<String> {
        lock(&self.files.get(&number)?.state).defect.clone()
    }

    /// As [`Self::open`], with an error if the file cannot be read at all.
    ///
    /// # Errors
    ///
    /// The reason, without the path.
    pub fn open_readable(&self, number: usize) -> Result<Option<Arc<OpenTrace>>, String> {
        let trace = self.open(number);
        let state = self.files.get(&number).map(|file| lock(&file.state));
        match state {
            Some(state) if state.is_unreadable => Err(state.defect.clone().unwrap_or_default()),
            _ => Ok(trace),
        }
    }

    /// Returns a trace; `None` if it is broken and has no rows. It stays open.
    pub fn open(&self, number: usize) -> Option<Arc<OpenTrace>> {
        self.keep_open();
        self.open_for_scan(number)
    }

    /// As [`Self::open`], for the rows of a table: it stays open only if others may need it.
    pub(crate) fn open_for_scan(&self, number: usize) -> Option<Arc<OpenTrace>> {
        let file = self.files.get(&number)?;
        let mut state = lock(&file.state);
        let version = if self.pool.outlives_queries { version(&file.location) } else { None };
        if state.version != version || (state.is_unreadable && self.pool.outlives_queries) {
            *state = State { version, ..State::default() };
        }
        if state.is_skipped {
            return None;
        }
        let is_part = self.is_part.load(Ordering::Acquire);
        if let Some(trace) = state.open.upgrade().filter(|_| is_part || !state.is_part) {
            lock(&self.pool.cache).touch(&trace);
            return Some(trace);
        }
        let read_options = match is_part {
            true => ReadOptions::without_kernel_events(),
            false => ReadOptions::default(),
        };
        state.is_part = is_part;
        let trace = match self.read(number, &read_options) {
            Ok(trace) => trace,
            Err(error) => {
                state.defect = Some(error);
                state.is_skipped = true;
                state.is_unreadable = true;
                return None;
            }
        };
        state.defect = trace.damage().map(|damage| damage.to_string());
        // A file without any readable packet is no trace.
        let is_foreign = state.defect.is_some() && trace.is_empty();
        state.is_skipped = state.defect.is_some() && (self.broken == Broken::Skip || is_foreign);
        if state.is_skipped {
            return None;
        }
        let trace = Arc::new(trace);
        state.open = Arc::downgrade(&trace);
        if self.once.is_likely.load(Ordering::Acquire) {
            return Some(trace);
        }
        lock(&self.pool.cache).insert(Arc::clone(&trace), self.pool.memory_limit);
        Some(trace)
    }

    fn read(&self, number: usize, options: &ReadOptions) -> Result<OpenTrace, String> {
        let path = &self.files[&number].location;
        let cannot = |error: io::Error| format!("cannot read it: {error}");
        let number_of = |number| u32::try_from(number).expect("there are few traces");
        if let Some(url) = path.to_str().filter(|text| is_url(text)) {
            // Clients of an executor cannot make it ask other servers.
            if self.pool.folders.is_some() {
                return Err("it is at a URL, and only files in folders may be read".to_owned());
            }
            let limit = u64::try_from(self.pool.memory_limit).unwrap_or(u64::MAX);
            let file = fetch(url, limit).map_err(|error| error.to_string())?;
            return Ok(OpenTrace::read_with(file, number_of(number), options));
        }
        let metadata = std::fs::metadata(path).map_err(cannot)?;
        if metadata.is_dir() {
            return Err("it is a folder".to_owned());
        }
        if let Some(folders) = &self.pool.folders {
            let real = path.canonicalize().map_err(cannot)?;
            if !folders.iter().any(|folder| real.starts_with(folder)) {
                let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
                return Err(format!("it is in none of the folders that may be read: {}", folders.join(", ")));
            }
        }
        if metadata.len() > u64::try_from(self.pool.memory_limit).unwrap_or(u64::MAX) {
            let (size, limit) = (metadata.len() >> 20, self.pool.memory_limit >> 20);
            return Err(format!(
                "it has {size} MiB, more than the {limit} MiB that traces may take in memory; raise --memory-limit"
            ));
        }
        let file = File::open(path).map_err(cannot)?;
        Ok(OpenTrace::read_with(file, number_of(number), options))
    }

    /// Returns the traces that have been found broken: their files, and the reasons.
    pub fn defects(&self) -> Vec<(&Path, String)> {
        let defect = |file: &TraceFile| lock(&file.state).defect.clone();
        self.files.values().filter_map(|file| Some((&*file.path, defect(file)?))).collect()
    }

    /// As [`Self::defects`], without waiting: those of traces that are read right now are left out.
    pub fn known_defects(&self) -> Vec<(&Path, String)> {
        let defect = |file: &TraceFile| match file.state.try_lock() {
            Ok(state) => state.defect.clone(),
            Err(TryLockError::Poisoned(state)) => state.into_inner().defect.clone(),
            Err(TryLockError::WouldBlock) => None,
        };
        self.files.values().filter_map(|file| Some((&*file.path, defect(file)?))).collect()
    }

    /// Returns the number of traces that have no rows because they are broken.
    pub fn skipped(&self) -> usize {
        self.files.values().filter(|file| lock(&file.state).is_skipped).count()
    }

    /// Sets the types of all arguments of all traces, if they are known without reading the traces.
    pub fn set_arg_types(&self, types: HashMap<String, ArgTypes>) {
        // They are the same if they were known before.
        let _were_known = self.arg_types.set(types);
    }

    /// Returns whether the types of all arguments are known.
    pub fn has_arg_types(&self) -> bool {
        self.arg_types.get().is_some()
    }

    /// Returns the types of all arguments of all traces. Reads all traces the first time.
    pub fn arg_types(&self) -> &HashMap<String, ArgTypes> {
        self.arg_types.get_or_init(|| {
            let mut all: HashMap<String, ArgTypes> = HashMap::new();
            for trace in self.files.keys().filter_map(|number| self.open(*number)) {
                for (key, types) in trace.arg_types() {
                    let all = all.entry(key).or_default();
                    all.has_int |= types.has_int;
                    all.has_real |= types.has_real;
                    all.has_text |= types.has_text;
                }
            }
            all
        })
    }
}

impl Cache {
    fn touch(&mut self, trace: &Arc<OpenTrace>) {
        if let Some(at) = self.traces.iter().position(|cached| Arc::ptr_eq(&cached.trace, trace)) {
            let trace = self.traces.remove(at);
            self.traces.extend(trace);
        }
    }

    fn insert(&mut self, trace: Arc<OpenTrace>, limit: usize) {
        let bytes = trace.memory_size();
        self.bytes += bytes;
        self.traces.push_back(CachedTrace { bytes, trace });
        while self.bytes > limit && self.traces.len() > 1 {
            let oldest = self.traces.pop_front().expect("there are several");
            self.bytes -= oldest.bytes;
        }
    }
}

/// Returns the size of a file and the time of its last change.
fn version(path: &Path) -> Option<(u64, Option<SystemTime>)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the files that arguments name: paths, URLs, or patterns with `*`, `?` and `[…]`, sorted,
/// each file once. The second value is true if there can be several.
///
/// # Errors
///
/// A pattern is wrong, or no file fits it.
pub fn find_files(arguments: &[String]) -> Result<(Vec<PathBuf>, bool), String> {
    let mut files = BTreeMap::new();
    let mut next = 0_usize;
    let mut add = |path: PathBuf| {
        files.entry(path).or_insert_with(|| {
            next += 1;
            next
        });
    };
    let mut has_pattern = false;
    for argument in arguments {
        // URLs have no patterns.
        if is_url(argument) {
            add(PathBuf::from(argument));
            continue;
        }
        // A file may have such a character in its name.
        if !argument.contains(['*', '?', '[']) || Path::new(argument).exists() {
            add(PathBuf::from(argument));
            continue;
        }
        has_pattern = true;
        let paths = glob::glob(argument).map_err(|error| format!("pattern '{argument}': {error}"))?;
        // A folder that cannot be listed hides traces: an error, because nothing else tells of it.
        let mut found =
            paths.collect::<Result<Vec<_>, _>>().map_err(|error| format!("pattern '{argument}': {error}"))?;
        found.retain(|path| !path.is_dir());
        if found.is_empty() {
            return Err(format!("no file fits the pattern '{argument}'"));
        }
        found.into_iter().for_each(&mut add);
    }
    let mut files: Vec<(PathBuf, usize)> = files.into_iter().collect();
    files.sort_by_key(|(_, order)| *order);
    Ok((files.into_iter().map(|(path, _)| path).collect(), has_pattern || arguments.len() > 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Session};

    /// Runs a statement over three traces, the last one, and returns how many of them stay open.
    fn open_after(sql: &str, statements: usize) -> usize {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces");
        let names = ["official-v56-deflate", "official-v56-track-events", "official-v56-process-and-sys-stats"];
        let paths = names.map(|name| folder.join(format!("{name}.pftrace"))).to_vec();
        let traces = Traces::new(paths, Broken::Keep, 1 << 30).expect("there are few traces");
        let session = Session::new(traces, &Options::default()).expect("a session");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        session.end_after(statements);
        let statement = &session.prepare(sql).expect("it is SQL")[0];
        let answer = runtime.block_on(session.run(statement)).expect("it runs").expect("it has rows");
        let batches = runtime.block_on(datafusion::physical_plan::common::collect(answer.rows)).expect("rows");
        assert!(batches.iter().any(|batch| batch.num_rows() > 0), "{sql}");
        lock(&session.traces().pool.cache).traces.len()
    }

    #[test]
    fn traces_that_are_read_once_do_not_stay_open() {
        assert_eq!(open_after("select count(*) from slice", 1), 0);
        // Others may come.
        assert_eq!(open_after("select count(*) from slice", 2), 3);
        assert_eq!(open_after("select count(*) from slice", 0), 3);
    }

    #[test]
    fn traces_that_are_read_again_stay_open() {
        for sql in [
            "select count(*) from slice s join track t on s.track_id = t.id",
            "select (select count(*) from slice) + (select count(*) from thread) as n",
            "select extract_arg(arg_set_id, 'debug.round') from slice",
            "with recursive r(n) as (select 1 union all select distinct n + 1 from r, slice where n < 3) select n from r",
        ] {
            assert_eq!(open_after(sql, 1), 3, "{sql}");
        }
    }
}
