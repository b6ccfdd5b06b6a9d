//! [`Journal`]: the journal of this machine, which consists of several files.

use core::cmp::Ordering;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags};

use super::field::Values;
use super::file_format::{EntryHeader, FileHeader};
use super::filter::Filter;
use super::folder_watch::FolderWatch;
use super::journal_file::{JournalFile, ReadError};
use super::recent_entries::RecentEntries;
use crate::data_source::SetupError;

/// Difference of the monotonic clock and the time of day since the start, in µs, up to which an
/// entry is of this boot. The time of day may be corrected meanwhile.
const CLOCKS_DIFFER_US: u64 = 1_000_000;

/// Files that are open at a time. There is one for the system, and one for each user who runs
/// programs; a process may have 1024 descriptors.
const MAX_OPEN_FILES: usize = 256;
/// Files of a folder that are looked at. journald keeps 100, unless it is configured otherwise.
const MAX_FILES_PER_FOLDER: usize = 4096;

/// Entries without compressed texts that take as long as a compressed text.
const DECOMPRESSION_COST: usize = 16;

/// A file with a broken beginning that is so young may still be written, so it is tried again.
const YOUNG_SECONDS: u64 = 10;

/// Where the journal is.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// Folders with a folder per machine.
    pub(crate) roots: Vec<PathBuf>,
    /// File with the id of the machine.
    pub(crate) machine_id: PathBuf,
    /// File with the id of the boot.
    pub(crate) boot_id: PathBuf,
}

/// The journal of this machine, from a position on.
#[derive(Debug)]
pub(crate) struct Journal {
    roots: Vec<PathBuf>,
    /// Name of the machine's folder.
    machine_id: String,
    boot_id: u128,
    files: Vec<OpenFile>,
    /// Ids of files that need not be read any more.
    finished: HashSet<u128>,
    recent: RecentEntries,
    /// Nothing if the system has no more of them: then the journal is polled.
    watch: Option<FolderWatch>,
    /// The folders have to be listed.
    is_list_due: bool,
    /// Files were written, or there was too much to read in one turn.
    has_more: bool,
    /// Time of the position, in microseconds of CLOCK_MONOTONIC and CLOCK_REALTIME.
    start_us: Option<(u64, u64)>,
    has_warned_of_number: bool,
}

#[derive(Debug)]
struct OpenFile {
    file: JournalFile<File>,
    path: PathBuf,
    /// Its next entry.
    head: Option<EntryHeader>,
    /// All entries that its header tells of were read.
    is_at_end: bool,
    /// It appeared after the start, so it may contain entries from before.
    is_new: bool,
    /// The last listing had it.
    is_listed: bool,
}

/// Result of [`Journal::read`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Entries that could not be read.
    pub(crate) failed: u64,
}

impl Journal {
    /// Opens the journal after its last entry.
    pub(crate) fn open(places: &Places) -> Result<Self, SetupError> {
        let machine_id = read_id(&places.machine_id)?;
        let boot_id = read_id(&places.boot_id)?;
        let roots: Vec<PathBuf> = places.roots.clone();
        if !roots.iter().any(|root| root.is_dir()) {
            return Err(SetupError(format!("there is no journal in {roots:?}; start systemd-journald")));
        }
        let watch = FolderWatch::new();
        if let Err(why) = &watch {
            log::warn!("cannot watch the journal: {why}; looking for entries every few seconds instead");
        }
        let mut journal = Self {
            roots,
            machine_id: format!("{machine_id:032x}"),
            boot_id,
            files: Vec::new(),
            finished: HashSet::new(),
            recent: RecentEntries::default(),
            watch: watch.ok(),
            is_list_due: true,
            has_more: false,
            start_us: None,
            has_warned_of_number: false,
        };
        let denied = journal.list();
        if let Some(path) = denied.filter(|_| journal.files.is_empty()) {
            let todo = "run as root or add the user to the group systemd-journal";
            return Err(SetupError(format!("cannot read {path:?}: permission denied; {todo}")));
        }
        Ok(journal)
    }

    /// Leaves out all entries before this moment, in microseconds of CLOCK_MONOTONIC and
    /// CLOCK_REALTIME.
    pub(crate) fn start(&mut self, monotonic_us: u64, realtime_us: u64) {
        self.look_for_changes();
        if self.is_list_due {
            self.list();
        }
        self.start_us = Some((monotonic_us, realtime_us));
        self.files.retain_mut(|open| {
            let result = open.file.refresh().and_then(|()| open.file.skip_to_end());
            result.inspect_err(|why| log::warn!("cannot read {:?}: {why}", open.path)).is_ok()
        });
    }

