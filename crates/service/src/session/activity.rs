//! Amounts that sessions recorded and lost, in words for the log and as numbers for metrics.

use core::fmt::Write as _;
use core::time::Duration;

use super::Session;
use super::trace_file::FileEnd;
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
    /// Bytes that rings overwrote before they were read. This is normal if a session is read only
    /// at its end.
    pub overwritten_bytes: u64,
    /// The part of them that is lost, because the session was read while it recorded: its reader
    /// wants all data, and the ring was too small.
    pub overwritten_lost_bytes: u64,
    /// Chunks that a full buffer did not take.
    pub discarded_chunks: u64,
    /// Gaps where producers dropped packets, usually because their shared memory was full.
    pub shared_memory_losses: u64,
    /// Chunks and packets that break the rules of the shared memory.
    pub violations: u64,
    /// Patches for chunks that were not there any more, or never. Those of chunks that a ring has
    /// overwritten are not counted.
    pub late_patches: u64,
    /// Packets that are malformed, or have fields that only the service may write. They are found
    /// when they are read.
    pub invalid_packets: u64,
    /// Contents of buffers that a failed clone had taken and that could not go back.
    pub clone_losses: u64,
}

impl Recorded {
    pub(crate) fn add(&mut self, buffer: &Stats) {
        self.bytes += buffer.bytes_written;
        self.overwritten_bytes += buffer.bytes_overwritten;
        self.discarded_chunks += buffer.chunks_without_room;
        self.shared_memory_losses += buffer.trace_writer_packet_loss + buffer.gaps_between_packets;
        self.violations += buffer.abi_violations;
        self.late_patches += buffer.patches_failed - buffer.patches_of_overwritten;
    }

    /// Returns the sums of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            overwritten_bytes: self.overwritten_bytes + other.overwritten_bytes,
            overwritten_lost_bytes: self.overwritten_lost_bytes + other.overwritten_lost_bytes,
            discarded_chunks: self.discarded_chunks + other.discarded_chunks,
            shared_memory_losses: self.shared_memory_losses + other.shared_memory_losses,
            violations: self.violations + other.violations,
            late_patches: self.late_patches + other.late_patches,
            invalid_packets: self.invalid_packets + other.invalid_packets,
            clone_losses: self.clone_losses + other.clone_losses,
        }
    }

    /// Takes back the counts of a buffer that were added.
    pub(crate) fn remove(&mut self, buffer: &Stats) {
        let mut removed = Self::default();
        removed.add(buffer);
        self.bytes -= removed.bytes;
        self.overwritten_bytes -= removed.overwritten_bytes;
        self.discarded_chunks -= removed.discarded_chunks;
        self.shared_memory_losses -= removed.shared_memory_losses;
        self.violations -= removed.violations;
        self.late_patches -= removed.late_patches;
    }
}

/// Events of all sessions since the start of the service.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    pub(crate) sessions_started: u64,
    pub(crate) sessions_refused: u64,
    pub(crate) flushes_failed: u64,
    pub(crate) stops_failed: u64,
    pub(crate) files_failed: u64,
    /// Of sessions that are freed, without clones.
    pub(crate) recorded: Recorded,
}

impl Session {
    /// Returns what the session recorded and lost so far.
    pub(crate) fn recorded(&self, buffers: &Buffers) -> Recorded {
        let mut recorded = self.moved;
        for buffer in self.buffers.iter().filter_map(|&buffer| buffers.get(buffer)) {
            recorded.add(buffer.stats());
        }
        if self.file.is_used() || self.reading.is_done_while_recording {
            recorded.overwritten_lost_bytes = recorded.overwritten_bytes;
        }
        recorded.invalid_packets = self.reading.invalid_packets;
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

    /// Describes a session that has ended for the log: what it recorded, what was lost, and what
    /// became of its file. Programs and the kernel may have lost data that the service does not
    /// know of.
    pub(crate) fn end_in_words(&self, buffers: &Buffers) -> String {
        let mut words = format!("{} of uid {} ended", self.label(), self.consumer_uid);
        let Some(started_ns) = self.started_boottime_ns else { return words + " without a start" };
        let lasted = Duration::from_millis(self.state_since_ns.saturating_sub(started_ns) / 1_000_000);
        let recorded = self.recorded(buffers);
        // Writing to a string cannot fail.
        let _ = write!(words, " after {lasted:?}: {} bytes recorded, ", recorded.bytes);
        if self.lacks_trigger() {
            return words + "discarded because no trigger came";
        }
        let overwritten = recorded.overwritten_bytes - recorded.overwritten_lost_bytes;
        if overwritten > 0 {
            let _ = write!(words, "{overwritten} bytes overwritten as a ring buffer does, ");
        }
        let losses = [
            (recorded.overwritten_lost_bytes, "bytes overwritten unread"),
            (recorded.discarded_chunks, "chunks discarded by full buffers"),
            (recorded.shared_memory_losses, "gaps where producers dropped packets"),
            (recorded.violations, "malformed chunks"),
            (recorded.late_patches, "late patches"),
            (recorded.invalid_packets, "invalid packets"),
            (recorded.clone_losses, "contents of buffers lost with failed clones"),
            (self.flushes.failed, "flushes not acknowledged"),
            (self.members.relay_ends, "connections to other machines"),
            (self.members.ended_sources, "data sources that ended early"),
        ];
        let mut losses: Vec<String> =
            losses.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        match self.file.end() {
            Some(FileEnd::Failed) => losses.push("the end of the trace file".to_owned()),
            Some(FileEnd::Full) => losses.push("the end of the trace, beyond max_file_size_bytes".to_owned()),
            Some(FileEnd::Complete) | None => {}
        }
        words += if losses.is_empty() { "the service lost nothing" } else { "lost: " };
        words += &losses.join(", ");
        match self.members.unreached {
            0 => {}
            1 => words += "; 1 producer ended before the session reached it",
            count => {
                let _ = write!(words, "; {count} producers ended before the session reached them");
            }
        }
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
