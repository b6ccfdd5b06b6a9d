//! Exports into a folder.
//!
//! Files of a trace are written and synced in a folder of `_staging`, the row of the catalogue
//! last. Then they are renamed, the row last. A staging folder with a row is complete: if its
//! export was killed, the next one renames the rest. One without a row is removed.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::catalogue::TraceEntry;
use crate::layout::{LAKE_FILE, LOCK, LakeFile, SCHEMAS, STAGING, catalogue_path, parse_catalogue_name};
use crate::schema_files::schema_files;
use crate::store::Store;
use crate::{Error, PartitionKey};

/// The row of the catalogue in a staging folder.
pub(crate) const ROW: &str = "row.parquet";

/// The right to write into a lake in a folder.
#[derive(Debug)]
pub(crate) struct FolderWriter {
    root: PathBuf,
    pub(crate) file: LakeFile,
    /// Exports that a crash interrupted and this one completed or took back.
    pub(crate) recovered: Recovered,
    _lock: File,
}

/// Interrupted exports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// Traces that are in the lake now.
    pub completed: usize,
    /// Traces whose files were not all written, so they were removed.
    pub taken_back: usize,
}

impl FolderWriter {
    /// Locks the lake, makes it if there is none, and finishes what a crash interrupted.
    pub(crate) fn open(root: &Path, partition: Option<&[PartitionKey]>, on_wait: &dyn Fn()) -> Result<Self, Error> {
        fs::create_dir_all(root).map_err(Error::io("create", root))?;
        let lake_path = root.join(LAKE_FILE);
        if !lake_path.exists() {
            check_is_free(root)?;
        }
        let lock = lock(root, on_wait)?;
        let name = lake_path.display().to_string();
        let file = match fs::read(&lake_path) {
            Ok(bytes) => LakeFile::parse(&bytes, &name)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => LakeFile::new(partition.unwrap_or_default()),
            Err(error) => return Err(Error::io("read", &lake_path)(error)),
        };
        let mut writer = Self { root: root.to_owned(), file, recovered: Recovered::default(), _lock: lock };
        writer.recover()?;
        writer.write_schemas()?;
        if !lake_path.exists() {
            let text = writer.file.text();
            writer.write_small(LAKE_FILE, &text)?;
        }
        Ok(writer)
    }

