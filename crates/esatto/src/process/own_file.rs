//! The file of a recording: no other process that records itself writes it at the same time.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::diagnostics;
use crate::error::Error;
use crate::os::{file_lock, fork::OwnedByParent};

/// A file that this process writes alone.
///
/// Processes notice each other by a lock on the file. Two that start at the same moment cannot both
/// have it, and it ends with its process, however that ends. The lock has a handle of its own,
/// which forked children close: otherwise they would keep the lock.
pub(super) struct OwnFile {
    pub(super) path: PathBuf,
    _of_this_process: OwnedByParent,
    _lock: File,
}

impl OwnFile {
    /// Creates or empties the file. If another process is writing it, takes a file whose name ends
    /// in the number of this process.
    pub(super) fn create(wanted: &Path) -> Result<(Self, File), Error> {
        if let Some(created) = Self::try_create(wanted.to_owned())? {
            return Ok(created);
        }
        let mut own = wanted.as_os_str().to_owned();
        own.push(format!(".{}", std::process::id()));
        let own = PathBuf::from(own);
        let what = format!("another process is writing {}", wanted.display());
        let Some(created) = Self::try_create(own.clone())? else {
            return Err(Error::state(&format!("{what}, and {} is in use", own.display())));
        };
        diagnostics::say_once(format!("{what}: this one writes {}", own.display()));
        Ok(created)
    }

    /// Returns `None` if another process is writing the file.
    fn try_create(path: PathBuf) -> Result<Option<(Self, File)>, Error> {
        let what = || format!("cannot create {}", path.display());
        let open = || {
            let opened = File::options().read(true).write(true).create(true).truncate(false).open(&path);
            opened.map_err(|error| Error::file(&what(), error))
        };
        let lock = open()?;
        let is_file = lock.metadata().is_ok_and(|metadata| metadata.is_file());
        if is_file {
            // Without locks in this file system, processes do not notice each other.
            if file_lock::lock(&lock).is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
                return Ok(None);
            }
            lock.set_len(0).map_err(|error| Error::file(&what(), error))?;
        }
        let file = if is_file { open()? } else { lock.try_clone().map_err(|error| Error::file(&what(), error))? };
        let _of_this_process = OwnedByParent::of(&lock);
        Ok(Some((Self { path, _of_this_process, _lock: lock }, file)))
    }
}
