//! Trace files that the service streams into (`write_into_file`, `docs/spec/service.md` §18).
//!
//! A file can be slow (a network disk) or never finish a write at all (a pipe that nobody reads), and the event
//! loop must not wait for it. So each file has a thread of its own, which does the writes in order and reports through
//! a channel. A daemon whose sessions stream into no file has no such thread.
//!
//! What waits for a file is bounded: the service has at most two writes per file under way, about 1 MiB each, while its
//! session lives. The number of files is bounded too ([`MAX_FILES`]).

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Instant;

use esatto_service::FileId;

use crate::packet_file::write_packets;
use crate::stats::Counters;
use crate::wake::Wake;

/// Files at the same time, those included whose sessions are over but whose last write does not end: a consumer can bring
/// any number of pipes that nobody reads, each of which keeps a thread.
const MAX_FILES: usize = 64;

/// What a file's thread has to tell.
#[derive(Debug)]
pub(crate) enum FileEvent {
    Opened(FileId, Result<(), String>),
    /// With the bytes, whose memory can be used again.
    Written(FileId, Result<(), String>, Vec<u8>),
    /// To this file.
    Copied(FileId, Result<(), String>),
    Closed(FileId),
}

/// What a file's thread has to do.
#[derive(Debug)]
enum Job {
    Write(Vec<u8>),
    Sync,
    /// Let the thread of another file copy what this one holds now.
    Lend(FileId, Sender<Self>),
    Copy(io::Result<Lent>),
}

/// What a file holds at some point; it only grows.
#[derive(Debug)]
struct Lent {
    file: File,
    size_bytes: u64,
}

/// All open trace files.
#[derive(Debug)]
pub(crate) struct Files {
    /// Dropping the sender closes the file after its last job.
    open: HashMap<FileId, Sender<Job>>,
    closing: usize,
    events: Receiver<FileEvent>,
    report: Report,
}

/// A thread's way back to the loop.
#[derive(Clone, Debug)]
struct Report {
    events: Sender<FileEvent>,
    wake: Arc<Wake>,
    counters: Arc<Counters>,
}

impl Report {
    fn send(&self, event: FileEvent) {
        // Without a receiver the loop is gone, and nobody wants to know.
        if self.events.send(event).is_ok() {
            self.wake.wake();
        }
    }
}

impl Files {
    pub(crate) fn new(wake: Arc<Wake>, counters: Arc<Counters>) -> Self {
        let (sender, events) = channel();
        Self { open: HashMap::new(), closing: 0, events, report: Report { events: sender, wake, counters } }
    }

    /// Writes to a descriptor that a consumer brought.
    pub(crate) fn adopt(&mut self, id: FileId, fd: OwnedFd) {
        self.start(id, move || Ok(File::from(fd)), false);
    }

    /// Creates a file that must not exist; [`FileEvent::Opened`] follows.
    pub(crate) fn create(&mut self, id: FileId, path: Vec<u8>) {
        let path = PathBuf::from(std::ffi::OsString::from_vec(path));
        self.start(id, move || create_exclusively(&path), true);
    }

    fn start(&mut self, id: FileId, open: impl FnOnce() -> io::Result<File> + Send + 'static, report_open: bool) {
        let (jobs, todo) = channel();
        let report = self.report.clone();
        let body = move || {
            let opened = open();
            if report_open {
                report.send(FileEvent::Opened(id, result_text(&opened)));
            }
            work(id, opened, &todo, &report);
            report.send(FileEvent::Closed(id));
        };
        let started = if self.open.len() + self.closing < MAX_FILES {
            thread::Builder::new().name(format!("trace-file-{}", id.0)).spawn(body)
        } else {
            Err(io::Error::other(format!("{MAX_FILES} trace files are open already")))
        };
        match started {
            Ok(_) => {
                self.open.insert(id, jobs);
            }
            Err(e) => {
                log::error!("cannot start the thread of a trace file: {e}");
                if report_open {
                    self.report.send(FileEvent::Opened(id, Err(e.to_string())));
                }
            }
        }
    }

    /// Appends; [`FileEvent::Written`] follows.
    pub(crate) fn write(&mut self, id: FileId, bytes: Vec<u8>) {
        let sent = self.open.get(&id).map(|jobs| jobs.send(Job::Write(bytes)));
        if !matches!(sent, Some(Ok(()))) {
            self.report.send(FileEvent::Written(id, Err("the file is not open".to_owned()), Vec::new()));
        }
    }

    /// Appends what was to be written to a file to another; [`FileEvent::Copied`] follows. The one copied from is not held up.
    pub(crate) fn copy(&mut self, from: FileId, to: FileId) {
        let target = self.open.get(&to).cloned();
        let sent = target.and_then(|target| self.open.get(&from).map(|jobs| jobs.send(Job::Lend(to, target))));
        if !matches!(sent, Some(Ok(()))) {
            self.report.send(FileEvent::Copied(to, Err("the file is not open".to_owned())));
        }
    }

