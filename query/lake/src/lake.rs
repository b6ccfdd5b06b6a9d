//! A lake that is read.

use std::sync::Arc;

use object_store::ObjectStore;

use crate::Error;
use crate::catalogue::TraceEntry;
use crate::layout::{CATALOGUE, LAKE_FILE, LakeFile, PartitionKey, parse_catalogue_name};
use crate::store::{MAX_SMALL_FILE, Store};

/// A lake.
#[derive(Debug)]
pub struct Lake {
    pub(crate) store: Store,
    pub(crate) file: LakeFile,
}

/// The place of a lake's files, for an engine that reads them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Place {
    /// A folder of this machine, as an absolute path.
    Folder(std::path::PathBuf),
    /// A part of an object store.
    Remote {
        /// The store.
        store: Arc<dyn ObjectStore>,
        /// Its URL, without a path: `s3://bucket`.
        url: String,
        /// The path of the lake in it, without slashes at the ends.
        prefix: String,
    },
}

impl Lake {
    /// Returns whether an argument names a lake rather than a trace: the URL of an object store, or
    /// a folder with a file `lake.json`.
    pub fn is_lake(argument: &str) -> bool {
        match Store::new(argument) {
            Ok(Store::Folder(path)) => path.join(LAKE_FILE).is_file(),
            Ok(Store::Remote(_)) => !crate::url::names_trace(argument),
            Err(_) => false,
        }
    }

    /// Opens the lake in a folder or at a URL.
    ///
    /// # Errors
    ///
    /// There is no lake, it cannot be read, or its version is not known.
    pub fn open(place: &str) -> Result<Self, Error> {
        let store = Store::new(place)?;
        let name = store.show(LAKE_FILE);
        let bytes = store.read_small(LAKE_FILE)?.ok_or_else(|| {
            Error::layout(format!("{place} is no lake: {name} is missing; `esatto export --to {place}` makes one"))
        })?;
        Ok(Self { file: LakeFile::parse(&bytes, &name)?, store })
    }

    /// Returns the partition keys.
    pub fn partition(&self) -> &[PartitionKey] {
        &self.file.partition
    }

    /// Returns the place of its files.
    ///
    /// # Errors
    ///
    /// The folder is not there any more, or the settings of the object store have changed.
    pub fn place(&self) -> Result<Place, Error> {
        match &self.store {
            Store::Folder(path) => Ok(Place::Folder(path.canonicalize().map_err(Error::io("find", path))?)),
            Store::Remote(remote) => Ok(Place::Remote {
                store: remote.another_client()?,
                url: remote.url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/"),
                prefix: remote.prefix.to_string(),
            }),
        }
    }

    /// Reads the catalogue: all traces, in the order of their numbers. Waits for an object store,
    /// so call it outside of asynchronous code.
    ///
    /// # Errors
    ///
    /// A row cannot be read, or its version is not known.
    pub fn entries(&self) -> Result<Vec<TraceEntry>, Error> {
        let mut paths = Vec::new();
        for file in self.store.list(CATALOGUE)? {
            let name = file.path.strip_prefix(CATALOGUE).unwrap_or_default().trim_start_matches('/');
            if parse_catalogue_name(name).is_none() {
                continue;
            }
            if file.size > MAX_SMALL_FILE {
                let name = self.store.show(&file.path);
                return Err(Error::layout(format!("{name} has {} bytes, too many for a row", file.size)));
            }
            paths.push(file.path);
        }
        let rows = self.store.read_all(&paths)?;
        let mut entries = Vec::with_capacity(rows.len());
        for (path, bytes) in paths.iter().zip(rows) {
            // A trace that has been removed meanwhile is not in the lake.
            let Some(bytes) = bytes else { continue };
            entries.push(TraceEntry::parse(bytes, &self.store.show(path))?);
        }
        entries.sort_by_key(|entry| entry.trace_number);
        Ok(entries)
    }
}
