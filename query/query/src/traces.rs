//! The traces of a query: files, which are opened when they are needed, and a bounded cache.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use datafusion::common::{DataFusionError, plan_err};
use esatto_lake::{fetch, is_url};
use esatto_tables::{ArgTypes, MAX_TRACES, OpenTrace};

/// The treatment of traces that are damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// They have no rows.
    Skip,
    /// They have the rows that can be read.
    Keep,
}

/// The traces of a query.
#[derive(Debug)]
pub struct Traces {
    files: Vec<TraceFile>,
    broken: Broken,
    /// Bytes of memory that open traces may take.
    memory_limit: usize,
    /// There are tables of a lake instead.
    are_of_lake: bool,
    cache: Mutex<Cache>,
    arg_types: OnceLock<HashMap<String, ArgTypes>>,
}

#[derive(Debug)]
struct TraceFile {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: Weak<OpenTrace>,
    is_skipped: bool,
    defect: Option<String>,
}

/// Traces that stay open. The most recent one is last.
#[derive(Debug, Default)]
struct Cache {
    traces: VecDeque<CachedTrace>,
    bytes: usize,
}

#[derive(Debug)]
struct CachedTrace {
    number: usize,
    bytes: usize,
    /// Keeps the trace open.
    _trace: Arc<OpenTrace>,
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
        let file = |path| TraceFile { path, state: Mutex::default() };
        let files = paths.into_iter().map(file).collect();
        Ok(Self { files, broken, memory_limit, are_of_lake: false, ..Self::of_lake() })
    }

    /// The traces of a lake, which have tables only.
    pub(crate) fn of_lake() -> Self {
        Self {
            files: Vec::new(),
            broken: Broken::Skip,
            memory_limit: 0,
            are_of_lake: true,
            cache: Mutex::default(),
            arg_types: OnceLock::new(),
        }
    }

    pub(crate) fn are_of_lake(&self) -> bool {
        self.are_of_lake
    }

    /// Refuses a function that needs more of a trace than its tables.
    pub(crate) fn require(&self, function: &str, instead: &str) -> Result<(), DataFusionError> {
        if self.are_of_lake {
            return plan_err!("{function}() needs the traces themselves, which are not in a lake; {instead}");
        }
        Ok(())
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
    pub fn path(&self, number: usize) -> &Path {
        &self.files[number].path
    }

    /// Returns a trace; `None` if it is broken and has no rows.
    pub fn open(&self, number: usize) -> Option<Arc<OpenTrace>> {
        let file = &self.files[number];
        let mut state = lock(&file.state);
        if state.is_skipped {
            return None;
        }
        if let Some(trace) = state.open.upgrade() {
            lock(&self.cache).touch(number);
            return Some(trace);
        }
        let trace = match self.read(number) {
            Ok(trace) => trace,
            Err(error) => {
                state.defect = Some(error);
                state.is_skipped = true;
                return None;
            }
        };
        state.defect = defect(&trace);
        // A file without any readable packet is no trace.
        let is_foreign = state.defect.is_some() && is_empty(&trace);
        state.is_skipped = state.defect.is_some() && (self.broken == Broken::Skip || is_foreign);
        if state.is_skipped {
            return None;
        }
        let trace = Arc::new(trace);
        state.open = Arc::downgrade(&trace);
        lock(&self.cache).insert(number, Arc::clone(&trace), self.memory_limit);
        Some(trace)
    }

    fn read(&self, number: usize) -> Result<OpenTrace, String> {
        let path = &self.files[number].path;
        let cannot = |error: io::Error| format!("cannot read it: {error}");
        let number_of = |number| u32::try_from(number).expect("there are few traces");
        if let Some(url) = path.to_str().filter(|text| is_url(text)) {
            let limit = u64::try_from(self.memory_limit).unwrap_or(u64::MAX);
            let file = fetch(url, limit).map_err(|error| error.to_string())?;
            return Ok(OpenTrace::read(file, number_of(number)));
        }
        let metadata = std::fs::metadata(path).map_err(cannot)?;
        if metadata.is_dir() {
            return Err("it is a folder".to_owned());
        }
        if metadata.len() > u64::try_from(self.memory_limit).unwrap_or(u64::MAX) {
            let (size, limit) = (metadata.len() >> 20, self.memory_limit >> 20);
            return Err(format!(
                "it has {size} MiB, more than the {limit} MiB that traces may take in memory; raise --memory-limit"
            ));
        }
        let file = File::open(path).map_err(cannot)?;
        Ok(OpenTrace::read(file, number_of(number)))
    }

    /// Returns the traces that have been found broken: their files, and the reasons.
    pub fn defects(&self) -> Vec<(&Path, String)> {
        let defect = |file: &TraceFile| lock(&file.state).defect.clone();
        self.files.iter().filter_map(|file| Some((&*file.path, defect(file)?))).collect()
    }

    /// Returns the number of traces that have no rows because they are broken.
    pub fn skipped(&self) -> usize {
        self.files.iter().filter(|file| lock(&file.state).is_skipped).count()
    }

    /// Returns the types of all arguments of all traces. Reads all traces the first time.
    pub fn arg_types(&self) -> &HashMap<String, ArgTypes> {
        self.arg_types.get_or_init(|| {
            let mut all: HashMap<String, ArgTypes> = HashMap::new();
            for trace in (0..self.len()).filter_map(|number| self.open(number)) {
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
    fn touch(&mut self, number: usize) {
        if let Some(at) = self.traces.iter().position(|cached| cached.number == number) {
            let trace = self.traces.remove(at);
            self.traces.extend(trace);
        }
    }

    fn insert(&mut self, number: usize, trace: Arc<OpenTrace>, limit: usize) {
        let bytes = trace.memory_size();
        self.bytes += bytes;
        self.traces.push_back(CachedTrace { number, bytes, _trace: trace });
        while self.bytes > limit && self.traces.len() > 1 {
            let oldest = self.traces.pop_front().expect("there are several");
            self.bytes -= oldest.bytes;
        }
    }
}

fn defect(trace: &OpenTrace) -> Option<String> {
    let engine = trace.engine();
    let more = engine.errors.len() as u64 + engine.more_errors;
    let first = engine.errors.first().map(ToString::to_string);
    let first = first.or_else(|| engine.sort_error.as_ref().map(|error| format!("temporary file: {error}")))?;
    Some(if more > 1 { format!("{first} (and {} more errors)", more - 1) } else { first })
}

fn is_empty(trace: &OpenTrace) -> bool {
    let tables = &trace.engine().tables;
    tables.thread.tid.len() <= 1 && tables.process.pid.len() <= 1 && tables.track.name.is_empty()
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
