//! A trace file and its name. Another program may remove, replace or empty the file while it is
//! written.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::os::file_id::{FileId, has_name, name_of};
use crate::os::fork::StaticMutex;

/// First byte of a trace: the tag of a packet.
const PACKET_TAG: u8 = 0x0a;

/// A regular file that a service writes, under a name that the user knows.
#[derive(Debug)]
pub(crate) struct NamedFile {
    file: File,
    /// As the user gave it.
    name: PathBuf,
    /// The same for a program that changes its current folder.
    path: PathBuf,
    folder: Option<FileId>,
    claim: Mutex<Option<Claim>>,
}

impl NamedFile {
    /// Creates a file for a session, or empties it. Returns it also as a file with a name, if it
    /// has one that leads to a regular file. Fails if another session of this process is writing
    /// it.
    pub(super) fn create(name: &Path) -> Result<(File, Option<Self>), Error> {
        let failed = |error| Error::create_file(name, error);
        let file = File::options().read(true).write(true).create(true).truncate(false).open(name).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() {
            return Ok((file, None));
        }
        let claim = match FileId::of(&meta) {
            Some(id) => Some(Claim::new(id).ok_or_else(|| {
                let what = "another session of this process is writing";
                Error::state(&format!("{what} {}: name another file, or stop that session first", name.display()))
            })?),
            None => None,
        };
        // Not before the claim: the file may be that of the other session.
        file.set_len(0).map_err(failed)?;
        let named = Self::of(&file, name);
        if let Some(named) = &named {
            *named.claim() = claim;
        }
        Ok((file, named))
    }

    /// Returns `None` for pipes and the like.
    pub(crate) fn of(file: &File, name: &Path) -> Option<Self> {
        let (file, path) = (file.try_clone().ok()?, std::path::absolute(name).ok()?);
        let is_file = file.metadata().ok()?.is_file();
        let folder = folder_of(&path);
        is_file.then(|| Self { file, name: name.to_owned(), path, folder, claim: Mutex::default() })
    }

    /// Lets another session write the file.
    pub(super) fn release(&self) {
        *self.claim() = None;
    }

    fn claim(&self) -> MutexGuard<'_, Option<Claim>> {
        self.claim.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails if the name does not lead to the trace any more.
    pub(crate) fn require_trace(&self) -> Result<(), Error> {
        let Ok(own) = self.file.metadata() else { return Ok(()) };
        if has_name(&own) && self.folder != folder_of(&self.path) {
            // The program has moved to another root folder, or the folder was renamed.
            return Ok(());
        }
        let is_lost = match fs::metadata(&self.path) {
            Ok(found) => FileId::of(&found) != FileId::of(&own),
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        let why = if is_lost {
            let place = name_of(&self.file).map(|name| format!("; the trace is in {}", name.display()));
            format!("it was removed or replaced during the recording{}", place.unwrap_or_default())
        } else if self.begins_as_trace() {
            return Ok(());
        } else {
            "another program has emptied it, or has written into it, during the recording".to_owned()
        };
        Err(Error::lost_file(&self.name, &why))
    }

    /// Returns false if the file begins with something else than a packet.
    fn begins_as_trace(&self) -> bool {
        let mut first = [0];
        // A new handle does not move the position at which the service writes.
        let read = File::open(&self.path).and_then(|mut file| file.read(&mut first));
        !matches!(read, Ok(1..)) || first == [PACKET_TAG]
    }
}

/// Returns the number of the folder of a file.
fn folder_of(path: &Path) -> Option<FileId> {
    fs::metadata(path.parent()?).ok().and_then(|meta| FileId::of(&meta))
}

/// Files that sessions of this process are writing.
static CLAIMED: StaticMutex<Vec<FileId>> = StaticMutex::new(Vec::new());

/// The right of one session to write a file.
#[derive(Debug)]
struct Claim(FileId);

impl Claim {
    /// Returns `None` if a session has it.
    fn new(id: FileId) -> Option<Self> {
        let mut claimed = CLAIMED.lock();
        let is_free = !claimed.contains(&id);
        is_free.then(|| {
            claimed.push(id);
            Self(id)
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        CLAIMED.lock().retain(|id| *id != self.0);
    }
}