    /// Locks a lake that is there, without writing into it.
    pub(crate) fn lock_only(root: &Path) -> Result<Option<File>, Error> {
        let path = root.join(LOCK);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("open", &path)(error)),
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(Error::io("lock", &path)(error)),
        }
    }

    /// Returns the numbers and the hashes of all traces.
    pub(crate) fn present(&self) -> Result<Vec<(u32, String)>, Error> {
        present(&Store::Folder(self.root.clone()))
    }

    /// Makes the folder in which a trace's files are written.
    pub(crate) fn stage(&self, number: u32, sha256: &str) -> Result<PathBuf, Error> {
        let folder = self.root.join(STAGING).join(format!("{number:07}-{sha256}"));
        fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        Ok(folder)
    }

    /// Makes a trace whose files are in its staging folder a part of the lake.
    pub(crate) fn commit(&self, staging: &Path, entry: &TraceEntry) -> Result<(), Error> {
        let row = entry.to_parquet().map_err(Error::parquet("write", staging.join(ROW).display().to_string()))?;
        // From here on, a crash leaves a trace that the next export completes.
        write_durably(staging, ROW, &row)?;
        self.publish(staging, entry)
    }

    fn publish(&self, staging: &Path, entry: &TraceEntry) -> Result<(), Error> {
        let mut folders = BTreeSet::new();
        for file in &entry.tables {
            let from = staging.join(format!("{}.parquet", file.name));
            let to = self.root.join(&file.path);
            let folder = to.parent().expect("it is in the folder of a table").to_owned();
            if !folders.contains(&folder) {
                make_folders(&self.root, &folder)?;
                folders.insert(folder);
            }
            match fs::rename(&from, &to) {
                Ok(()) => {}
                // It was renamed before a crash.
                Err(error) if error.kind() == io::ErrorKind::NotFound && to.exists() => {}
                Err(error) => return Err(Error::io("rename into place", &from)(error)),
            }
        }
        for folder in &folders {
            sync_folder(folder)?;
        }
        let number = u32::try_from(entry.trace_number).expect("numbers are small");
        let to = self.root.join(catalogue_path(number, &entry.sha256));
        let folder = to.parent().expect("it is in the catalogue");
        make_folders(&self.root, folder)?;
        let from = staging.join(ROW);
        fs::rename(&from, &to).map_err(Error::io("rename into place", &from))?;
        sync_folder(folder)?;
        self.discard(staging)
    }

    /// Removes a staging folder.
    pub(crate) fn discard(&self, staging: &Path) -> Result<(), Error> {
        match fs::remove_dir_all(staging) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", staging)(error)),
            _ => Ok(()),
        }
    }

    fn recover(&mut self) -> Result<(), Error> {
        let root = self.root.join(STAGING);
        let entries = match fs::read_dir(&root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Error::io("list", &root)(error)),
        };
        for entry in entries {
            let staging = entry.map_err(Error::io("list", &root))?.path();
            if !staging.is_dir() {
                fs::remove_file(&staging).map_err(Error::io("remove", &staging))?;
                continue;
            }
            let row = staging.join(ROW);
            match fs::read(&row) {
                Ok(bytes) => {
                    let entry = TraceEntry::parse(bytes.into(), &row.display().to_string())?;
                    self.publish(&staging, &entry)?;
                    self.recovered.completed += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // Without files it is what a crash left after the row had been renamed.
                    self.recovered.taken_back += usize::from(has_tables(&staging)?);
                    self.discard(&staging)?;
                }
                Err(error) => return Err(Error::io("read", &row)(error)),
            }
        }
        Ok(())
    }

    fn write_schemas(&self) -> Result<(), Error> {
        for (path, bytes) in schema_files() {
            let is_there = self.root.join(&path).metadata().is_ok_and(|found| found.len() == bytes.len() as u64);
            if !is_there {
                self.write_small(&path, &bytes)?;
            }
        }
        Ok(())
    }

    /// Writes a file that appears when it is whole.
    fn write_small(&self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        let staging = self.root.join(STAGING);
        fs::create_dir_all(&staging).map_err(Error::io("create", &staging))?;
        let to = self.root.join(path);
        let name = path.replace('/', "-");
        let from = staging.join(&name);
        write_durably(&staging, &name, bytes)?;
        let folder = to.parent().expect("it is in the lake");
        make_folders(&self.root, folder)?;
        fs::rename(&from, &to).map_err(Error::io("rename into place", &from))?;
        // The columns of a table can be written again, so they need not survive a crash.
        if path.starts_with(SCHEMAS) { Ok(()) } else { sync_folder(folder) }
    }
}

/// Returns the numbers and the hashes of all traces of a lake.
pub(crate) fn present(store: &Store) -> Result<Vec<(u32, String)>, Error> {
    let prefix = format!("{}/", crate::layout::CATALOGUE);
    let name = |path: &str| {
        let (number, sha256) = parse_catalogue_name(path.strip_prefix(&prefix)?)?;
        Some((number, sha256.to_owned()))
    };
    Ok(store.list(crate::layout::CATALOGUE)?.iter().filter_map(|file| name(&file.path)).collect())
}

fn has_tables(staging: &Path) -> Result<bool, Error> {
    let mut entries = fs::read_dir(staging).map_err(Error::io("list", staging))?;
    Ok(entries.next().is_some())
}

/// Refuses a folder that has other files.
fn check_is_free(root: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(root).map_err(Error::io("list", root))? {
        let name = entry.map_err(Error::io("list", root))?.file_name();
        // A crash can leave these before there is a lake.
        if ![LOCK, STAGING, SCHEMAS].iter().any(|own| name == *own) {
            return Err(Error::layout(format!(
                "{}: it is no lake, but has other files, such as '{}'; name a new folder, or an empty one",
                root.display(),
                name.to_string_lossy()
            )));
        }
    }
    Ok(())
}

fn lock(root: &Path, on_wait: &dyn Fn()) -> Result<File, Error> {
    let path = root.join(LOCK);
    let file = File::options().create(true).append(true).open(&path).map_err(Error::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => on_wait(),
        Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path)(error)),
    }
    file.lock().map_err(Error::io("lock", &path))?;
    Ok(file)
}

/// Makes a folder below the lake's, and all above it. Each one survives a crash.
fn make_folders(root: &Path, folder: &Path) -> Result<(), Error> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().filter(|_| folder != root);
    if let Some(parent) = parent {
        make_folders(root, parent)?;
    }
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(Error::io("create", folder)(error)),
        _ => {}
    }
    parent.map_or(Ok(()), sync_folder)
}

fn sync_folder(folder: &Path) -> Result<(), Error> {
    File::open(folder).and_then(|file| file.sync_all()).map_err(Error::io("sync", folder))
}

