//! The thread of one file.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::Path;

use esatto_service::FileId;

use crate::queue::{Receiver, Sender};

/// Bytes at the begin of what a process writes, by which its host knows the file again. Clocks and
/// a random id are among them.
const BEGINNING_BYTES: usize = 256;
/// Bytes that are copied at a time.
const PIECE_BYTES: usize = 256 * 1024;

pub(crate) const NOT_OPEN: &str = "the file is not open";

/// Steps that a process takes in its own way.
pub trait Host: Clone + Send + 'static {
    /// Starts a thread for a file.
    ///
    /// # Errors
    ///
    /// The system's error. The body is then dropped.
    fn spawn(&self, id: FileId, body: Box<dyn FnOnce() + Send>) -> io::Result<()>;

    /// Wakes the thread that takes events.
    fn wake(&self);

    /// Creates a file that must not exist, for reading and writing.
    ///
    /// # Errors
    ///
    /// The system's error.
    fn create(&self, path: &Path) -> io::Result<File>;

    /// Checks, before a further append, that no other program has changed the file. It should have
    /// `beginning` at the offset `begin`, and end after `size_bytes` from there.
    ///
    /// # Errors
    ///
    /// Another program has changed it.
    fn require_sole_writer(&self, _: &File, _begin: u64, _beginning: &[u8], _size_bytes: u64) -> io::Result<()> {
        Ok(())
    }

    /// Appends packets, so that the file ends with a whole packet even after an error.
    ///
    /// # Errors
    ///
    /// The file does not take all packets.
    fn append(&self, file: &mut File, packets: &[u8]) -> io::Result<()>;

    /// Returns a handle through which another thread can read a regular file.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    fn reader(&self, file: &File) -> io::Result<File>;

    /// Reads at an offset of a file that [`reader`](Self::reader) returned, without moving the
    /// position of the thread that writes.
    ///
    /// # Errors
    ///
    /// The system's error.
    fn read_at(&self, file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Notes that a file was not synced, as is usual for pipes and terminals.
    fn sync_failed(&self, _error: &io::Error) {}
}

/// Result of a job. A text says why the job failed.
#[derive(Debug)]
pub enum FileEvent {
    /// A file was created.
    Opened(FileId, Result<(), String>),
    /// Packets were appended. They come back, because their memory can be used again.
    Written(FileId, Result<(), String>, Vec<u8>),
    /// The content of another file was appended to this one.
    Copied(FileId, Result<(), String>),
    /// The file was closed after its last job.
    Closed(FileId),
}

/// Job for the thread of a file.
#[derive(Debug)]
pub(crate) enum Job {
    Write(Vec<u8>),
    Sync,
    /// Let the thread of another file copy the current content of this one.
    Lend(FileId, Sender<Self>),
    Copy(io::Result<Lent>),
}

/// Content that this process had written to a file at some moment.
#[derive(Debug)]
pub(crate) struct Lent {
    file: File,
    begin: u64,
    size_bytes: u64,
}

/// A file, and the extent of this process's writes to it.
///
/// Nothing else of the file is ever read: a consumer may have brought a file that was not empty,
/// and that it could not read itself.
#[derive(Debug)]
struct Written {
    file: File,
    /// Offset of the first byte; `None` before there is one, and for files without offsets.
    begin: Option<u64>,
    size_bytes: u64,
    /// The first of the bytes.
    beginning: Vec<u8>,
}

/// Way of a thread to report events.
#[derive(Clone, Debug)]
pub(crate) struct Report<H> {
    pub(crate) events: Sender<FileEvent>,
    pub(crate) host: H,
}

impl<H: Host> Report<H> {
    pub(crate) fn send(&self, event: FileEvent) {
        // Without a receiver, the service has ended and needs no events.
        if self.events.send(event).is_ok() {
            self.host.wake();
        }
    }
}

/// Does the jobs of one file until it is closed.
pub(crate) fn work<H: Host>(id: FileId, file: File, todo: &Receiver<Job>, report: &Report<H>) {
    let host = &report.host;
    let mut written = Written { file, begin: None, size_bytes: 0, beginning: Vec::new() };
    let mut is_damaged = false;
    while let Some(job) = todo.recv() {
        match job {
            Job::Write(packets) => {
                let result = match is_damaged {
                    false => written.append(&packets, host),
                    true => Err(io::Error::other("an earlier write to the file failed")),
                };
                is_damaged |= result.is_err();
                report.send(FileEvent::Written(id, text_of(result), packets));
            }
            Job::Sync => {
                if let Err(error) = written.file.sync_data() {
                    host.sync_failed(&error);
                }
            }
            Job::Lend(to, target) => {
                let lent = match is_damaged {
                    false => written.lend(host),
                    true => Err(io::Error::other("the file could not be written")),
                };
                if target.send(Job::Copy(lent)).is_err() {
                    report.send(FileEvent::Copied(to, Err(NOT_OPEN.to_owned())));
                }
            }
            Job::Copy(lent) => {
                let result = lent.and_then(|lent| written.append_copy(&lent, host));
                report.send(FileEvent::Copied(id, text_of(result)));
            }
        }
    }
}

impl Written {
    fn append(&mut self, packets: &[u8], host: &impl Host) -> io::Result<()> {
        if let Some(begin) = self.begin {
            host.require_sole_writer(&self.file, begin, &self.beginning, self.size_bytes)?;
        }
        host.append(&mut self.file, packets)?;
        self.grow(packets);
        Ok(())
    }

    /// Appends the content of another file.
    fn append_copy(&mut self, from: &Lent, host: &impl Host) -> io::Result<()> {
        let mut piece = vec![0; PIECE_BYTES];
        let mut done = 0;
        while done < from.size_bytes {
            let wanted = usize::try_from(from.size_bytes - done).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
            match host.read_at(&from.file, &mut piece[..wanted], from.begin + done) {
                Ok(0) => return Err(io::Error::other("it was truncated")),
                Ok(len) => {
                    self.file.write_all(&piece[..len])?;
                    done += len as u64;
                    self.grow(&piece[..len]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Notes that bytes were appended. The position is now at their end, also in a file that is
    /// opened for appending only.
    fn grow(&mut self, bytes: &[u8]) {
        let size_bytes = bytes.len() as u64;
        if self.size_bytes == 0 {
            self.begin = self.file.stream_position().ok().and_then(|end| end.checked_sub(size_bytes));
        }
        self.size_bytes += size_bytes;
        let room = BEGINNING_BYTES - self.beginning.len();
        self.beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Returns the content so far, to be read by another thread.
    fn lend(&self, host: &impl Host) -> io::Result<Lent> {
        if !self.file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        // Without an offset nothing was written, and the reader finds nothing.
        let begin = self.begin.unwrap_or(0);
        Ok(Lent { file: host.reader(&self.file)?, begin, size_bytes: self.size_bytes })
    }
}

fn text_of(result: io::Result<()>) -> Result<(), String> {
    result.map_err(|error| error.to_string())
}
