//! Trace files that the service streams into (`write_into_file`, `docs/spec/service.md` §18).
//!
//! A file can be slow (a network disk) or never finish a write at all (a pipe that nobody reads),
//! and the event loop must not wait for it. So each file has a thread of its own, which does the
//! writes in order and reports through a channel. A daemon whose sessions stream into no file has
//! no such thread.
//!
//! What waits for a file is bounded: the service has at most two writes per file under way, about 1
//! MiB each, while its session lives. The number of files is bounded too ([`MAX_FILES`]).

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Instant;

use esatto_ipc::ForeignFd;
use esatto_service::FileId;
use rustix::fs::OFlags;

use crate::packet_file::write_packets;
use crate::stats::Counters;
use crate::user_shares::{Owner, share_of};
use crate::wakeup::Wakeup;

/// Files at the same time, those included whose sessions are over but whose last write does not
/// end: a consumer can bring any number of pipes that nobody reads, each of which keeps a thread.
/// Beyond it, the session is told that its file cannot be written, and the log says why.
pub(crate) const MAX_FILES: usize = 64;
/// Of these, files that only root, the user of this service and configs with a path can have. Of
/// the others, each user has a share ([`share_of`]): alone, more than it can have sessions.
const RESERVED_FILES: usize = 16;

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

/// What this process has written to a file at some point.
#[derive(Debug)]
struct Lent {
    file: File,
    begin: u64,
    size_bytes: u64,
}

/// A file and what this process has written to it. Nothing else of it is ever read: a consumer may
/// have brought a file that was not empty, and that it could not read itself.
#[derive(Debug)]
struct Written {
    file: File,
    /// Where the first byte is; `None` before there is one, and for what has no offset.
    begin: Option<u64>,
    size_bytes: u64,
}

/// All open trace files.
#[derive(Debug)]
pub(crate) struct Files {
    /// Dropping the sender closes the file after its last job.
    open: HashMap<FileId, Sender<Job>>,
    /// For whom each file is counted, until it is closed. `None`: it was created by its path.
    owners: HashMap<FileId, Option<Owner>>,
    /// The user of this service.
    uid: i32,
    events: Receiver<FileEvent>,
    report: Report,
}

/// A thread's way back to the loop.
#[derive(Clone, Debug)]
struct Report {
    events: Sender<FileEvent>,
    wake: Arc<Wakeup>,
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
    pub(crate) fn new(uid: i32, wake: Arc<Wakeup>, counters: Arc<Counters>) -> Self {
        let (sender, events) = channel();
        let report = Report { events: sender, wake, counters };
        Self { open: HashMap::new(), owners: HashMap::new(), uid, events, report }
    }

    /// Writes to a descriptor that a consumer of this user brought.
    pub(crate) fn adopt(&mut self, id: FileId, fd: ForeignFd, owner: Owner) {
        self.start(id, Some(owner), move || Ok(File::from(fd.into_owned())), false);
    }

    /// Creates a file that must not exist; [`FileEvent::Opened`] follows.
    pub(crate) fn create(&mut self, id: FileId, path: Vec<u8>) {
        let path = PathBuf::from(std::ffi::OsString::from_vec(path));
        self.start(id, None, move || create_exclusively(&path), true);
    }

    fn start(
        &mut self,
        id: FileId,
        owner: Option<Owner>,
        open: impl FnOnce() -> io::Result<File> + Send + 'static,
        report_open: bool,
    ) {
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
        let started = self.admit(owner).map_err(io::Error::other).and_then(|()| {
            // What could not be begun is dropped: a descriptor of a stranger by those who close
            // such.
            thread::Builder::new().name(format!("trace-file-{}", id.0)).spawn(body)
        });
        match started {
            Ok(_) => {
                self.open.insert(id, jobs);
                self.owners.insert(id, owner);
            }
            Err(e) => {
                log::error!("cannot start the thread of a trace file: {e}");
                if report_open {
                    self.report.send(FileEvent::Opened(id, Err(e.to_string())));
                }
            }
        }
    }

    /// Returns whether there may be one more file of this owner, or why not.
    fn admit(&self, owner: Option<Owner>) -> Result<(), String> {
        let open = self.owners.len();
        if open >= MAX_FILES {
            return Err(format!("{MAX_FILES} trace files are open already"));
        }
        let Some(owner) = owner.filter(|owner| ![Owner::Uid(0), Owner::Uid(self.uid)].contains(owner)) else {
            return Ok(());
        };
        let own = self.owners.values().filter(|other| **other == Some(owner)).count();
        match share_of(MAX_FILES - RESERVED_FILES, open - own, false) {
            0 => Err(format!("{open} trace files are open already, and the rest is reserved for root")),
            may_have if own >= may_have => Err(format!(
                "{owner} has {own} trace files open already, and its share is half of what the others leave"
            )),
            _ => Ok(()),
        }
    }

