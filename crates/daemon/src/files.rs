//! Trace files that the service streams into (`write_into_file`, `docs/spec/service.md` §18).
//!
//! A file can be slow (a network disk) or never finish a write at all (a pipe that nobody reads), and the event
//! loop must not wait for it. So each file has a thread of its own, which does the writes in order and reports through
//! a channel; the service never has more than one write per file under way.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Instant;

use esatto_protozero::wire::decode_varint;
use esatto_service::FileId;
use rustix::event::{PollFd, PollFlags, poll};

use crate::stats::Counters;
use crate::wake::Wake;

/// What a file's thread has to tell.
#[derive(Debug)]
pub(crate) enum FileEvent {
    Opened(FileId, Result<(), String>),
    Written(FileId, Result<(), String>),
    Closed(FileId),
}

/// What a file's thread has to do.
#[derive(Debug)]
enum Job {
    Write(Vec<u8>),
    Sync,
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
        match thread::Builder::new().name(format!("trace-file-{}", id.0)).spawn(body) {
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
            self.report.send(FileEvent::Written(id, Err("the file is not open".to_owned())));
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
    while let Ok(job) = todo.recv() {
        match job {
            Job::Write(bytes) => {
                let result = match &mut file {
                    Some(file) => write_packets(file, &bytes),
                    None => Err(io::Error::other("the file is not open")),
                };
                if result.is_ok() {
                    report.counters.file_bytes_written.add(bytes.len() as u64);
                }
                report.send(FileEvent::Written(id, result_text(&result)));
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

/// Appends whole packets: all of them, or, if the file takes no more, as many as it takes.
fn write_packets(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let mut written = 0;
    while written < bytes.len() {
        let error = match file.write(&bytes[written..]) {
            Ok(0) => io::ErrorKind::WriteZero.into(),
            Ok(n) => {
                written += n;
                continue;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && wait_writable(file).is_ok() => continue,
            Err(e) => e,
        };
        cut_off(file, written - whole_packets(bytes, written));
        return Err(error);
    }
    Ok(())
}

/// Waits for a descriptor that its owner made non-blocking.
fn wait_writable(file: &File) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::new(file, PollFlags::OUT)], None) {
            Err(rustix::io::Errno::INTR) => {}
            result => return Ok(result.map(drop)?),
        }
    }
}

/// Removes so many bytes from the end, so that readers do not find half a packet there.
fn cut_off(file: &mut File, bytes: usize) {
    let cut = file.stream_position().and_then(|end| {
        let end = end.saturating_sub(bytes as u64);
        file.set_len(end)
    });
    if let Err(e) = cut {
        // Pipes have no end.
        log::debug!("a trace file ends within a packet: {e}");
    }
}

/// How many of the first `len` bytes of a `Trace` are whole packets.
fn whole_packets(trace: &[u8], len: usize) -> usize {
    let mut end = 0;
    // Behind the tag, a length.
    while let Some((length, size)) = trace.get(end + 1..).and_then(decode_varint) {
        let next = usize::try_from(length).ok().and_then(|length| length.checked_add(end + 1 + size));
        match next.filter(|&next| next <= len) {
            Some(next) => end = next,
            None => break,
        }
    }
    end
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
                FileEvent::Written(_, result) => format!("written {}", result.is_ok()),
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
    fn what_does_not_fit_is_cut_off_behind_a_packet() {
        let trace = b"\x0a\x02ab\x0a\x00\x0a\x03cde";
        let ends: Vec<usize> = (0..=trace.len()).map(|len| whole_packets(trace, len)).collect();
        assert_eq!(ends, [0, 0, 0, 0, 4, 4, 6, 6, 6, 6, 6, 11]);
        let path = std::env::temp_dir().join(format!("esatto-cut-{}", std::process::id()));
        let mut file = create_exclusively(&path).unwrap();
        file.write_all(b"before").unwrap();
        file.write_all(&trace[..9]).unwrap();
        cut_off(&mut file, 9 - whole_packets(trace, 9));
        assert_eq!(std::fs::read(&path).unwrap(), b"before\x0a\x02ab\x0a\x00");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_pipe_that_does_not_block_is_waited_for() {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        let mut files = files();
        files.adopt(FileId(1), write);
        files.write(FileId(1), vec![7; 1 << 20]);
        files.close(FileId(1));
        rustix::io::ioctl_fionbio(&read, false).unwrap();
        let mut all = Vec::new();
        std::io::Read::read_to_end(&mut File::from(read), &mut all).unwrap();
        assert_eq!(all, vec![7; 1 << 20]);
        assert_eq!(events_until_closed(&mut files), ["written true", "closed"]);
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
