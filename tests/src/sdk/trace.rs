//! The check's side: the trace, before Perfetto's trace processor.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use crate::tp::{self, Row};

/// A trace that a scenario has left.
#[derive(Debug)]
pub struct Trace {
    folder: PathBuf,
    path: PathBuf,
    tolerated: &'static [&'static str],
    judged: Cell<bool>,
}

impl Trace {
    pub(super) fn new(folder: &Path, name: &str, tolerated: &'static [&'static str]) -> Self {
        Self { folder: folder.into(), path: folder.join(name), tolerated, judged: Cell::new(false) }
    }

    /// Runs statements, each of which returns rows, in one go: starting the trace processor takes
    /// the better part of a second.
    ///
    /// # Panics
    ///
    /// The trace processor complains of the trace ([`tp::COMPLAINTS`]) more than the scenario
    /// tolerates; or an SQL error.
    #[must_use]
    pub fn query<const N: usize>(&self, statements: [&str; N]) -> [Vec<Row>; N] {
        self.judged.set(true);
        let sql = [&[tp::COMPLAINTS], &statements[..]].concat().join(";\n");
        let mut results = tp::query(&self.path, &sql);
        assert_eq!(results.len(), N + 1, "each statement returns rows: {statements:?}");
        let complaints = results.remove(0);
        let complaints: Vec<_> = complaints.iter().filter(|row| !self.tolerated.contains(&row.text("name"))).collect();
        assert!(complaints.is_empty(), "{}: {complaints:#?}", self.path.display());
        results.try_into().expect("as many as there are statements")
    }

    /// The bytes of the file.
    ///
    /// # Panics
    ///
    /// There is none.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.path).unwrap_or_else(|error| panic!("{}: {error}", self.path.display()))
    }

    /// The packets as they are.
    ///
    /// # Panics
    ///
    /// The file is torn.
    #[must_use]
    pub fn packets(&self) -> Vec<esatto_trace::Packet> {
        esatto_trace::packets(&self.bytes()).collect::<Result<_, _>>().expect("whole packets")
    }

    /// The trace as our own reader sees it.
    #[must_use]
    pub fn read(&self) -> esatto_trace::Trace {
        esatto_trace::Trace::read(&self.bytes()[..])
    }

    /// Another trace of the scenario.
    #[must_use]
    pub fn other(&self, name: &str) -> Self {
        Self::new(&self.folder, name, self.tolerated)
    }

    /// Value that the scenario has [noted](super::Recorder::note).
    ///
    /// # Panics
    ///
    /// It has not.
    #[must_use]
    pub fn fact(&self, name: &str) -> String {
        let path = self.folder.join(format!("{name}.fact"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Complaints are looked for even if nothing else was.
    pub(super) fn assert_judged(&self) {
        if !self.judged.get() {
            let [] = self.query([]);
        }
    }
}
