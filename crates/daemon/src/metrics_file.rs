//! Counts of the daemon in a file, in the text format of Prometheus, for the textfile collector of
//! its node exporter.
//!
//! The event loop never waits for a disk, so a thread writes the file. It exists only if the
//! command line asks for the file.

use core::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use esatto_service::Metrics;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::error::Error;
use crate::stats::Stats;

/// Time between two writes. Scrapes are usually less frequent.
pub(crate) const METRICS_PERIOD_NS: u64 = 10_000_000_000;

/// Time for which the end of the daemon waits until the file is removed.
const END_TIMEOUT: Duration = Duration::from_secs(1);

const MODE: u32 = 0o644;

/// First bytes of each metrics file. The name of another program's metric does not begin so.
const HEAD: &[u8] = b"# HELP esatto_";

/// The thread that writes the file. The file is removed when this is dropped, so that nobody takes
/// old numbers for those of a running daemon. A file that somebody else has put in its place stays.
#[derive(Debug)]
pub(crate) struct MetricsFile {
    /// `None` while this is dropped: then the thread ends.
    texts: Option<SyncSender<String>>,
    /// Closed when the thread has ended.
    end: Receiver<()>,
}

impl MetricsFile {
    /// Writes the file for the first time, with the numbers of a service without clients, and
    /// starts the thread. If the disk is full, the thread tries again with each text.
    ///
    /// # Errors
    ///
    /// Something else is at the path, the file cannot be written, or no thread can be started.
    pub(crate) fn create(path: PathBuf) -> Result<Self, Error> {
        let failed = |source| Error::MetricsFile { path: path.display().to_string(), source };
        check_is_replaceable(&path, |head| head == HEAD).map_err(failed)?;
        let mut written = match replace(&path, &text(&Metrics::default(), &Stats::default(), 0)) {
            Err(e) if matches!(e.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                log::warn!("cannot write the metrics file {}: {e}; the service starts without it", path.display());
                None
            }
            written => Some(written.map_err(failed)?),
        };
        // A disk that takes nothing holds up one text. Later ones are left out.
        let (texts, received) = mpsc::sync_channel(1);
        let (ends, end) = mpsc::channel();
        let body = move || {
            write_all(&path, &mut written, &received);
            if written.is_some_and(|written| matches!(is_at(&path, &written), Ok(Some(true)))) {
                let _ = fs::remove_file(&path);
            }
            drop(ends);
        };
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(body);
        thread.map_err(Error::system("start a thread"))?;
        Ok(Self { texts: Some(texts), end })
    }

    /// Writes the file again, unless an earlier write still lasts.
    pub(crate) fn publish(&self, text: String) {
        if let Some(texts) = &self.texts {
            let _ = texts.try_send(text);
        }
    }
}

impl Drop for MetricsFile {
    fn drop(&mut self) {
        self.texts = None;
        let _ = self.end.recv_timeout(END_TIMEOUT);
    }
}

/// Writes the file for each text. `written` is the file that was written last; `None` if the disk
/// was full. It stays open, so that no other file gets its inode number.
///
/// Ends when something else is at the path: another daemon writes there, or somebody needs the
/// name.
fn write_all(path: &Path, written: &mut Option<File>, texts: &Receiver<String>) {
    let mut has_failed = written.is_none();
    for text in texts {
        let found = match written {
            Some(written) => is_at(path, written),
            None => check_is_replaceable(path, |head| head == HEAD).map(|()| None),
        };
        if let Ok(Some(false)) = found {
            let path = path.display();
            log::warn!("the metrics file {path} was replaced by something else: it gets no more numbers");
            return;
        }
        let result = found.and_then(|_| replace(path, &text)).map(|file| *written = Some(file));
        // One line for a disk that stays full.
        if let (Err(e), false) = (&result, has_failed) {
            log::warn!("cannot write the metrics file {}: {e}", path.display());
        }
        has_failed = result.is_err();
    }
}

