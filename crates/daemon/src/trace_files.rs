//! Trace files that the service streams into: their number per user, and the way in which the
//! daemon creates and writes them.
//!
//! [`esatto_trace_files`] writes each file in a thread of its own. [`MAX_FILES`] bounds their
//! number.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use esatto_ipc::ForeignFd;
use esatto_service::FileId;
use esatto_trace_files::{FileEvent, Files, Host};
use rustix::fs::OFlags;

use crate::packet_file::write_packets;
use crate::stats::Counters;
use crate::user_shares::{Owner, share_of};
use crate::wakeup::Wakeup;

/// Trace files at the same time, with those whose session has ended but whose last write has not.
///
/// A consumer can bring any number of unread pipes, and each keeps a thread. Beyond the bound, the
/// session gets the error that its file cannot be written, and the log has the reason.
pub(crate) const MAX_FILES: usize = 64;
/// Files that are reserved for root, the user of this service and configs with a path. Each user
/// has a share of the rest ([`share_of`]): a single user may have more files than it can have
/// sessions.
const RESERVED_FILES: usize = 16;

/// All open trace files.
#[derive(Debug)]
pub(crate) struct TraceFiles {
    files: Files<Daemon>,
    /// The owner for whom each file counts until it is closed. `None`: it was created by its path.
    owners: HashMap<FileId, Option<Owner>>,
    /// The user of this service.
    uid: i32,
}

impl TraceFiles {
    pub(crate) fn new(uid: i32, wakeup: Arc<Wakeup>, counters: Arc<Counters>) -> Self {
        Self { files: Files::new(Daemon { wakeup, counters }), owners: HashMap::new(), uid }
    }

    /// Writes to a descriptor that a consumer of this user brought.
    pub(crate) fn adopt(&mut self, id: FileId, fd: ForeignFd, owner: Owner) {
        // If no thread starts, this drops the descriptor, and the closing threads close it.
        let started = self.admit(Some(owner)).map_err(io::Error::other);
        let started = started.and_then(|()| self.files.adopt(id, move || File::from(fd.into_owned())));
        if let Err(why) = &started {
            self.files.refuse_adopted(id, why.to_string());
        }
        self.note_start(id, Some(owner), started);
    }

    /// Creates a file that must not exist, for a consumer of a user. [`FileEvent::Opened`] follows.
    ///
    /// A service that runs as root creates files for root only: else a member of the group of the
    /// consumer socket could make files that root trusts. Descriptors carry the rights of those who
    /// opened them.
    pub(crate) fn create(&mut self, id: FileId, path: Vec<u8>, uid: i32) {
        let path = PathBuf::from(std::ffi::OsString::from_vec(path));
        let admitted = if self.uid == 0 && uid != 0 {
            Err(format!(
                "this service runs as root, and creates no files for the user {uid}; leave output_path out and let \
                 the command write the file (-o), or run the service as a user of its own"
            ))
        } else {
            self.admit(None)
        };
        let started = match admitted {
            Ok(()) => self.files.create(id, path),
            Err(why) => {
                self.files.refuse(id, why.clone());
                Err(io::Error::other(why))
            }
        };
        self.note_start(id, None, started);
    }

    fn note_start(&mut self, id: FileId, owner: Option<Owner>, started: io::Result<()>) {
        match started {
            Ok(()) => drop(self.owners.insert(id, owner)),
            Err(e) => log::error!("cannot start the thread of a trace file: {e}"),
        }
    }

