//! Checks of a lake: whether every trace has its files, and every file its trace.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;

use bytes::Bytes;
use parquet::file::metadata::ParquetMetaDataReader;
use ring::digest::{SHA256, digest};

use crate::Error;
use crate::catalogue::{TableFile, TraceEntry};
use crate::folder_writer::{FolderWriter, ROW};
use crate::lake::Lake;
use crate::layout::{
    CATALOGUE, CLAIMS, LAKE_FILE, LOCK, NUMBERS, SCHEMAS, STAGING, catalogue_path, parse_catalogue_name,
};
use crate::store::Store;
use crate::table_file::hex;

/// Options of a check.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct CheckOptions {
    /// Only the catalogue and the sizes of files are read.
    pub is_quick: bool,
    /// Problems are repaired: interrupted exports are completed or taken back, files without a
    /// trace are removed, and traces whose files are damaged are removed.
    pub repairs: bool,
}

/// The result of a check.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// Traces of the catalogue.
    pub traces: usize,
    /// Files of tables that are as the catalogue says.
    pub sound_files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Problems, each in a line.
    pub problems: Vec<Problem>,
    /// Another export is writing, so its files are left out.
    pub is_being_written: bool,
}

/// A problem of a lake.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The file or folder.
    pub path: String,
    /// The problem.
    pub text: String,
    /// It does not exist any more.
    pub is_repaired: bool,
}

struct Check<'a> {
    store: &'a Store,
    options: CheckOptions,
    report: CheckReport,
    /// Files of interrupted exports that can be completed.
    pending: HashSet<String>,
}

impl Lake {
    /// Checks the lake in a folder or at a URL.
    ///
    /// # Errors
    ///
    /// There is no lake, its version is not known, or a file cannot be read or repaired.
    pub fn check(place: &str, options: CheckOptions) -> Result<CheckReport, Error> {
        let mut report = CheckReport::default();
        let before = Self::open(place)?;
        let mut lock = None;
        if let Store::Folder(root) = &before.store {
            lock = FolderWriter::lock_only(root)?;
            report.is_being_written = lock.is_none() && root.join(LOCK).exists();
            if options.repairs && report.is_being_written {
                return Err(Error::layout(format!("{place}: an export is writing; repair the lake after it")));
            }
        }
        let mut check = Check { store: &before.store, options, report, pending: HashSet::new() };
        check.interrupted_exports()?;
        if options.repairs
            && let Store::Folder(root) = &before.store
        {
            // Opening it for writing recovers what a crash has left.
            drop(lock.take());
            drop(FolderWriter::open(root, None, &|| {})?);
        }
        check.catalogue_and_files()?;
        Ok(check.report)
    }
}

