//! The open files of a service.

use core::time::Duration;
use std::fs::File;
use std::io;
use std::path::PathBuf;

use esatto_map::Map;
use esatto_service::FileId;

use crate::queue::{Receiver, Sender, channel};
use crate::worker::{FileEvent, Host, Job, NOT_OPEN, Report, work};

/// Opens a file in its thread. In a box: the standard library makes more than a kilobyte of code
/// for each kind of thread.
type Open<H> = Box<dyn FnOnce(&Report<H>) -> Option<File> + Send>;

/// All open trace files of a service, each with its thread.
#[derive(Debug)]
pub struct Files<H> {
    /// Dropping the sender closes the file after its last job.
    open: Map<FileId, Sender<Job>>,
    events: Receiver<FileEvent>,
    report: Report<H>,
}

impl<H: Host> Files<H> {
    /// Creates the table without any file.
    pub fn new(host: H) -> Self {
        let (sender, events) = channel();
        Self { open: Map::new(), events, report: Report { events: sender, host } }
    }

    /// Number of files that are open for jobs.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns whether no file is open for jobs.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Writes into `file` from now on.
    ///
    /// # Errors
    ///
    /// No thread can be started. Writes to the file then fail.
    pub fn adopt(&mut self, id: FileId, file: impl FnOnce() -> File + Send + 'static) -> io::Result<()> {
        self.start(id, Box::new(move |_| Some(file())))
    }

    /// Creates a file that must not exist. [`FileEvent::Opened`] follows, also after an error.
    /// After an error, [`FileEvent::Closed`] follows too, without a call of [`close`](Self::close).
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub fn create(&mut self, id: FileId, path: PathBuf) -> io::Result<()> {
        let open = move |report: &Report<H>| {
            let opened = report.host.create(&path);
            report.send(FileEvent::Opened(id, opened.as_ref().map(drop).map_err(why_not_created)));
            opened.ok()
        };
        let started = self.start(id, Box::new(open));
        if let Err(error) = &started {
            self.refuse(id, error.to_string());
        }
        started
    }

    /// Reports that a file whose descriptor was passed is not written.
    pub fn refuse_adopted(&self, id: FileId, why: String) {
        self.report.send(FileEvent::Written(id, Err(why), Vec::new()));
    }

    /// Reports that a file was not created.
    pub fn refuse(&self, id: FileId, why: String) {
        self.report.send(FileEvent::Opened(id, Err(why)));
    }

    /// Appends packets to a file. [`FileEvent::Written`] follows.
    pub fn write(&self, id: FileId, packets: Vec<u8>) {
        if !self.send(id, Job::Write(packets)) {
            self.report.send(FileEvent::Written(id, Err(NOT_OPEN.to_owned()), Vec::new()));
        }
    }

    /// Appends to one file all packets for another one so far, without delaying the latter.
    /// [`FileEvent::Copied`] follows.
    pub fn copy(&self, from: FileId, to: FileId) {
        let target = self.open.get(&to).cloned();
        if !target.is_some_and(|target| self.send(from, Job::Lend(to, target))) {
            self.report.send(FileEvent::Copied(to, Err(NOT_OPEN.to_owned())));
        }
    }

    /// Syncs a file to its disk after the writes so far.
    pub fn sync(&self, id: FileId) {
        // If the thread has ended, it has reported why.
        self.send(id, Job::Sync);
    }

    /// Closes a file after its last job. [`FileEvent::Closed`] follows.
    pub fn close(&mut self, id: FileId) {
        self.open.remove(&id);
    }

    /// Returns the next event, if there is one.
    pub fn next_event(&self) -> Option<FileEvent> {
        self.events.try_recv()
    }

    /// Returns the next event; `None` if there is none after `timeout`.
    pub fn wait_event(&self, timeout: Duration) -> Option<FileEvent> {
        self.events.recv_timeout(timeout)
    }

    fn send(&self, id: FileId, job: Job) -> bool {
        self.open.get(&id).is_some_and(|jobs| jobs.send(job).is_ok())
    }

    fn start(&mut self, id: FileId, open: Open<H>) -> io::Result<()> {
        let (jobs, todo) = channel();
        let report = self.report.clone();
        let body = move || {
            if let Some(file) = open(&report) {
                work(id, file, &todo, &report);
            }
            report.send(FileEvent::Closed(id));
        };
        self.report.host.spawn(id, Box::new(body))?;
        self.open.insert(id, jobs);
        Ok(())
    }
}

/// Tells a consumer why its file was not created.
fn why_not_created(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AlreadyExists => "File exists; remove it, or choose another path".to_owned(),
        _ => error.to_string(),
    }
}