    /// Checks whether this owner may have one more file.
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
                "{owner} has {own} trace files open already, and its share is half of the files that other users leave"
            )),
            _ => Ok(()),
        }
    }

    /// Appends packets to a file. [`FileEvent::Written`] follows.
    pub(crate) fn write(&self, id: FileId, packets: Vec<u8>) {
        self.files.write(id, packets);
    }

    /// Appends to one file all packets that the service has written to another one so far.
    /// [`FileEvent::Copied`] follows.
    pub(crate) fn copy(&self, from: FileId, to: FileId) {
        self.files.copy(from, to);
    }

    /// Syncs a file to its disk after the writes so far.
    pub(crate) fn sync(&self, id: FileId) {
        self.files.sync(id);
    }

    /// Closes a file after its last write.
    pub(crate) fn close(&mut self, id: FileId) {
        self.files.close(id);
    }

    /// Returns the next event, if there is one.
    pub(crate) fn next_event(&mut self) -> Option<FileEvent> {
        let event = self.files.next_event()?;
        self.note(&event);
        Some(event)
    }

    /// Waits for the next event. Returns `None` at `deadline` or when no file is left.
    pub(crate) fn wait_event(&mut self, deadline: Instant) -> Option<FileEvent> {
        if self.owners.is_empty() {
            return None;
        }
        let event = self.files.wait_event(deadline.saturating_duration_since(Instant::now()));
        match &event {
            Some(event) => self.note(event),
            None => log::error!("a trace file takes no data: it is left incomplete"),
        }
        event
    }

    fn note(&mut self, event: &FileEvent) {
        if let FileEvent::Closed(id) = event {
            self.files.close(*id);
            self.owners.remove(id);
        }
    }
}

/// The daemon's way to write files.
#[derive(Clone, Debug)]
struct Daemon {
    wakeup: Arc<Wakeup>,
    counters: Arc<Counters>,
}

impl Host for Daemon {
    fn spawn(&self, id: FileId, body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        thread::Builder::new().name(format!("trace-file-{}", id.0)).spawn(body).map(drop)
    }