    /// Appends; [`FileEvent::Written`] follows.
    pub(crate) fn write(&mut self, id: FileId, bytes: Vec<u8>) {
        let sent = self.open.get(&id).map(|jobs| jobs.send(Job::Write(bytes)));
        if !matches!(sent, Some(Ok(()))) {
            self.report.send(FileEvent::Written(id, Err("the file is not open".to_owned()), Vec::new()));
        }
    }

    /// Appends what was to be written to a file to another; [`FileEvent::Copied`] follows. The one
    /// copied from is not held up.
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
        self.open.remove(&id);
    }

    /// What has happened since the last call.
    pub(crate) fn next_event(&mut self) -> Option<FileEvent> {
        let event = self.events.try_recv().ok()?;
        self.note(&event);
        Some(event)
    }

    /// The next event, waiting for it; `None` at `deadline` or when no file is left.
    pub(crate) fn wait_event(&mut self, deadline: Instant) -> Option<FileEvent> {
        if self.owners.is_empty() {
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
            self.open.remove(id);
            self.owners.remove(id);
        }
    }
}

/// Does the jobs of one file until the loop closes it.
fn work(id: FileId, opened: io::Result<File>, todo: &Receiver<Job>, report: &Report) {
    let mut file = opened.ok().map(Written::new);
    let mut is_damaged = false;
    while let Ok(job) = todo.recv() {
        match job {
            Job::Write(bytes) => {
                let result = match &mut file {
                    Some(file) if !is_damaged => file.append(&bytes),
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
                    Some(file) if !is_damaged => file.lend(),
                    _ => Err(io::Error::other("the file could not be written")),
                };
                if target.send(Job::Copy(lent)).is_err() {
                    report.send(FileEvent::Copied(to, Err("the file is not open".to_owned())));
                }
            }
            Job::Copy(lent) => {
                let result = lent.and_then(|lent| match &mut file {
                    Some(file) => file.append_copy(&lent),
                    None => Err(io::Error::other("the file is not open")),
                });
                report.send(FileEvent::Copied(id, result_text(&result)));
            }
            Job::Sync => {
                if let Some(Err(e)) = file.as_ref().map(|written| written.file.sync_data()) {
                    // Pipes and terminals cannot be synced.
                    log::debug!("a trace file was not synced: {e}");
                }
            }
        }
    }
}

impl Written {
    fn new(file: File) -> Self {
        Self { file, begin: None, size_bytes: 0 }
    }

