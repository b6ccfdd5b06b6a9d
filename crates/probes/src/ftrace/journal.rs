//! [`Journal`]: a file that tells the next daemon what a killed one has left in tracefs.
//!
//! A change is written into the journal before it is made, and again when it is undone. The daemon
//! holds a lock on its journal as long as it lives. A later one that gets the lock undoes what is
//! left, and removes the file. Tracefs does not outlive the machine's start, and neither do the
//! folders in which journals are.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::undo::{Entry, left_to_undo};

/// Longest journal that is read. A change takes about 100 bytes; there are some thousand events.
const MAX_JOURNAL_BYTES: u64 = 4 << 20;
/// Journals that are looked at.
const MAX_JOURNALS: usize = 256;

const PREFIX: &str = "ftrace-";
const SUFFIX: &str = ".undo";

/// Folder for journals.
#[derive(Clone, Debug)]
pub(crate) struct JournalFolder {
    /// The first of these that can be made is used.
    candidates: Vec<PathBuf>,
}

/// File with the changes of one user of tracefs. It is removed when all are undone.
#[derive(Debug)]
pub(crate) struct Journal {
    folder: JournalFolder,
    open: Option<(File, PathBuf)>,
    line: Vec<u8>,
    /// There is no folder for journals.
    is_impossible: bool,
}

impl JournalFolder {
    /// The folder of this user on this machine.
    pub(crate) fn of_this_user() -> Self {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("esatto"));
        let candidates = ["/run/esatto/probes".into()].into_iter().chain(runtime).collect();
        Self { candidates }
    }

    /// A folder for tests.
    #[cfg(test)]
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self { candidates: vec![folder] }
    }

    /// Undoes what daemons that were killed have left. Returns the number of changes.
    pub(crate) fn undo_leftovers(&self) -> usize {
        let folders = self.candidates.iter().filter(|folder| is_ours(folder));
        folders.map(|folder| undo_leftovers_in(folder)).sum()
    }

    /// Makes the first folder that can be made. It belongs to this user only: what is written in
    /// it is done with this user's rights.
    fn make(&self) -> Option<&Path> {
        self.candidates.iter().map(PathBuf::as_path).find(|folder| {
            // It may exist.
            let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            is_ours(folder)
        })
    }
}

impl Journal {
    pub(crate) const fn new(folder: JournalFolder) -> Self {
        Self { folder, open: None, line: Vec::new(), is_impossible: false }
    }

    /// Writes a line. Without a journal, changes of a killed process stay.
    pub(crate) fn write(&mut self, entry: &Entry) {
        if self.open.is_none() && !self.is_impossible {
            self.open = self.create();
            self.is_impossible = self.open.is_none();
            if self.is_impossible {
                log::debug!("no folder for the journal of ftrace; if this process is killed, its settings stay");
            }
        }
        if let Some((file, _)) = &mut self.open {
            self.line.clear();
            entry.write_to(&mut self.line);
            if let Err(why) = file.write_all(&self.line) {
                log::debug!("cannot write the journal of ftrace: {why}");
            }
        }
    }

    /// Removes the file, because nothing is left to undo.
    pub(crate) fn clear(&mut self) {
        if let Some((file, path)) = self.open.take() {
            // Before the lock ends.
            if let Err(why) = std::fs::remove_file(&path) {
                log::debug!("cannot remove {}: {why}", path.display());
            }
            drop(file);
        }
    }

    fn create(&self) -> Option<(File, PathBuf)> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let folder = self.folder.make()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{PREFIX}{}-{number}{SUFFIX}", std::process::id()));
        let file = OpenOptions::new().append(true).create(true).truncate(false).mode(0o600).open(&path).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some((file, path))
    }
}

/// True if the folder belongs to this user, and only he can write into it.
fn is_ours(folder: &Path) -> bool {
    let Ok(metadata) = std::fs::symlink_metadata(folder) else { return false };
    metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

fn undo_leftovers_in(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let names = entries.flatten().map(|entry| entry.path());
    let journals = names.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX))
    });
    let mut undone = 0;
    for path in journals.take(MAX_JOURNALS) {
        match undo_leftover(&path) {
            Ok(number) => undone += number,
            Err(why) => log::debug!("cannot read {}: {why}", path.display()),
        }
    }
    undone
}

/// Undoes the changes in a journal whose writer is dead.
fn undo_leftover(path: &Path) -> io::Result<usize> {
    let no_follow = OFlags::NOFOLLOW.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(no_follow).open(path)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(0);
    }
    let mut journal = Vec::new();
    (&file).take(MAX_JOURNAL_BYTES).read_to_end(&mut journal)?;
    let changes = left_to_undo(&journal);
    for undo in &changes {
        if let Err(why) = undo.run() {
            log::debug!("cannot restore {}: {why}", undo.path.display());
        }
    }
    std::fs::remove_file(path)?;
    Ok(changes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftrace::tests::TestFolder;
    use crate::ftrace::undo::{How, Undo};

    #[test]
    fn a_killed_daemon_is_cleaned_up_after_and_a_living_one_is_not() {
        let folder = TestFolder::new("journal");
        let changed = folder.path().join("trace_clock");
        std::fs::write(&changed, "boot").expect("a file");
        let journals = JournalFolder::at(folder.path().join("run"));
        let mut journal = Journal::new(journals.clone());
        journal.write(&Entry::Changed(Undo { path: changed.clone(), how: How::Replace, value: "local".into() }));
        assert_eq!(journals.undo_leftovers(), 0, "its daemon lives");
        // As if it were killed: the file stays, the lock goes.
        journal.open = None;
        assert_eq!(journals.undo_leftovers(), 1);
        assert_eq!(std::fs::read(&changed).expect("a file"), b"local");
        assert_eq!(journals.undo_leftovers(), 0, "once");
    }

    #[test]
    fn a_folder_that_others_can_write_is_not_trusted() {
        let folder = TestFolder::new("journal-open");
        let run = folder.path().join("run");
        std::fs::create_dir(&run).expect("a folder");
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&run, permissions).expect("permissions");
        let mut journal = Journal::new(JournalFolder::at(run.clone()));
        journal.write(&Entry::Undone("/t/x".into()));
        assert_eq!(std::fs::read_dir(&run).expect("a folder").count(), 0);
    }
}