impl Check<'_> {
    fn problem(&mut self, path: &str, text: impl Into<String>, is_repaired: bool) {
        self.report.problems.push(Problem { path: self.store.show(path), text: text.into(), is_repaired });
    }

    /// Reports staging folders of exports that do not run any more.
    fn interrupted_exports(&mut self) -> Result<(), Error> {
        let Store::Folder(root) = self.store else { return Ok(()) };
        if self.report.is_being_written {
            return Ok(());
        }
        let staging = root.join(STAGING);
        let Ok(entries) = fs::read_dir(&staging) else { return Ok(()) };
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry.map_err(Error::io("list", &staging))?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        let repairs = self.options.repairs;
        for name in names {
            let row = fs::read(staging.join(&name).join(ROW)).ok();
            let entry = row.and_then(|bytes| TraceEntry::parse(bytes.into(), &name).ok());
            let is_complete = entry.is_some();
            self.pending.extend(entry.into_iter().flat_map(|entry| entry.tables).map(|file| file.path));
            let (what, remedy) = if is_complete {
                ("all files were written, but not all are in place", "completes it")
            } else {
                ("its files were not all written", "takes it back")
            };
            let what = format!("an export was interrupted: {what}");
            let text = if repairs { what } else { format!("{what}; the next export, or --repair, {remedy}") };
            self.problem(&format!("{STAGING}/{name}"), text, repairs);
        }
        Ok(())
    }

    fn catalogue_and_files(&mut self) -> Result<(), Error> {
        let files: BTreeMap<String, u64> =
            self.store.list("")?.into_iter().map(|file| (file.path, file.size)).collect();
        let entries = self.entries(&files)?;
        let mut numbers: HashMap<i64, String> = HashMap::new();
        let mut hashes: HashMap<String, String> = HashMap::new();
        let mut known: HashSet<String> = HashSet::new();
        for (path, entry) in &entries {
            self.report.traces += 1;
            if let Some(other) = numbers.insert(entry.trace_number, path.clone()) {
                let text = format!("the number {} is also that of {}", entry.trace_number, self.store.show(&other));
                self.problem(path, text, false);
            }
            if let Some(other) = hashes.insert(entry.sha256.clone(), path.clone()) {
                let text = format!("the same trace is also in {}", self.store.show(&other));
                self.problem(path, text, false);
            }
            let problems = self.check_files(entry, &files)?;
            known.extend(entry.tables.iter().map(|file| file.path.clone()));
            if problems.is_empty() {
                continue;
            }
            let is_repaired = self.options.repairs;
            if is_repaired {
                self.store.remove(path)?;
                for file in entry.tables.iter().filter(|file| files.contains_key(&file.path)) {
                    self.store.remove(&file.path)?;
                }
            }
            for (file, text) in problems {
                let text = if is_repaired {
                    format!("{text}; the trace is removed: export {} again", entry.trace_file)
                } else {
                    format!("{text}; --repair removes the trace, then export {} again", entry.trace_file)
                };
                self.problem(&file, text, is_repaired);
            }
        }
        self.strays(&files, &known, &hashes)
    }

    /// Reads the rows of the catalogue.
    fn entries(&mut self, files: &BTreeMap<String, u64>) -> Result<Vec<(String, TraceEntry)>, Error> {
        let prefix = format!("{CATALOGUE}/");
        let rows: Vec<&String> = files.keys().filter(|path| path.starts_with(&prefix)).collect();
        let mut entries = Vec::new();
        for path in rows {
            let name = &path[prefix.len()..];
            let Some((number, sha256)) = parse_catalogue_name(name) else {
                self.problem(path, "its name is not that of a row of the catalogue; remove it", false);
                continue;
            };
            if files[path] > crate::store::MAX_SMALL_FILE {
                self.problem(path, format!("it has {} bytes, too many for a row", files[path]), false);
                continue;
            }
            let Some(bytes) = self.store.read(path)? else { continue };
            match TraceEntry::parse(bytes, name) {
                Ok(entry) if entry.trace_number == i64::from(number) && entry.sha256 == sha256 => {
                    entries.push((path.clone(), entry));
                }
                Ok(entry) => {
                    let (number, sha256) = (entry.trace_number, &entry.sha256);
                    let text = format!("it is the row of another trace, of the number {number} and the hash {sha256}");
                    self.problem(path, text, false);
                }
                Err(error) => {
                    let is_repaired = self.options.repairs;
                    if is_repaired {
                        self.store.remove(path)?;
                    }
                    let text = error.to_string();
                    let text = text.strip_prefix(&format!("{name}: ")).unwrap_or(&text).to_owned();
                    self.problem(path, text, is_repaired);
                }
            }
        }
        Ok(entries)
    }

    /// Returns the problems of a trace's files.
    fn check_files(
        &mut self,
        entry: &TraceEntry,
        files: &BTreeMap<String, u64>,
    ) -> Result<Vec<(String, String)>, Error> {
        let mut problems = Vec::new();
        let mut add = |file: &TableFile, text: String| problems.push((file.path.clone(), text));
        for file in &entry.tables {
            let listed = files.get(&file.path).copied();
            // A trace may have been exported while the files were listed.
            let content = if listed.is_none() || !self.options.is_quick { self.store.read(&file.path)? } else { None };
            let Some(size) = listed.or_else(|| content.as_ref().map(|bytes| bytes.len() as u64)) else {
                add(file, format!("the file of trace {} is missing", entry.trace_number));
                continue;
            };
            if i64::try_from(size) != Ok(file.size) {
                add(file, format!("it has {size} bytes, but the catalogue says {}", file.size));
                continue;
            }
            if let Some(text) = content.and_then(|bytes| content_problem(file, bytes)) {
                add(file, text);
                continue;
            }
            self.report.sound_files += 1;
            self.report.bytes += size;
        }
        let rows: i64 = entry.tables.iter().fold(0, |sum, file| sum.saturating_add(file.rows));
        if rows != entry.rows {
            let row = catalogue_path(u32::try_from(entry.trace_number).unwrap_or(u32::MAX), &entry.sha256);
            problems.push((row, format!("it says {} rows, but its files have {rows}", entry.rows)));
        }
        Ok(problems)
    }

    /// Reports files that belong to no trace.
    fn strays(
        &mut self,
        files: &BTreeMap<String, u64>,
        known: &HashSet<String>,
        traces: &HashMap<String, String>,
    ) -> Result<(), Error> {
        let is_folder = matches!(self.store, Store::Folder(_));
        for path in files.keys() {
            let top = path.split('/').next().unwrap_or_default();
            let is_own = matches!(top, LAKE_FILE | LOCK | CATALOGUE | SCHEMAS | STAGING | NUMBERS)
                || known.contains(path)
                || self.pending.contains(path)
                || (top == CLAIMS && traces.contains_key(path.get(CLAIMS.len() + 1..).unwrap_or_default()));
            if is_own || self.report.is_being_written {
                continue;
            }
            if top == CLAIMS {
                let text = "the export of this trace did not end, or runs; export the trace again";
                self.problem(path, text, false);
                continue;
            }
            let is_of_table = path.contains('/') && path.ends_with(".parquet");
            let is_repaired = self.options.repairs && is_of_table;
            if is_repaired {
                self.store.remove(path)?;
            }
            let text = match (is_of_table, is_folder) {
                (false, _) => "it is no file of a lake",
                (true, true) => "it belongs to no trace of the catalogue",
                (true, false) => "it belongs to no trace of the catalogue; an export did not end, or runs",
            };
            let remedy = match (is_repaired, is_of_table) {
                (true, _) => "",
                (false, true) => "; --repair removes it",
                (false, false) => "; remove it",
            };
            self.problem(path, format!("{text}{remedy}"), is_repaired);
        }
        Ok(())
    }
}

/// Returns the problem of a file's content.
fn content_problem(file: &TableFile, bytes: Bytes) -> Option<String> {
    if hex(digest(&SHA256, &bytes).as_ref()) != file.sha256 {
        return Some("its content has changed: its hash is not that of the catalogue".to_owned());
    }
    match ParquetMetaDataReader::new().parse_and_finish(&bytes) {
        Err(error) => Some(format!("it is no Parquet: {error}")),
        Ok(metadata) if metadata.file_metadata().num_rows() != file.rows => {
            let rows = metadata.file_metadata().num_rows();
            Some(format!("it has {rows} rows, but the catalogue says {}", file.rows))
        }
        Ok(_) => None,
    }
}