    /// Returns the descriptor that is readable when there may be entries; nothing if the journal
    /// has to be polled.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(FolderWatch::as_fd)
    }

    /// Looks whether files changed. Returns whether [`read`](Self::read) may find entries.
    pub(crate) fn look_for_changes(&mut self) -> bool {
        match &self.watch {
            Some(watch) => {
                let changes = watch.take_changes();
                self.is_list_due |= changes.has_new_names;
                self.has_more |= changes.has_writes;
            }
            None => (self.is_list_due, self.has_more) = (true, true),
        }
        self.has_more
    }

    /// Returns whether the last [`read`](Self::read) left something.
    pub(crate) const fn has_more(&self) -> bool {
        self.has_more
    }

    #[cfg(test)]
    pub(super) fn open_files(&self) -> usize {
        self.files.len()
    }

    /// Passes new entries that match to `write`, in their order, and at most `budget` of the
    /// journal's entries.
    pub(crate) fn read(
        &mut self,
        filter: &Filter,
        mut budget: usize,
        values: &mut Values,
        write: &mut dyn FnMut(&EntryHeader, &Values),
    ) -> Progress {
        let mut progress = Progress::default();
        if self.is_list_due {
            self.list();
        }
        for index in (0..self.files.len()).rev() {
            match self.files[index].file.refresh() {
                Ok(()) => self.files[index].is_at_end = false,
                Err(why) => self.give_up(index, &why, &mut progress),
            }
        }
        self.has_more = loop {
            if budget == 0 {
                break true;
            }
            budget -= 1;
            self.fill_heads(&mut progress);
            let Some(index) = self.earliest() else {
                // After a damaged entry, its file goes on.
                if self.files.iter().all(|open| open.is_at_end) {
                    break false;
                }
                continue;
            };
            let open = &mut self.files[index];
            let Some(entry) = open.head.take() else { continue };
            let is_new = open.is_new;
            if is_new && (is_from_before(&entry, self.boot_id, self.start_us) || self.recent.contains(&entry)) {
                continue;
            }
            if entry.boot_id != self.boot_id && !has_our_clocks(&entry, self.start_us) {
                progress.failed += 1;
                continue;
            }
            let is_wanted = open.file.read_values(filter, values);
            budget = budget.saturating_sub(open.file.decompressions() * DECOMPRESSION_COST);
            if is_wanted {
                write(&entry, values);
                self.recent.add(&entry);
            }
        };
        self.close_finished();
        progress
    }

    /// Reads the next entry of each file. A damaged entry takes the turn of its file.
    fn fill_heads(&mut self, progress: &mut Progress) {
        for index in (0..self.files.len()).rev() {
            let open = &mut self.files[index];
            if open.head.is_some() || open.is_at_end {
                continue;
            }
            match open.file.next() {
                Ok(Some(entry)) => open.head = Some(entry),
                Ok(None) => open.is_at_end = true,
                Err(ReadError::Entry) => progress.failed += 1,
                Err(ReadError::File(why)) => self.give_up(index, &why, progress),
            }
        }
    }

    /// Returns the file whose next entry is the first one of all.
    fn earliest(&self) -> Option<usize> {
        let heads = self.files.iter().enumerate().filter_map(|(index, open)| Some((index, open, open.head.as_ref()?)));
        let order = |(_, a, first): &(usize, &OpenFile, &EntryHeader),
                     (_, b, second): &(usize, &OpenFile, &EntryHeader)| {
            order_of((a.file.header(), first), (b.file.header(), second))
        };
        heads.min_by(order).map(|(index, ..)| index)
    }

    /// Closes files to which nothing is appended any more.
    fn close_finished(&mut self) {
        let finished = &mut self.finished;
        self.files.retain(|open| {
            let is_read = open.is_at_end && open.head.is_none();
            if is_read && open.file.header().is_archived {
                finished.insert(open.file.header().file_id);
                return false;
            }
            open.is_listed || !is_read
        });
    }

    fn give_up(&mut self, index: usize, why: &dyn core::fmt::Display, progress: &mut Progress) {
        let open = self.files.swap_remove(index);
        log::warn!("cannot read more of {:?}: {why}", open.path);
        progress.failed += 1;
        self.finished.insert(open.file.header().file_id);
    }

    /// Opens the files that are not open yet. Returns the path of a file that may not be read.
    fn list(&mut self) -> Option<PathBuf> {
        self.is_list_due = false;
        let mut denied = None;
        let mut listed = HashSet::new();
        for open in &mut self.files {
            open.is_listed = false;
        }
        for root in self.roots.clone() {
            let folder = root.join(&self.machine_id);
            // First, so that no change is missed.
            if let Some(watch) = &self.watch {
                watch.watch_names(&root);
                watch.watch_files(&folder);
            }
            for path in journal_files(&folder) {
                match self.open_file(&path) {
                    Ok(Some(id)) => {
                        listed.insert(id);
                    }
                    Ok(None) => {}
                    Err(why) if why.kind() == ErrorKind::PermissionDenied => denied = Some(path),
                    Err(why) => log::warn!("cannot read {path:?}: {why}"),
                }
            }
        }
        self.finished.retain(|id| listed.contains(id));
        denied
    }

    /// Opens a file, unless it is known or finished. Returns its id; nothing if the file must be
    /// looked at again.
    fn open_file(&mut self, path: &Path) -> io::Result<Option<u128>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let mut file = match JournalFile::open(file) {
            Ok(file) => file,
            Err(why) => {
                let age = metadata.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
                if age.is_none_or(|age| age.as_secs() < YOUNG_SECONDS) {
                    self.is_list_due = true;
                    return Ok(None);
                }
                return Err(io::Error::other(why));
            }
        };
        let &FileHeader { file_id, is_archived, last_realtime_us, .. } = file.header();
        if let Some(open) = self.files.iter_mut().find(|open| open.file.header().file_id == file_id) {
            open.is_listed = true;
            // journald renames a file when it starts the next one.
            open.path = path.to_owned();
            return Ok(Some(file_id));
        }
        let has_new_entries = self.start_us.is_some_and(|(_, realtime_us)| last_realtime_us >= realtime_us);
        if self.finished.contains(&file_id) || is_archived && !has_new_entries {
            self.finished.insert(file_id);
            return Ok(Some(file_id));
        }
        if self.files.len() >= MAX_OPEN_FILES {
            if !self.has_warned_of_number {
                log::warn!("the journal has more than {MAX_OPEN_FILES} files; reading those written last");
                self.has_warned_of_number = true;
            }
            return Ok(Some(file_id));
        }
        let is_new = self.start_us.is_some();
        if !is_new {
            file.skip_to_end().map_err(io::Error::other)?;
        }
        self.has_more |= is_new;
        self.files.push(OpenFile {
            file,
            path: path.to_owned(),
            head: None,
            is_at_end: false,
            is_new,
            is_listed: true,
        });
        Ok(Some(file_id))
    }
}