    fn wake(&self) {
        self.wakeup.wake();
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o644).open(path)?;
        // Other users may read the file, with any umask.
        file.set_permissions(Permissions::from_mode(0o644))?;
        Ok(file)
    }

    fn append(&self, file: &mut File, packets: &[u8]) -> io::Result<()> {
        write_packets(file, packets)?;
        self.counters.file_bytes_written.add(packets.len() as u64);
        Ok(())
    }

    /// Keeps the access that the descriptor has. A process with more rights must not open the file
    /// again, because the consumer that brought it may not be allowed to read it.
    fn reader(&self, file: &File) -> io::Result<File> {
        if rustix::fs::fcntl_getfl(file)? & OFlags::RWMODE != OFlags::RDWR {
            return Err(io::Error::other(
                "it was opened for writing only; open it for reading and writing to clone it",
            ));
        }
        file.try_clone()
    }

    fn read_at(&self, file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        file.read_at(bytes, offset)
    }

    fn sync_failed(&self, error: &io::Error) {
        log::debug!("a trace file was not synced: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek as _;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    const ALICE: Owner = Owner::Uid(1000);

    fn adopt(files: &mut TraceFiles, id: FileId, fd: impl Into<OwnedFd>) {
        files.adopt(id, fd.into().into(), Owner::Uid(0));
    }

    fn read_write(path: &Path) -> File {
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
    }

    fn files() -> TraceFiles {
        TraceFiles::new(77, Arc::new(Wakeup::new().unwrap()), Arc::default())
    }

    fn events_until_closed(files: &mut TraceFiles) -> Vec<String> {
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
        files.create(FileId(1), path.as_os_str().as_encoded_bytes().to_vec(), 0);
        files.write(FileId(1), b"one ".to_vec());
        files.sync(FileId(1));
        files.write(FileId(1), b"two".to_vec());
        files.close(FileId(1));
        assert_eq!(events_until_closed(&mut files), ["opened true", "written true", "written true", "closed"]);
        assert_eq!(std::fs::read(&path).unwrap(), b"one two");
        // The file exists now, so it is not created again.
        files.create(FileId(2), path.as_os_str().as_encoded_bytes().to_vec(), 0);
        files.close(FileId(2));
        assert_eq!(events_until_closed(&mut files), ["opened false", "closed"]);
        // Nothing is left of failed ones.
        for id in 3..3 + 2 * MAX_FILES as u64 {
            files.create(FileId(id), path.as_os_str().as_encoded_bytes().to_vec(), 0);
            assert_eq!(events_until_closed(&mut files), ["opened false", "closed"]);
        }
        assert!(files.files.is_empty());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_is_copied_with_the_writes_before_and_without_those_after() {
        let folder = std::env::temp_dir().join(format!("esatto-copies-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let mut files = files();
        // The earlier content of the first file must not be copied.
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
    fn a_copy_into_an_unread_pipe_does_not_delay_the_source() {
        use std::io::Read as _;
        let path = std::env::temp_dir().join(format!("esatto-lent-{}", std::process::id()));
        let mut files = files();
        files.create(FileId(1), path.as_os_str().as_encoded_bytes().to_vec(), 0);
        let (read_end, pipe) = rustix::pipe::pipe().unwrap();
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
                FileEvent::Copied(..) => panic!("the pipe is not read yet"),
                _ => {}
            }
        }
        files.close(FileId(1));
        files.close(FileId(2));
        let mut copied = Vec::new();
        File::from(read_end).read_to_end(&mut copied).unwrap();
        assert!(copied == long);
        assert!(events_until_closed(&mut files).contains(&"copied true".to_owned()));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_copy_of_an_append_only_file_has_only_the_appended_bytes() {
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
        // Copied content can be copied again.
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
    fn a_user_with_unread_pipes_leaves_trace_files_for_other_users() {
        let mut files = files();
        let mut unread = Vec::new();
        let mut bring = |files: &mut TraceFiles, owner| {
            let id = FileId(unread.len() as u64);
            let (read_end, write_end) = rustix::pipe::pipe().unwrap();
            unread.push(read_end);
            let before = files.files.len();
            files.adopt(id, write_end.into(), owner);
            files.files.len() > before
        };
        let brought = |files: &mut TraceFiles, owner, bring: &mut dyn FnMut(&mut TraceFiles, Owner) -> bool| {
            (0..100).take_while(|_| bring(files, owner)).count()
        };
        assert_eq!(brought(&mut files, ALICE, &mut bring), 24);
        // The files still count after their sessions have ended.
        for id in 0..24 {
            files.write(FileId(id), vec![0; 1 << 20]);
            files.close(FileId(id));
        }
        let others = [Owner::Remote, Owner::Uid(1001), Owner::Uid(1002), Owner::Uid(1003), Owner::Uid(1004)];
        assert_eq!(others.map(|owner| brought(&mut files, owner, &mut bring)), [12, 6, 3, 2, 1]);
        assert_eq!(brought(&mut files, Owner::Uid(1005), &mut bring), 0, "the rest is reserved for root");
        assert_eq!(brought(&mut files, Owner::Uid(77), &mut bring), RESERVED_FILES);
    }

    #[test]
    fn a_device_is_not_copied() {
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
    fn the_number_of_unread_pipes_is_bounded() {
        let mut files = files();
        let pipes: Vec<_> = (0..=MAX_FILES as u64).map(|id| (FileId(id), rustix::pipe::pipe().unwrap())).collect();
        let mut unread = Vec::new();
        for (id, (read_end, write_end)) in pipes {
            unread.push(read_end);
            adopt(&mut files, id, write_end);
            if id != FileId(MAX_FILES as u64) {
                files.write(id, vec![0; 1 << 20]);
                files.close(id);
            }
        }
        // Only the last file reports anything, before anybody writes to it: it has no thread.
        let deadline = Instant::now() + Duration::from_secs(60);
        let Some(FileEvent::Written(FileId(id), Err(_), _)) = files.wait_event(deadline) else { panic!("not refused") };
        assert_eq!(id, MAX_FILES as u64);
        // Without readers the writes fail, and there is room again.
        drop(unread);
        let ends = events_until_closed(&mut files);
        assert_eq!(ends.iter().filter(|end| *end == "closed").count(), MAX_FILES);
        adopt(&mut files, FileId(1000), File::open("/dev/null").unwrap());
        assert_eq!(files.files.len(), 1);
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
