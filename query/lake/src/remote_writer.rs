//! Exports into an object store.
//!
//! Nothing can be renamed there, so files have their final names from the start, and the row of the
//! catalogue is written last. A number belongs to a trace for good: an export that is repeated
//! writes the same names again.

use std::path::{Path, PathBuf};

use esatto_tables::MAX_TRACES;

use crate::catalogue::TraceEntry;
use crate::layout::{CLAIMS, LAKE_FILE, LakeFile, NUMBERS, catalogue_path};
use crate::schema_files::schema_files;
use crate::store::{Remote, Store};
use crate::{Error, PartitionKey};

/// An export into an object store.
#[derive(Debug)]
pub(crate) struct RemoteWriter {
    pub(crate) store: Store,
    pub(crate) file: LakeFile,
    /// Files are here until they are uploaded.
    folder: tempfile::TempDir,
}

impl RemoteWriter {
    /// Opens the lake, and makes it if there is none.
    pub(crate) fn open(store: Store, partition: Option<&[PartitionKey]>) -> Result<Self, Error> {
        let name = store.show(LAKE_FILE);
        let file = match store.read(LAKE_FILE)? {
            Some(bytes) => LakeFile::parse(&bytes, &name)?,
            None => LakeFile::new(partition.unwrap_or_default()),
        };
        let temporary = std::env::temp_dir();
        let folder = tempfile::Builder::new().prefix("esatto-export-").tempdir();
        let folder = folder.map_err(Error::io("make a folder in", &temporary))?;
        let mut writer = Self { store, file, folder };
        for (path, bytes) in schema_files() {
            writer.remote().create(&path, bytes)?;
        }
        if !writer.remote().create(LAKE_FILE, writer.file.text())? {
            // Another export may have made it.
            if let Some(bytes) = writer.store.read(LAKE_FILE)? {
                writer.file = LakeFile::parse(&bytes, &name)?;
            }
        }
        Ok(writer)
    }

    fn remote(&self) -> &Remote {
        match &self.store {
            Store::Remote(remote) => remote,
            Store::Folder(_) => unreachable!("it is made for an object store"),
        }
    }

    /// Takes a number for a trace, or finds the one that it has.
    pub(crate) fn number(&self, sha256: &str, first: u32) -> Result<u32, Error> {
        let claim = format!("{CLAIMS}/{sha256}");
        if let Some(number) = self.claimed(&claim)? {
            return Ok(number);
        }
        for number in first..MAX_TRACES {
            let path = format!("{NUMBERS}/{number:07}");
            let is_new = self.remote().create(&path, sha256.as_bytes().to_vec())?;
            // A crash may have come before the claim.
            if !is_new && self.store.read(&path)?.as_deref() != Some(sha256.as_bytes()) {
                continue;
            }
            if self.remote().create(&claim, number.to_string().into_bytes())? {
                return Ok(number);
            }
            // Another export was faster with the same trace.
            return self.claimed(&claim)?.ok_or_else(|| self.bad_claim(&claim));
        }
        Err(Error::layout(format!("{}: the lake has {MAX_TRACES} traces; make another one", self.store.show(""))))
    }

    fn claimed(&self, claim: &str) -> Result<Option<u32>, Error> {
        let Some(bytes) = self.store.read(claim)? else { return Ok(None) };
        let number = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok());
        number.filter(|number| *number < MAX_TRACES).map(Some).ok_or_else(|| self.bad_claim(claim))
    }

    fn bad_claim(&self, claim: &str) -> Error {
        Error::layout(format!("{} has no number of a trace; remove it", self.store.show(claim)))
    }

    /// Makes the folder in which a trace's files are written.
    pub(crate) fn stage(&self, number: u32) -> Result<PathBuf, Error> {
        let folder = self.folder.path().join(number.to_string());
        std::fs::create_dir(&folder).map_err(Error::io("create", &folder))?;
        Ok(folder)
    }

    /// Uploads a trace, the row of the catalogue last.
    pub(crate) fn commit(&self, staging: &Path, entry: &TraceEntry) -> Result<(), Error> {
        for file in &entry.tables {
            self.remote().upload(&staging.join(format!("{}.parquet", file.name)), &file.path)?;
        }
        let number = u32::try_from(entry.trace_number).expect("numbers are small");
        let path = catalogue_path(number, &entry.sha256);
        let row = entry.to_parquet().map_err(Error::parquet("write", self.store.show(&path)))?;
        // If there is one, another export has written the same trace meanwhile.
        self.remote().create(&path, row)?;
        self.discard(staging)
    }

    /// Removes a folder of files that were to be uploaded.
    pub(crate) fn discard(&self, staging: &Path) -> Result<(), Error> {
        std::fs::remove_dir_all(staging).map_err(Error::io("remove", staging))
    }
}