    pub(crate) fn sync(&mut self, id: FileId) {
        if let Some(jobs) = self.open.get(&id) {
            // A thread that is gone has said so.
            let _ = jobs.send(Job::Sync);
        }
    }

    pub(crate) fn close(&mut self, id: FileId) {
        if self.open.remove(&id).is_some() {
            self.closing += 1;
        }
    }

    /// What has happened since the last call.
    pub(crate) fn next_event(&mut self) -> Option<FileEvent> {
        let event = self.events.try_recv().ok()?;
        self.note(&event);
        Some(event)
    }

    /// The next event, waiting for it; `None` at `deadline` or when no file is left.
    pub(crate) fn wait_event(&mut self, deadline: Instant) -> Option<FileEvent> {
        if self.open.is_empty() && self.closing == 0 {
            return None;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        match self.events.recv_timeout(left) {
            Ok(event) => {
                self.note(&event);
                Some(event)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                log::error!("a trace file takes no data: it is left incomplete");
                None
            }
        }
    }

    fn note(&mut self, event: &FileEvent) {
        if let FileEvent::Closed(id) = event {
            if self.open.remove(id).is_none() {
                self.closing = self.closing.saturating_sub(1);
            }
        }
    }
}

/// Does the jobs of one file until the loop closes it.
fn work(id: FileId, opened: io::Result<File>, todo: &Receiver<Job>, report: &Report) {
    let mut file = opened.ok();
    let mut is_damaged = false;
    while let Ok(job) = todo.recv() {
        match job {
            Job::Write(bytes) => {
                let result = match &mut file {
                    Some(file) if !is_damaged => write_packets(file, &bytes),
                    Some(_) => Err(io::Error::other("what comes before could not be written")),
                    None => Err(io::Error::other("the file is not open")),
                };
                match result {
                    Ok(()) => report.counters.file_bytes_written.add(bytes.len() as u64),
                    Err(_) => is_damaged = true,
                }
                report.send(FileEvent::Written(id, result_text(&result), bytes));
            }
            Job::Lend(to, target) => {
                let lent = match &file {
                    Some(file) if !is_damaged => lend(file),
                    _ => Err(io::Error::other("the file could not be written")),
                };
                if target.send(Job::Copy(lent)).is_err() {
                    report.send(FileEvent::Copied(to, Err("the file is not open".to_owned())));
                }
            }
            Job::Copy(lent) => {
                let result = lent.and_then(|lent| match &mut file {
                    Some(file) => copy(&lent, file),
                    None => Err(io::Error::other("the file is not open")),
                });
                report.send(FileEvent::Copied(id, result_text(&result)));
            }
            Job::Sync => {
                if let Some(Err(e)) = file.as_ref().map(File::sync_data) {
                    // Pipes and terminals cannot be synced.
                    log::debug!("a trace file was not synced: {e}");
                }
            }
        }
    }
}

fn lend(file: &File) -> io::Result<Lent> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(Lent { file: file.try_clone()?, size_bytes: metadata.len() })
}