/// Returns whether an entry of another boot id has the times of this boot. A container may have a
/// boot id of its own, which this process does not see from within its sandbox.
fn has_our_clocks(entry: &EntryHeader, start_us: Option<(u64, u64)>) -> bool {
    let Some((monotonic_us, realtime_us)) = start_us else { return false };
    let since = [entry.monotonic_us.checked_sub(monotonic_us), entry.realtime_us.checked_sub(realtime_us)];
    matches!(since, [Some(monotonic), Some(realtime)] if monotonic.abs_diff(realtime) <= CLOCKS_DIFFER_US)
}

/// Returns whether an entry of a new file is from before the start.
fn is_from_before(entry: &EntryHeader, boot_id: u128, start_us: Option<(u64, u64)>) -> bool {
    start_us.is_some_and(|(monotonic_us, realtime_us)| {
        if entry.boot_id == boot_id { entry.monotonic_us < monotonic_us } else { entry.realtime_us < realtime_us }
    })
}

/// Compares entries of two files. Those of one daemon have numbers in their order.
fn order_of(
    (first_file, first): (&FileHeader, &EntryHeader),
    (second_file, second): (&FileHeader, &EntryHeader),
) -> Ordering {
    if first_file.seqnum_id == second_file.seqnum_id {
        return first.seqnum.cmp(&second.seqnum);
    }
    (first.monotonic_us, first.realtime_us).cmp(&(second.monotonic_us, second.realtime_us))
}

/// Returns the journal files of a folder, those written last first.
fn journal_files(folder: &Path) -> Vec<PathBuf> {
    // The folder may not exist.
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let is_journal = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        name.ends_with(b".journal") || name.ends_with(b".journal~")
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_journal).take(MAX_FILES_PER_FOLDER);
    let mut files: Vec<(Option<SystemTime>, PathBuf)> = paths
        .map(|path| (std::fs::symlink_metadata(&path).and_then(|metadata| metadata.modified()).ok(), path))
        .collect();
    files.sort_unstable_by(|a, b| b.cmp(a));
    files.into_iter().map(|(_, path)| path).collect()
}

/// Reads a file with an id: 32 hexadecimal digits, perhaps with dashes.
fn read_id(path: &Path) -> Result<u128, SetupError> {
    let text = std::fs::read_to_string(path).map_err(|why| SetupError(format!("cannot read {path:?}: {why}")))?;
    let digits: String = text.trim().chars().filter(|&c| c != '-').collect();
    let id = if digits.len() == 32 { u128::from_str_radix(&digits, 16).ok() } else { None };
    id.ok_or_else(|| SetupError(format!("{path:?} contains {:?}, which is no id", text.get(..64).unwrap_or(&text))))
}
