//! Counts of the daemon in a file, in the text format of Prometheus, for the textfile collector of
//! its node exporter.
//!
//! The event loop never waits for a disk, so a thread writes the file. It exists only if the
//! command line asks for the file.

use core::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use esatto_service::Metrics;

use crate::error::Error;
use crate::stats::Stats;

/// Time between two writes. Scrapes are usually less frequent.
pub(crate) const METRICS_PERIOD_NS: u64 = 10_000_000_000;

/// Time for which the end of the daemon waits until the file is removed.
const END_TIMEOUT: Duration = Duration::from_secs(1);

const MODE: u32 = 0o644;

/// The thread that writes the file. The file is removed when this is dropped, so that nobody takes
/// old numbers for those of a running daemon. A file that another daemon has put in its place
/// stays.
#[derive(Debug)]
pub(crate) struct MetricsFile {
    /// `None` while this is dropped: then the thread ends.
    texts: Option<SyncSender<String>>,
    /// Closed when the thread has ended.
    end: Receiver<()>,
}

impl MetricsFile {
    /// Writes the file for the first time, with the numbers of a service without clients, and
    /// starts the thread.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or no thread can be started.
    pub(crate) fn create(path: PathBuf) -> Result<Self, Error> {
        let failed = |source| Error::MetricsFile { path: path.display().to_string(), source };
        let mut written = replace(&path, &text(&Metrics::default(), &Stats::default(), 0)).map_err(failed)?;
        // A disk that takes nothing holds up one text. Later ones are left out.
        let (texts, received) = mpsc::sync_channel(1);
        let (ends, end) = mpsc::channel();
        let body = move || {
            write_all(&path, &mut written, &received);
            if fs::symlink_metadata(&path).is_ok_and(|meta| FileId::of(&meta) == written) {
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

/// Device and inode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    fn of(meta: &fs::Metadata) -> Self {
        Self(meta.dev(), meta.ino())
    }
}

/// Writes the file for each text. `written` is the file that was written last.
fn write_all(path: &Path, written: &mut FileId, texts: &Receiver<String>) {
    let mut has_failed = false;
    for text in texts {
        let result = replace(path, &text).map(|id| *written = id);
        // One line for a disk that stays full.
        if let (Err(e), false) = (&result, has_failed) {
            log::warn!("cannot write the metrics file {}: {e}", path.display());
        }
        has_failed = result.is_err();
    }
}

/// Replaces the file as a whole, so that no reader sees half of it. Everybody may read it.
fn replace(path: &Path, text: &str) -> io::Result<FileId> {
    let mut new = path.as_os_str().to_owned();
    // The collector reads only files whose names end in .prom.
    new.push(".new");
    let new = PathBuf::from(new);
    let written = create_new(&new).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        // The umask may have taken bits.
        file.set_permissions(fs::Permissions::from_mode(MODE))?;
        let id = FileId::of(&file.metadata()?);
        fs::rename(&new, path)?;
        Ok(id)
    });
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

/// Creates a file in place of one that is there.
///
/// Another user may be able to write into the folder, while this service is root. So it writes only
/// into a file that it has created, and never follows a symbolic link or waits for the reader of a
/// FIFO.
fn create_new(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(MODE).open(path)
}

/// Formats all numbers. The names and units are in `docs/how-to/fleet-service.md`.
pub(crate) fn text(service: &Metrics, daemon: &Stats, consumers: usize) -> String {
    let recorded = service.recorded;
    let gauges: [(&str, &str, u64); 6] = [
        ("sessions_running", "Sessions that record.", service.sessions_running as u64),
        ("sessions_idle", "Sessions that wait, stop, or have ended and hold data.", service.sessions_idle as u64),
        ("producers", "Connected programs that can record events.", service.producers as u64),
        ("consumers", "Connected programs that control sessions.", consumers as u64),
        ("data_sources", "Data sources that the producers offer.", service.data_sources as u64),
        ("buffer_bytes", "Bytes of the buffers of all sessions, filled or not.", service.buffer_bytes),
    ];
    let counters = [
        ("sessions_started_total", "Sessions that were started.", service.sessions_started),
        ("sessions_refused_total", "Sessions that were refused.", service.sessions_refused),
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