    /// Appends packets.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.note_begin();
        write_packets(&mut self.file, bytes)?;
        self.size_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Appends what another file was lent for.
    fn append_copy(&mut self, from: &Lent) -> io::Result<()> {
        /// Bytes read at a time.
        const PIECE_BYTES: usize = 256 * 1024;
        self.note_begin();
        let mut piece = vec![0; PIECE_BYTES];
        let mut done = 0;
        while done < from.size_bytes {
            let wanted = usize::try_from(from.size_bytes - done).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
            // Its offset is the writer's: it must not move.
            match from.file.read_at(&mut piece[..wanted], from.begin + done) {
                Ok(0) => return Err(io::Error::other("it was truncated")),
                Ok(len) => {
                    self.file.write_all(&piece[..len])?;
                    done += len as u64;
                    self.size_bytes += len as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Before the first write: it goes to the offset, or to the end of a file that is only appended
    /// to.
    fn note_begin(&mut self) {
        if self.size_bytes == 0 {
            let appends = rustix::fs::fcntl_getfl(&self.file).is_ok_and(|flags| flags.contains(OFlags::APPEND));
            let begin = if appends { self.file.metadata().map(|of| of.len()) } else { self.file.stream_position() };
            self.begin = begin.ok();
        }
    }

    /// What was written, to be read by another thread with the access that the descriptor has. A
    /// process that may do more must not open the file again: the consumer that brought it need not
    /// be allowed to read it.
    fn lend(&self) -> io::Result<Lent> {
        if !self.file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if rustix::fs::fcntl_getfl(&self.file)? & OFlags::RWMODE != OFlags::RDWR {
            return Err(io::Error::other(
                "it was opened for writing only; open it for reading and writing to clone it",
            ));
        }
        // Nothing was written, or where it went is not known: then the reader finds nothing.
        let begin = self.begin.unwrap_or(0);
        Ok(Lent { file: self.file.try_clone()?, begin, size_bytes: self.size_bytes })
    }
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
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    const ALICE: Owner = Owner::Uid(1000);

    fn adopt(files: &mut Files, id: FileId, fd: impl Into<OwnedFd>) {
        files.adopt(id, fd.into().into(), Owner::Uid(0));
    }

    fn read_write(path: &std::path::Path) -> File {
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
    }

    fn files() -> Files {
        Files::new(77, Arc::new(Wakeup::new().unwrap()), Arc::default())
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
        // What is in the first one already is not this service's to give away.
        std::fs::write(folder.join("1"), b"before ").unwrap();
        let mut first = read_write(&folder.join("1"));
        first.seek(io::SeekFrom::End(0)).unwrap();
        adopt(&mut files, FileId(1), first);
        adopt(&mut files, FileId(2), read_write(&folder.join("2")));
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
        assert_eq!(std::fs::read(folder.join("1")).unwrap(), [b"before ", &long[..], b"after"].concat());
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
        adopt(&mut files, FileId(2), pipe);
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
    fn a_file_that_is_appended_to_lends_what_was_appended() {
        let folder = std::env::temp_dir().join(format!("esatto-appended-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("1"), b"before ").unwrap();
        let mut files = files();
        let appending = OpenOptions::new().read(true).append(true).open(folder.join("1")).unwrap();
        adopt(&mut files, FileId(1), appending);
        adopt(&mut files, FileId(2), read_write(&folder.join("2")));
        adopt(&mut files, FileId(3), read_write(&folder.join("3")));
        files.write(FileId(1), b"after".to_vec());
        files.copy(FileId(1), FileId(2));
        let deadline = Instant::now() + Duration::from_secs(60);
        while !matches!(files.wait_event(deadline).expect("a copy"), FileEvent::Copied(..)) {}
        // What was copied can be copied on.
        files.copy(FileId(2), FileId(3));
        for id in 1..=3 {
            files.close(FileId(id));
        }
        assert!(events_until_closed(&mut files).contains(&"copied true".to_owned()));
        assert_eq!(std::fs::read(folder.join("2")).unwrap(), b"after");
        assert_eq!(std::fs::read(folder.join("3")).unwrap(), b"after");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_its_owner_cannot_read_is_not_copied() {
        let folder = std::env::temp_dir().join(format!("esatto-unreadable-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let mut files = files();
        adopt(&mut files, FileId(1), File::create(folder.join("1")).unwrap());
        adopt(&mut files, FileId(2), read_write(&folder.join("2")));
        files.write(FileId(1), b"trace".to_vec());
        files.copy(FileId(1), FileId(2));
        let deadline = Instant::now() + Duration::from_secs(60);
        let error = loop {
            if let FileEvent::Copied(_, result) = files.wait_event(deadline).expect("an answer") {
                break result.unwrap_err();
            }
        };
        assert!(error.contains("opened for writing only"), "{error}");
        assert_eq!(std::fs::read(folder.join("2")).unwrap(), b"");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_user_whose_files_take_nothing_leaves_some_for_others() {
        let mut files = files();
        let mut unread = Vec::new();
        let mut bring = |files: &mut Files, owner| {
            let id = FileId(unread.len() as u64);
            let (read_end, write_end) = rustix::pipe::pipe().unwrap();
            unread.push(read_end);
            let before = files.open.len();
            files.adopt(id, write_end.into(), owner);
            files.open.len() > before
        };
        let brought = |files: &mut Files, owner, bring: &mut dyn FnMut(&mut Files, Owner) -> bool| {
            (0..100).take_while(|_| bring(files, owner)).count()
        };
        assert_eq!(brought(&mut files, ALICE, &mut bring), 24);
        // That the session is over does not help.
        for id in 0..24 {
            files.write(FileId(id), vec![0; 1 << 20]);
            files.close(FileId(id));
        }
        let others = [Owner::Remote, Owner::Uid(1001), Owner::Uid(1002), Owner::Uid(1003), Owner::Uid(1004)];
        assert_eq!(others.map(|owner| brought(&mut files, owner, &mut bring)), [12, 6, 3, 2, 1]);
        assert_eq!(brought(&mut files, Owner::Uid(1005), &mut bring), 0, "the rest is for root");
        assert_eq!(brought(&mut files, Owner::Uid(77), &mut bring), RESERVED_FILES);
    }

    #[test]
    fn what_cannot_be_read_back_is_not_copied() {
        let mut files = files();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        adopt(&mut files, FileId(1), full);
        adopt(&mut files, FileId(2), OpenOptions::new().write(true).open("/dev/null").unwrap());
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
            adopt(&mut files, id, write_end);
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
        adopt(&mut files, FileId(1000), File::open("/dev/null").unwrap());
        assert_eq!(files.open.len(), 1);
    }

    #[test]
    fn a_full_disk_is_reported() {
        let mut files = files();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        adopt(&mut files, FileId(1), full);
        files.write(FileId(1), vec![0; 10]);
        files.close(FileId(1));
        assert_eq!(events_until_closed(&mut files), ["written false", "closed"]);
    }
}