fn copy(from: &Lent, to: &mut File) -> io::Result<()> {
    /// Bytes read at a time.
    const PIECE_BYTES: usize = 256 * 1024;
    let mut reopened = None;
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = 0;
    while at < from.size_bytes {
        let wanted = usize::try_from(from.size_bytes - at).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
        // Its offset is the writer's: it must not move.
        match reopened.as_ref().unwrap_or(&from.file).read_at(&mut piece[..wanted], at) {
            Ok(0) => return Err(io::Error::other("it was truncated")),
            Ok(len) => {
                to.write_all(&piece[..len])?;
                at += len as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // A consumer may have opened it for writing only.
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::BADF.raw_os_error()) && reopened.is_none() => {
                reopened = Some(File::open(format!("/proc/self/fd/{}", from.file.as_raw_fd()))?);
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn create_exclusively(path: &std::path::Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o644).open(path)?;
    // Whatever the umask is: the file is for others to read.
    file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
    Ok(file)
}

fn result_text<T>(result: &io::Result<T>) -> Result<(), String> {
    match result {
        Ok(_) => Ok(()),
        Err(e) => Err(e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn files() -> Files {
        Files::new(Arc::new(Wake::new().unwrap()), Arc::default())
    }

    fn events_until_closed(files: &mut Files) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut seen = Vec::new();
        while let Some(event) = files.wait_event(deadline) {
            seen.push(match event {
                FileEvent::Opened(_, result) => format!("opened {}", result.is_ok()),
                FileEvent::Written(_, result, _) => format!("written {}", result.is_ok()),
                FileEvent::Copied(_, result) => format!("copied {}", result.is_ok()),
                FileEvent::Closed(_) => "closed".to_owned(),
            });
        }
        seen
    }

    #[test]
    fn a_file_gets_its_writes_in_order_and_each_is_reported() {
        let path = std::env::temp_dir().join(format!("esatto-files-{}", std::process::id()));
        let mut files = files();
        files.create(FileId(1), path.as_os_str().as_encoded_bytes().to_vec());
        files.write(FileId(1), b"one ".to_vec());
        files.sync(FileId(1));
        files.write(FileId(1), b"two".to_vec());
        files.close(FileId(1));
        assert_eq!(events_until_closed(&mut files), ["opened true", "written true", "written true", "closed"]);
        assert_eq!(std::fs::read(&path).unwrap(), b"one two");
        // It exists now, so it is not created again.
        files.create(FileId(2), path.as_os_str().as_encoded_bytes().to_vec());
        files.close(FileId(2));
        assert_eq!(events_until_closed(&mut files), ["opened false", "closed"]);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_is_copied_with_the_writes_before_and_without_those_after() {
        let folder = std::env::temp_dir().join(format!("esatto-copies-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let mut files = files();
        // The first one cannot be read through its own descriptor.
        files.adopt(FileId(1), File::create(folder.join("1")).unwrap().into());
        files.adopt(FileId(2), File::create(folder.join("2")).unwrap().into());
        let long = vec![b'x'; 1_000_000];
        files.write(FileId(1), long.clone());
        files.copy(FileId(1), FileId(2));
        files.write(FileId(1), b"after".to_vec());
        files.close(FileId(1));
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut is_copied = false;
        while !is_copied {
            let event = files.wait_event(deadline).expect("a copy");
            is_copied = matches!(event, FileEvent::Copied(FileId(2), Ok(())));
        }
        files.write(FileId(2), b"rest".to_vec());
        files.copy(FileId(1), FileId(2));
        files.close(FileId(2));
        assert!(events_until_closed(&mut files).contains(&"copied false".to_owned()), "the source is closed");
        assert_eq!(std::fs::read(folder.join("1")).unwrap(), [&long[..], b"after"].concat());
        assert_eq!(std::fs::read(folder.join("2")).unwrap(), [&long[..], b"rest"].concat());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_copy_that_nobody_takes_does_not_hold_up_the_file() {
        use std::io::Read as _;
        let path = std::env::temp_dir().join(format!("esatto-lent-{}", std::process::id()));
        let mut files = files();
        files.create(FileId(1), path.as_os_str().as_encoded_bytes().to_vec());
        let (nobody, pipe) = rustix::pipe::pipe().unwrap();
        files.adopt(FileId(2), pipe);
        // More than a pipe holds.
        let long = vec![b'x'; 1_000_000];
        files.write(FileId(1), long.clone());
        files.copy(FileId(1), FileId(2));
        files.write(FileId(1), b"after".to_vec());
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut written = 0;
        while written < 2 {
            match files.wait_event(deadline).expect("the writes are done") {
                FileEvent::Written(FileId(1), Ok(()), _) => written += 1,
                FileEvent::Copied(..) => panic!("nobody reads"),
                _ => {}
            }
        }
        files.close(FileId(1));
        files.close(FileId(2));
        let mut copied = Vec::new();
        File::from(nobody).read_to_end(&mut copied).unwrap();
        assert!(copied == long);
        assert!(events_until_closed(&mut files).contains(&"copied true".to_owned()));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_cannot_be_read_back_is_not_copied() {
        let mut files = files();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        files.adopt(FileId(1), full.into());
        files.adopt(FileId(2), OpenOptions::new().write(true).open("/dev/null").unwrap().into());
        files.copy(FileId(1), FileId(2));
        files.close(FileId(1));
        files.close(FileId(2));
        let seen = events_until_closed(&mut files);
        assert!(seen.contains(&"copied false".to_owned()), "{seen:?}");
    }

    #[test]
    fn pipes_that_nobody_reads_do_not_pile_up() {
        let mut files = files();
        let pipes: Vec<_> = (0..=MAX_FILES as u64).map(|id| (FileId(id), rustix::pipe::pipe().unwrap())).collect();
        let mut unread = Vec::new();
        for (id, (read_end, write_end)) in pipes {
            unread.push(read_end);
            files.adopt(id, write_end);
            files.write(id, vec![0; 1 << 20]);
            files.close(id);
        }
        // Only of the last one is anything heard: it was not even begun.
        let deadline = Instant::now() + Duration::from_secs(60);
        let Some(FileEvent::Written(FileId(id), Err(_), _)) = files.wait_event(deadline) else { panic!("not refused") };
        assert_eq!(id, MAX_FILES as u64);
        // Nobody will read them: the writes fail, and there is room again.
        drop(unread);
        let ends = events_until_closed(&mut files);
        assert_eq!(ends.iter().filter(|end| *end == "closed").count(), MAX_FILES);
        files.adopt(FileId(1000), File::open("/dev/null").unwrap().into());
        assert_eq!(files.open.len(), 1);
    }

    #[test]
    fn a_full_disk_is_reported() {
        let mut files = files();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        files.adopt(FileId(1), full.into());
        files.write(FileId(1), vec![0; 10]);
        files.close(FileId(1));
        assert_eq!(events_until_closed(&mut files), ["written false", "closed"]);
    }
}
