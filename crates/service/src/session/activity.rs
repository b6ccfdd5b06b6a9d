//! Amounts that sessions recorded and lost, in words for the log and as numbers for metrics.

use core::fmt::Write as _;
use core::time::Duration;

use super::Session;
use crate::api::Now;
use crate::buffer::Stats;
use crate::buffer::table::Buffers;
use crate::client_text::quoted;

/// Buffers whose sizes the log names one by one.
const NAMED_SIZES: usize = 4;

/// Amounts that sessions recorded and lost. Each one only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Bytes that producers wrote into the buffers.
    pub bytes: u64,
    /// Bytes that a ring overwrote before they were read.
    pub overwritten_bytes: u64,
    /// Chunks that a full buffer discarded.
    pub discarded_chunks: u64,
    /// Gaps because the shared memory of a producer was full.
    pub shared_memory_losses: u64,
    /// Chunks and patches that break the rules of the shared memory.
    pub violations: u64,
}

impl Recorded {
    pub(crate) fn add(&mut self, buffer: &Stats) {
        self.bytes += buffer.bytes_written;
        self.overwritten_bytes += buffer.bytes_overwritten;
        self.discarded_chunks += buffer.chunks_discarded;
        self.shared_memory_losses += buffer.trace_writer_packet_loss;
        self.violations += buffer.abi_violations + buffer.patches_failed;
    }
}

/// Events of all sessions since the start of the service.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    pub(crate) sessions_started: u64,
    pub(crate) sessions_refused: u64,
    pub(crate) flushes_failed: u64,
    pub(crate) stops_failed: u64,
    /// Of sessions that are freed, without clones.
    pub(crate) recorded: Recorded,
}

impl Session {
    /// Returns what the session recorded and lost so far.
    pub(crate) fn recorded(&self, buffers: &Buffers) -> Recorded {
        let mut recorded = Recorded::default();
        for buffer in self.buffers.iter().filter_map(|&buffer| buffers.get(buffer)) {
            recorded.add(buffer.stats());
        }
        recorded
    }

    /// Describes a session that starts for the log.
    pub(crate) fn start_in_words(&self) -> String {
        let sizes = self.config.buffers.iter().map(|buffer| u64::from(buffer.size_kb.unwrap_or(0)));
        let sizes = match self.config.buffers.len() {
            0 => "no buffer".to_owned(),
            1..=NAMED_SIZES => {
                let sizes: Vec<String> = sizes.map(|size_kb| size_kb.to_string()).collect();
                format!("buffers of {} KiB", sizes.join(" + "))
            }
            count => format!("{count} buffers of {} KiB together", sizes.sum::<u64>()),
        };
        let lasts = match self.config.duration_ms.unwrap_or(0) {
            0 => "until it is stopped".to_owned(),
            ms => format!("for {:?}", Duration::from_millis(ms.into())),
        };
        let file = match (self.file.is_used(), self.config.output_path.as_deref().unwrap_or_default()) {
            (false, _) => String::new(),
            (true, []) => ", into a file of its consumer".to_owned(),
            (true, path) => format!(", into {}", quoted(path)),
        };
        let instances = self.instances.len();
        let (label, uid) = (self.label(), self.consumer_uid);
        format!("{label} of uid {uid} started {lasts}: {sizes}, {instances} data source instances{file}")
    }

    /// Describes a session that has ended for the log: what it recorded, and what was lost.
    pub(crate) fn end_in_words(&self, buffers: &Buffers, now: &Now) -> String {
        let mut words = format!("{} of uid {} ended", self.label(), self.consumer_uid);
        let Some(started_ns) = self.started_boottime_ns else { return words + " without a start" };
        let lasted = Duration::from_millis(now.boottime_ns.saturating_sub(started_ns) / 1_000_000);
        let recorded = self.recorded(buffers);
        // Writing to a string cannot fail.
        let _ = write!(words, " after {lasted:?}: {} bytes recorded, ", recorded.bytes);
        let losses = [
            (recorded.overwritten_bytes, "bytes overwritten unread"),
            (recorded.discarded_chunks, "chunks discarded by full buffers"),
            (recorded.shared_memory_losses, "gaps by full shared memory"),
            (recorded.violations, "malformed chunks"),
            (self.flushes.failed, "flushes not acknowledged"),
        ];
        let losses: Vec<String> =
            losses.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        words += if losses.is_empty() { "nothing lost" } else { "lost: " };
        words += &losses.join(", ");
        if let Some(error) = &self.end_error {
            let _ = write!(words, "; {error}");
        }
        words
    }
}

/// Describes a refused config for the log.
pub(crate) fn refusal_in_words(name: &[u8], uid: i32, error: &str) -> String {
    let name = if name.is_empty() { String::new() } else { format!(" {}", quoted(name)) };
    format!("session{name} of uid {uid} refused: {error}")
}
