//! Files that the service in this process writes (`write_into_file`, `docs/spec/service.md` §18).
//!
//! A disk may be slow, and a pipe may have nobody who reads; meanwhile other threads want their chunks taken. So each file has a thread of its
//! own while it is open, which does what there is to do in order and reports back. What waits for it is bounded by the service: two writes of
//! about 1 MiB.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::PathBuf;

use esatto_map::Map;
use esatto_service::FileId;

use super::mpsc_queue::{Receiver, Sender, channel};
use crate::connection::thread_handle::spawn;
use crate::os::{self, OwnedFd};

const THREAD_NAME: &str = "esatto-file";

/// Bytes that are copied at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// All open files.
#[derive(Debug)]
pub(super) struct Files {
    /// Dropping the sender closes the file after its last job.
    open: Map<FileId, Sender<Job>>,
    done: Receiver<Done>,
    report: Sender<Done>,
}

/// What became of a job; a text says why it failed.
#[derive(Debug)]
pub(super) enum Done {
    Opened(FileId, Result<(), String>),
    Written(FileId, Result<(), String>),
    Copied(FileId, Result<(), String>),
}

#[derive(Debug)]
enum Job {
    Write(Vec<u8>),
    Sync,
    /// Let another file have what this one holds now.
    Lend(FileId, Sender<Self>),
    /// Append so many bytes of another file.
    Copy(io::Result<(File, u64)>),
}

impl Files {
    pub(super) fn new() -> Self {
        let (report, done) = channel();
        Self { open: Map::new(), done, report }
    }

    /// Writes into a descriptor.
    pub(super) fn adopt(&mut self, id: FileId, fd: OwnedFd) {
        // Without a thread the first write fails.
        let _ = self.start(id, Box::new(move || Some(File::from(fd))));
    }

    /// Creates a file that must not exist; [`Done::Opened`] follows.
    pub(super) fn create(&mut self, id: FileId, path: PathBuf) {
        let report = self.report.clone();
        let open = move || {
            let file = File::options().read(true).write(true).create_new(true).open(path);
            let result = file.as_ref().map(drop).map_err(ToString::to_string);
            tell(&report, Done::Opened(id, result));
            file.ok()
        };
        if let Err(error) = self.start(id, Box::new(open)) {
            tell(&self.report, Done::Opened(id, Err(error.to_string())));
        }
    }

    /// Appends; [`Done::Written`] follows.
    pub(super) fn write(&mut self, id: FileId, bytes: Vec<u8>) {
        let sent = self.open.get(&id).map(|jobs| jobs.send(Job::Write(bytes)));
        if !matches!(sent, Some(Ok(()))) {
            tell(&self.report, Done::Written(id, Err("the file is not open".to_owned())));
        }
    }

    /// Appends what was to be written into one file to another, without holding up the first; [`Done::Copied`] follows.
    pub(super) fn copy(&mut self, from: FileId, to: FileId) {
        let target = self.open.get(&to).cloned();
        let sent = target.and_then(|target| Some(self.open.get(&from)?.send(Job::Lend(to, target))));
        if !matches!(sent, Some(Ok(()))) {
            tell(&self.report, Done::Copied(to, Err("the file is not open".to_owned())));
        }
    }

    pub(super) fn sync(&mut self, id: FileId) {
        if let Some(jobs) = self.open.get(&id) {
            // A thread that is gone has said so.
            let _ = jobs.send(Job::Sync);
        }
    }

    /// Closes it after what is still to be done.
    pub(super) fn close(&mut self, id: FileId) {
        self.open.remove(&id);
    }

    /// What is done.
    pub(super) fn next_done(&self) -> Option<Done> {
        self.done.try_recv()
    }

    fn start(&mut self, id: FileId, open: Box<dyn FnOnce() -> Option<File> + Send>) -> io::Result<()> {
        let (jobs, todo) = channel();
        let report = self.report.clone();
        spawn(THREAD_NAME, Box::new(move || work(id, open(), &todo, &report)))?;
        self.open.insert(id, jobs);
        Ok(())
    }
}

fn tell(report: &Sender<Done>, done: Done) {
    // Without a receiver nobody wants to know.
    if report.send(done).is_ok() {
        crate::connection::wake();
    }
}

/// Does the jobs of one file until it is closed.
fn work(id: FileId, mut file: Option<File>, todo: &Receiver<Job>, report: &Sender<Done>) {
    let mut is_damaged = false;
    while let Some(job) = todo.recv() {
        match job {
            Job::Write(bytes) => {
                let result = match &mut file {
                    Some(file) if !is_damaged => write(file, &bytes),
                    Some(_) => Err(io::Error::other("what comes before could not be written")),
                    None => Err(io::Error::other("the file is not open")),
                };
                is_damaged |= result.is_err();
                tell(report, Done::Written(id, result.map_err(|error| error.to_string())));
            }
            Job::Sync => {
                // Pipes cannot be synced.
                let _ = file.as_ref().map(File::sync_data);
            }
            Job::Lend(to, target) => {
                let lent = match &file {
                    Some(file) if !is_damaged => lend(file),
                    _ => Err(io::Error::other("the file could not be written")),
                };
                if target.send(Job::Copy(lent)).is_err() {
                    tell(report, Done::Copied(to, Err("the file is not open".to_owned())));
                }
            }
            Job::Copy(lent) => {
                let result = lent.and_then(|(from, bytes)| match &mut file {
                    Some(file) => copy(&from, bytes, file),
                    None => Err(io::Error::other("the file is not open")),
                });
                tell(report, Done::Copied(id, result.map_err(|error| error.to_string())));
            }
        }
    }
}

/// Appends whole packets: all of them, or none if the file is one that can be shortened.
fn write(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let before = file.stream_position();
    let result = file.write_all(bytes);
    if let (Err(_), Ok(before)) = (&result, before) {
        // Readers are not to find half a packet.
        let _ = file.set_len(before);
    }
    result
}

/// A handle whose position may be moved, and how much is to be read.
fn lend(file: &File) -> io::Result<(File, u64)> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok((os::reopen(file)?, metadata.len()))
}

fn copy(from: &File, bytes: u64, to: &mut File) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = 0;
    while at < bytes {
        let wanted = usize::try_from(bytes - at).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
        match os::read_at(from, &mut piece[..wanted], at) {
            Ok(0) => return Err(io::Error::other("it was truncated")),
            Ok(len) => {
                to.write_all(&piece[..len])?;
                at += len as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
