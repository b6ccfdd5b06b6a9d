//! [`Changes`]: what a user of tracefs has changed there, and how to undo it.

use super::journal::{Journal, JournalFolder};
use super::tracefs::{Tracefs, TracefsError};
use super::undo::{Entry, How, Undo};

/// Changes of the files of one instance of tracefs. What is left of them is undone when this is
/// dropped.
#[derive(Debug)]
pub(crate) struct Changes {
    tracefs: Tracefs,
    done: Vec<Change>,
    journal: Journal,
}

#[derive(Debug)]
struct Change {
    /// Name of the file in the instance.
    file: String,
    undo: Undo,
    /// Content of the file after the change. If it is another one when the change is to be undone,
    /// somebody else has changed it meanwhile, and it stays. `None`: not looked at.
    ours: Option<Vec<u8>>,
}

impl Changes {
    pub(crate) const fn new(tracefs: Tracefs, journals: JournalFolder) -> Self {
        Self { tracefs, done: Vec::new(), journal: Journal::new(journals) }
    }

    /// Sets a file to a value. `original` is the value that it gets back, which counts only if the
    /// file was not changed before.
    pub(crate) fn set(&mut self, file: &str, value: &str, original: &str) -> Result<(), TracefsError> {
        let is_new = !self.has(file);
        if is_new {
            self.begin(file, How::Replace, original);
        }
        let written = self.tracefs.write(file, value);
        if written.is_err() && is_new {
            self.forget(file);
        }
        written?;
        let ours = self.tracefs.read(file).ok();
        if let Some(change) = self.find(file) {
            change.ours = ours;
        }
        Ok(())
    }

    /// Switches on an event that is off.
    pub(crate) fn switch_on(&mut self, file: &str) -> Result<(), TracefsError> {
        self.begin(file, How::Replace, "0");
        self.tracefs.write(file, "1").inspect_err(|_| self.forget(file))
    }

    /// Clears a list. Its entries come back when this is undone.
    pub(crate) fn clear_list(&mut self, file: &str, original: &str) -> Result<(), TracefsError> {
        self.begin(file, How::Replace, original);
        self.tracefs.write(file, "").inspect_err(|_| self.forget(file))
    }

    /// Appends a command to a file. `undo` is the command that undoes it.
    pub(crate) fn append(&mut self, file: &str, command: &str, undo: &str) -> Result<(), TracefsError> {
        self.begin(file, How::Append, undo);
        self.tracefs.append(file, command).inspect_err(|_| self.forget(file))
    }

    /// True if the file was changed.
    pub(crate) fn has(&self, file: &str) -> bool {
        self.done.iter().rev().any(|change| change.file == file)
    }

    /// Undoes the last change of a file. Returns true if the file was written.
    pub(crate) fn undo(&mut self, file: &str) -> bool {
        let Some(at) = self.done.iter().rposition(|change| change.file == file) else { return false };
        let change = self.done.remove(at);
        let is_written = self.run(&change);
        self.journal.write(&Entry::Undone(change.undo.path));
        is_written
    }

    /// Undoes the last change whose undoing is this command.
    pub(crate) fn undo_command(&mut self, file: &str, undo: &str) {
        if let Some(at) = self.done.iter().rposition(|change| change.file == file && change.undo.value == undo) {
            let change = self.done.remove(at);
            self.run(&change);
            // The journal finds changes by their file: write it again as it is.
            self.rewrite_journal();
        }
    }

    /// Undoes all changes, the last first.
    pub(crate) fn undo_all(&mut self) {
        while let Some(change) = self.done.pop() {
            self.run(&change);
            self.journal.write(&Entry::Undone(change.undo.path));
        }
        self.journal.clear();
    }

    fn begin(&mut self, file: &str, how: How, value: &str) {
        let undo = Undo { path: self.tracefs.path(file), how, value: value.to_owned() };
        self.journal.write(&Entry::Changed(undo.clone()));
        self.done.push(Change { file: file.to_owned(), undo, ours: None });
    }

    /// Drops the last change of a file, which could not be made.
    fn forget(&mut self, file: &str) {
        if let Some(at) = self.done.iter().rposition(|change| change.file == file) {
            let change = self.done.remove(at);
            self.journal.write(&Entry::Undone(change.undo.path));
        }
    }

    fn find(&mut self, file: &str) -> Option<&mut Change> {
        self.done.iter_mut().rev().find(|change| change.file == file)
    }

    /// Undoes a change. Returns true if the file was written.
    fn run(&self, change: &Change) -> bool {
        let is_changed = |ours: &Vec<u8>| self.tracefs.read(&change.file).is_ok_and(|now| now != *ours);
        if change.ours.as_ref().is_some_and(is_changed) {
            log::debug!("{} was changed by another program: it stays as it is", change.undo.path.display());
            return false;
        }
        let undone = change.undo.run();
        if let Err(why) = &undone {
            log::warn!("cannot restore {}: {why}", change.undo.path.display());
        }
        undone.is_ok()
    }

    fn rewrite_journal(&mut self) {
        self.journal.clear();
        for change in &self.done {
            self.journal.write(&Entry::Changed(change.undo.clone()));
        }
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.undo_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftrace::tests::TestFolder;

    fn changes(folder: &TestFolder) -> Changes {
        Changes::new(Tracefs::at(folder.path().into()), JournalFolder::at(folder.path().join("run")))
    }

    #[test]
    fn a_setting_gets_its_original_value_back() {
        let folder = TestFolder::new("changes");
        folder.write("trace_clock", "local");
        let mut changes = changes(&folder);
        changes.set("trace_clock", "boot", "local").expect("a file");
        changes.set("trace_clock", "mono", "boot").expect("a file");
        assert_eq!(folder.read("trace_clock"), "mono");
        drop(changes);
        assert_eq!(folder.read("trace_clock"), "local");
        assert_eq!(std::fs::read_dir(folder.path().join("run")).expect("a folder").count(), 0, "no journal");
    }

    #[test]
    fn a_setting_that_somebody_else_changed_meanwhile_stays() {
        let folder = TestFolder::new("changes-other");
        folder.write("buffer_size_kb", "7");
        let mut changes = changes(&folder);
        changes.set("buffer_size_kb", "2048", "7").expect("a file");
        folder.write("buffer_size_kb", "9999");
        drop(changes);
        assert_eq!(folder.read("buffer_size_kb"), "9999");
    }

    #[test]
    fn commands_are_undone_by_commands() {
        let folder = TestFolder::new("changes-commands");
        folder.write("kprobe_events", "");
        let mut changes = changes(&folder);
        changes.append("kprobe_events", "p:g/a a\n", "-:g/a\n").expect("a file");
        changes.append("kprobe_events", "p:g/b b\n", "-:g/b\n").expect("a file");
        changes.undo_command("kprobe_events", "-:g/a\n");
        changes.undo_all();
        assert_eq!(folder.read("kprobe_events"), "p:g/a a\np:g/b b\n-:g/a\n-:g/b\n");
    }

    #[test]
    fn a_change_that_fails_is_not_undone() {
        let folder = TestFolder::new("changes-failed");
        let mut changes = changes(&folder);
        let error = changes.set("trace_clock", "boot", "local").expect_err("no file");
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        assert!(!changes.has("trace_clock"));
    }
}