/// Returns if the file at the path is this one, and `None` if nothing is there.
fn is_at(path: &Path, file: &File) -> io::Result<Option<bool>> {
    let id = |meta: fs::Metadata| (meta.dev(), meta.ino());
    let own = id(file.metadata()?);
    Ok(metadata_at(path)?.map(|meta| id(meta) == own))
}

/// Returns the metadata of what is at the path, without following a link. `None` for nothing.
fn metadata_at(path: &Path) -> io::Result<Option<fs::Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(meta)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Fails unless the path is free, or has a file that a killed daemon has left there. `is_own` tells
/// it by its first bytes, as many as [`HEAD`] has.
///
/// The daemon often runs as root, and a wrong path must not cost a device or a configuration.
fn check_is_replaceable(path: &Path, is_own: impl Fn(&[u8]) -> bool) -> io::Result<()> {
    let Some(meta) = metadata_at(path)? else { return Ok(()) };
    let kind = meta.file_type();
    let kind = match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("folder"),
        () if kind.is_symlink() => Some("symbolic link"),
        () if kind.is_fifo() => Some("FIFO"),
        () if kind.is_socket() => Some("socket"),
        () => Some("device"),
    };
    let refused = |reason: String| Err(io::Error::new(ErrorKind::AlreadyExists, reason));
    if let Some(kind) = kind {
        return refused(format!("it exists and is a {kind}, not a metrics file; choose another path"));
    }
    // Somebody may have put a link or a FIFO there by now.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    // Another daemon locks the file that it writes. Not every file system has locks.
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK) {
        return refused("a running daemon writes it; choose another path".to_owned());
    }
    let mut head = Vec::new();
    file.take(HEAD.len() as u64).read_to_end(&mut head)?;
    if !is_own(&head) {
        return refused("it exists and is not a metrics file; remove it or choose another path".to_owned());
    }
    Ok(())
}