/// Writes a file that appears in its folder when it is whole and durable.
fn write_durably(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let temporary = folder.join(format!("{name}.tmp"));
    let written = File::create(&temporary).and_then(|mut file| {
        io::Write::write_all(&mut file, bytes)?;
        file.sync_data()
    });
    written.map_err(Error::io("write", &temporary))?;
    fs::rename(&temporary, folder.join(name)).map_err(Error::io("rename", &temporary))?;
    sync_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::TableFile;
    use crate::{CheckOptions, Lake};

    const TABLES: [&str; 3] = ["process", "slice", "thread"];

    fn open(root: &Path) -> FolderWriter {
        FolderWriter::open(root, None, &|| panic!("nobody else has the lock")).expect("the lake can be opened")
    }

    /// A trace whose files are staged.
    fn stage(writer: &FolderWriter) -> (PathBuf, TraceEntry) {
        let sha256 = "ab".repeat(32);
        let staging = writer.stage(3, &sha256).expect("a folder can be made");
        let mut entry = TraceEntry { trace_number: 3, sha256, schema_version: 1, ..TraceEntry::default() };
        for name in TABLES {
            let table = esatto_tables::table(name).expect("it is a table");
            let bytes = crate::table_file::empty_file(table);
            fs::write(staging.join(format!("{name}.parquet")), &bytes).expect("a file can be written");
            let hash = ring::digest::digest(&ring::digest::SHA256, &bytes);
            entry.tables.push(TableFile {
                name: name.to_owned(),
                path: format!("{name}/trace_date=x/0000003-ab.parquet"),
                rows: 0,
                size: i64::try_from(bytes.len()).expect("it is small"),
                sha256: crate::table_file::hex(hash.as_ref()),
            });
        }
        (staging, entry)
    }

    fn traces(root: &Path) -> usize {
        Lake::open(&root.to_string_lossy()).and_then(|lake| lake.entries()).expect("it is a lake").len()
    }

    fn problems(root: &Path) -> Vec<String> {
        let report = Lake::check(&root.to_string_lossy(), CheckOptions::default()).expect("it is a lake");
        report.problems.into_iter().map(|problem| problem.text).collect()
    }

    #[test]
    fn a_crash_after_any_rename_is_completed() {
        for renamed in 0..=TABLES.len() {
            let folder = tempfile::tempdir().expect("a folder");
            let root = folder.path();
            let writer = open(root);
            let (staging, entry) = stage(&writer);
            write_durably(&staging, ROW, &entry.to_parquet().expect("it is a row")).expect("it can be written");
            for file in &entry.tables[..renamed] {
                let to = root.join(&file.path);
                fs::create_dir_all(to.parent().expect("it has a folder")).expect("a folder can be made");
                fs::rename(staging.join(format!("{}.parquet", file.name)), to).expect("it can be renamed");
            }
            drop(writer);
            // Nothing of it is visible, and the check tells of it.
            assert_eq!(traces(root), 0);
            let found = problems(root);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains("all files were written, but not all are in place"), "{found:?}");
            let writer = open(root);
            assert_eq!(writer.recovered, Recovered { completed: 1, taken_back: 0 });
            assert_eq!(writer.present().expect("it can be listed"), [(3, "ab".repeat(32))]);
            drop(writer);
            assert_eq!((traces(root), problems(root)), (1, Vec::new()));
            assert!(!staging.exists());
        }
    }

    #[test]
    fn a_crash_before_all_files_are_written_is_taken_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let writer = open(root);
        let (staging, _) = stage(&writer);
        fs::write(staging.join("row.parquet.tmp"), "half").expect("a file can be written");
        drop(writer);
        assert_eq!(traces(root), 0);
        assert_eq!(problems(root).len(), 1);
        assert_eq!(open(root).recovered, Recovered { completed: 0, taken_back: 1 });
        assert_eq!((traces(root), problems(root)), (0, Vec::new()));
        assert!(!staging.exists());
    }

    #[test]
    fn a_crash_after_the_last_rename_leaves_an_empty_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let writer = open(root);
        let (staging, entry) = stage(&writer);
        writer.commit(&staging, &entry).expect("it can be committed");
        fs::create_dir(&staging).expect("a folder can be made");
        drop(writer);
        assert_eq!(open(root).recovered, Recovered::default());
        assert_eq!((traces(root), problems(root)), (1, Vec::new()));
    }

    #[test]
    fn a_crash_while_a_lake_is_made_leaves_a_folder_for_a_lake() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        drop(open(root));
        fs::remove_file(root.join("lake.json")).expect("a file can be removed");
        drop(open(root));
        assert_eq!(problems(root), Vec::<String>::new());
    }
}