/// Replaces the file as a whole, so that no reader sees half of it. Everybody may read it.
fn replace(path: &Path, text: &str) -> io::Result<File> {
    let mut new = path.as_os_str().to_owned();
    // The collector reads only files whose names end in .prom.
    new.push(".new");
    let new = PathBuf::from(new);
    let mut file = create_new(&new)?;
    // Another daemon must not take this file for one that a killed daemon has left. The lock ends
    // with this process. Not every file system has locks.
    let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
    let written = file.write_all(text.as_bytes()).and_then(|()| {
        // The umask may have taken bits.
        file.set_permissions(fs::Permissions::from_mode(MODE))?;
        fs::rename(&new, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written.map(|()| file)
}

/// Creates a file in place of one that a killed daemon has left, whole or in part.
///
/// Another user may be able to write into the folder, while this service is root. So it writes only
/// into a file that it has created, and never follows a symbolic link or waits for the reader of a
/// FIFO.
fn create_new(path: &Path) -> io::Result<File> {
    let in_the_way = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    check_is_replaceable(path, |head| HEAD.starts_with(head)).map_err(in_the_way)?;
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(MODE).open(path)
}

/// Formats all numbers. The names and units are in `docs/how-to/fleet-service.md`.
pub(crate) fn text(service: &Metrics, daemon: &Stats, consumers: usize) -> String {
    let recorded = service.recorded;
    let gauges: [(&str, &str, u64); 7] = [
        ("sessions_running", "Sessions that record.", service.sessions_running as u64),
        ("sessions_idle", "Sessions that wait, stop, or have ended and hold data.", service.sessions_idle as u64),
        ("producers", "Connected programs that can record events.", service.producers as u64),
        ("consumers", "Connected programs that control sessions.", consumers as u64),
        ("data_sources", "Data sources that the producers offer.", service.data_sources as u64),
        ("buffer_bytes", "Bytes of the buffers of all sessions, filled or not.", service.buffer_bytes),
        ("lockdown", "1 if only programs of the daemon's own user are served.", service.is_locked_down.into()),
    ];
    let counters = [
        ("sessions_started_total", "Sessions that were started.", service.sessions_started),
        ("sessions_refused_total", "Sessions that were refused.", service.sessions_refused),
        ("lockdown_refusals_total", "Connections of producers that lockdown mode refused.", service.lockdown_refusals),
        ("recorded_bytes_total", "Bytes that producers wrote into buffers.", recorded.bytes),
        ("overwritten_bytes_total", "Bytes that a ring overwrote before they were read.", recorded.overwritten_bytes),
        (
            "overwritten_lost_bytes_total",
            "The part of them in sessions that are read while they record.",
            recorded.overwritten_lost_bytes,
        ),
        ("discarded_chunks_total", "Chunks that a full buffer discarded.", recorded.discarded_chunks),
        ("shared_memory_losses_total", "Gaps where producers dropped packets.", recorded.shared_memory_losses),
        ("malformed_chunks_total", "Chunks that break the rules.", recorded.violations),
        ("late_patches_total", "Patches for chunks that are not there.", recorded.late_patches),
        ("invalid_packets_total", "Malformed packets, found when they are read.", recorded.invalid_packets),
        ("clone_losses_total", "Contents of buffers lost with failed clones.", recorded.clone_losses),
        ("files_failed_total", "Trace files that were not written to their end.", service.files_failed),
        ("flushes_failed_total", "Flushes that a producer did not acknowledge in time.", service.flushes_failed),
        ("stops_failed_total", "Stops that a producer did not acknowledge in time.", service.stops_failed),
        ("producers_accepted_total", "Accepted connections of producers.", daemon.producers_accepted),
        ("consumers_accepted_total", "Accepted connections of consumers.", daemon.consumers_accepted),
        ("connections_refused_total", "Refused connections.", daemon.connections_refused),
        ("stalled_peers_total", "Connections closed because the client did not read.", daemon.stalled_peers),
        ("protocol_errors_total", "Connections closed because the client broke the protocol.", daemon.protocol_errors),
        ("bad_calls_total", "Calls that cannot be understood.", daemon.bad_calls),
        ("memory_refused_total", "Shared memory of producers that was not adopted.", daemon.memory_refused),
        ("memory_lost_total", "Connections closed because their shared memory was cut.", daemon.memory_lost),
        ("received_bytes_total", "Bytes received from clients.", daemon.bytes_received),
        ("sent_bytes_total", "Bytes sent to clients.", daemon.bytes_sent),
        ("file_written_bytes_total", "Bytes written into trace files.", daemon.file_bytes_written),
    ];
    let mut text = String::new();
    let gauges = gauges.map(|(name, help, value)| ("gauge", name, help, value));
    let counters = counters.map(|(name, help, value)| ("counter", name, help, value));
    for (kind, name, help, value) in gauges.into_iter().chain(counters) {
        // Writing to a string cannot fail.
        let _ = write!(text, "# HELP esatto_{name} {help}\n# TYPE esatto_{name} {kind}\nesatto_{name} {value}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_a_help_line_and_a_type() {
        let text = text(&Metrics::default(), &Stats::default(), 3);
        assert!(text.as_bytes().starts_with(HEAD), "the next daemon knows the file by it");
        assert!(text.contains("# TYPE esatto_consumers gauge\nesatto_consumers 3\n"));
        let lines: Vec<&str> = text.lines().collect();
        let mut names = Vec::new();
        for group in lines.chunks(3) {
            let name = group[2].split(' ').next().unwrap();
            assert!(group[0].starts_with(&format!("# HELP {name} ")), "{group:?}");
            let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
            assert_eq!(group[1], format!("# TYPE {name} {kind}"));
            assert!(!names.contains(&name), "{name} is there twice");
            names.push(name);
        }
    }
}
