//! Counts of lost data: what is a loss, and what is normal.

use std::collections::BTreeMap;

use esatto_schema::TraceConfigReader;
use esatto_schema::trace_config::BufferConfigReader;
use esatto_schema::trace_config::buffer_config::FillPolicy;

use super::machine_column::MachineColumn;
use super::{SequenceSummary, Summary, TRACING_STARTED};
use crate::error::Error;
use crate::loss_causes::{OVERWRITE, SMB_FULL};
use crate::service_report::{
    BufferStats, ENDED_DATA_SOURCES, GAPS_BETWEEN_PACKETS, PATCHES_OF_OVERWRITTEN, RELAY_DISCONNECTED, SLOW_STOPPING,
    TraceStats, UNREACHED,
};

/// Counts of a buffer that are losses, by their names in the schema.
const BUFFER_COUNTS: [&str; 6] =
    [OVERWRITTEN, DISCARDED, PACKET_LOSS, GAPS_BETWEEN_PACKETS, PATCHES_FAILED, "abi_violations"];

/// Gaps that begin within a packet, because the program found the shared memory full.
const PACKET_LOSS: &str = "trace_writer_packet_loss";
/// Chunks that were overwritten before they were read.
const OVERWRITTEN: &str = "chunks_overwritten";
/// Patches whose chunks were not there.
const PATCHES_FAILED: &str = "patches_failed";
/// Chunks that a buffer did not take. A ring buffer refuses only those that have been read already,
/// for example from the memory of a program that was about to commit them.
const DISCARDED: &str = "chunks_discarded";

/// Flushes that were not answered by all programs.
pub(super) const FLUSHES_FAILED: &str = "flushes_failed";
/// The last flush was not answered by all programs.
pub(super) const FINAL_FLUSH_FAILED: &str = "final_flush_failed";
/// Events that the kernel overwrote or dropped, because its buffer was full.
pub(super) const LOST_EVENTS: &str = "lost_events";
/// A program did not stop in time. Its last events may be missing.
pub(super) const STOP_FAILED: &str = "stop_failed";

/// The end of the recording is not in the file.
pub(super) const END_MISSING: &str = "end_missing";

/// Bytes below `max_file_size_bytes` that a file may have left when it is full.
const ROOM_OF_FULL_FILE: u64 = 1 << 20;

/// A ring overwrites the state that its oldest packets need. Up to this part of all packets cannot
/// be read for that reason, which is normal.
const NORMAL_PART_OF_RING: u64 = 5;

/// Time between two writes into a file, if the config has none.
const DEFAULT_WRITE_PERIOD_MS: u32 = 5000;
/// The shortest time between two writes into a file that the service accepts.
const MIN_WRITE_PERIOD_MS: u32 = 100;
/// A time between two writes into a file that suits most recordings.
const ADVISED_WRITE_PERIOD_MS: u32 = 1000;

/// Reason why the end of a recording is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndMissing {
    /// The file has reached this size, the limit of its config.
    Full { limit: u64 },
    /// The recording still runs.
    BeingWritten,
    /// It was ended by force, or the disk was full, or it still runs.
    Unknown,
}

/// Data that is missing in the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The place of the loss: `buffer 0`, `sequence 3`, `machine guest1`, `program app`, `service`,
    /// `kernel`.
    pub place: String,
    /// Name of the count in the schema.
    pub what: String,
    /// The count.
    pub number: u64,
    /// True if this is normal: a ring buffer that is read at the end overwrites.
    pub expected: bool,
    /// The trace, by its position in [`Summary::parts`].
    pub part: Option<usize>,
}

/// When the buffers of a session were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Once, at the end. A ring buffer then has the newest data, as intended.
    AtEnd,
    /// Also while the session recorded, so that the trace has all data. If a buffer was
    /// overwritten, it was too small.
    Continuous,
}

impl Loss {
    /// Returns whether a program dropped packets, because it found its shared memory full.
    pub fn is_of_shared_memory(&self) -> bool {
        [PACKET_LOSS, GAPS_BETWEEN_PACKETS, SMB_FULL].contains(&&*self.what)
    }

    /// Returns what would prevent the loss, with lines of the config between backquotes.
    ///
    /// `buffer_kb` is the size of the buffer that it happened in, if that is known.
    pub fn remedy(&self, buffer_kb: Option<u64>) -> String {
        self.remedy_with(buffer_kb.map(|kb| kb.saturating_mul(2)), None)
    }

    /// Like [`remedy`](Self::remedy), with the size of a buffer that suits. `write_period_ms` is
    /// the time between two writes into the file, if the service wrote one.
    fn remedy_with(&self, larger_kb: Option<u64>, write_period_ms: Option<u32>) -> String {
        let larger = || match larger_kb.filter(|kb| *kb > 0) {
            Some(kb) => format!("`buffers {{ size_kb: {kb} }}`"),
            None => "a larger `buffers { size_kb: … }`".to_owned(),
        };
        if self.expected {
            return format!("Normal for a ring buffer. {} keeps more.", capitalized(&larger()));
        }
        if self.is_of_shared_memory() {
            return "A program wrote faster than the service took it. Give it more shared memory: \
                    `producers { producer_name: \"NAME\" shm_size_kb: 4096 }`"
                .to_owned();
        }
        match self.what.as_str() {
            DISCARDED => {
                format!(
                    "The buffer has the fill policy DISCARD: it keeps nothing after its size was written once. Use {}, \
                     or `fill_policy: RING_BUFFER`.",
                    larger()
                )
            }
            OVERWRITTEN | OVERWRITE => {
                let more_often = match write_period_ms {
                    None => ", or let the service write it into a file more often: `write_into_file: true \
                             file_write_period_ms: 1000`"
                        .to_owned(),
                    // The service takes no shorter one.
                    Some(..=MIN_WRITE_PERIOD_MS) => String::new(),
                    Some(period) => {
                        let half = (period / 2).clamp(MIN_WRITE_PERIOD_MS, ADVISED_WRITE_PERIOD_MS);
                        format!(", or let the service write the file more often: `file_write_period_ms: {half}`")
                    }
                };
                format!("The buffer was too small: use {}{more_often}", larger())
            }
            PATCHES_FAILED | "patches_discarded" => {
                format!("A program completed packets that were overwritten already. Use {}.", larger())
            }
            "invalid_packets" | "abi_violations" => "A program sent malformed data, which was left out.".to_owned(),
            LOST_EVENTS => "The kernel's buffer was full: raise `buffer_size_kb`, or shorten `drain_period_ms`, in \
                            `ftrace_config`."
                .to_owned(),
            FLUSHES_FAILED | FINAL_FLUSH_FAILED => {
                "A program did not answer in time. Its last events may be missing.".to_owned()
            }
            STOP_FAILED => {
                "A program did not stop in time: `data_source_stop_timeout_ms: 10000` waits longer.".to_owned()
            }
            UNREACHED => {
                "The program ended before the recording reached it: let it wait until it is recorded.".to_owned()
            }
            RELAY_DISCONNECTED => "The last events of the programs on this machine may be missing.".to_owned(),
            _ => String::new(),
        }
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

impl Reading {
    /// Returns whether it is normal that a buffer is overwritten.
    fn expects_overwriting(self) -> bool {
        self == Self::AtEnd
    }
}

/// Returns the size of a buffer, in KiB, that would have kept the chunks that this one discarded.
/// They count as large as those that it kept. A quarter is added, because programs never write
/// exactly as much again.
fn kb_without_discards(buffer: &BufferStats) -> Option<u64> {
    let count = |what: &str| buffer.get(what).copied().unwrap_or(0);
    let (bytes, chunks) = (count("bytes_written"), count("chunks_written"));
    let discarded = bytes.checked_div(chunks)?.saturating_mul(count(DISCARDED));
    let all_kb = bytes.saturating_add(discarded).div_ceil(1024);
    all_kb.saturating_add(all_kb / 4).checked_next_power_of_two()
}

impl TraceStats {
    /// Returns the chunks, patches and packets that were lost after the programs had written them.
    ///
    /// The service counts discarded patches since it started, for all sessions. Of this count, this
    /// returns the growth since `earlier`, which are statistics of the same session. `config` is
    /// the encoded `TraceConfig`.
    ///
    /// Chunks that the service discarded were for no buffer of this session. They are no loss: at
    /// the start of a session, programs on Perfetto's SDK return the chunks of the one before.
    pub fn losses_since(&self, earlier: &Self, config: &[u8], reading: Reading) -> Vec<Loss> {
        let mut losses = Vec::new();
        let discards = |buffer: BufferConfigReader<'_>| buffer.fill_policy() == Some(FillPolicy::DISCARD);
        let discarding: Vec<bool> = TraceConfigReader::new(config).buffers().map(discards).collect();
        for (index, buffer) in self.buffers.iter().enumerate() {
            let counts = BUFFER_COUNTS.map(|what| (what, buffer.get(what).copied().unwrap_or(0)));
            for (what, number) in counts.into_iter().filter(|(_, number)| *number > 0) {
                if what == DISCARDED && !discarding.get(index).is_some_and(|discards| *discards) {
                    continue;
                }
                let mut expected = what == OVERWRITTEN && reading.expects_overwriting();
                let mut number = number;
                if what == PATCHES_FAILED {
                    match buffer.get(PATCHES_OF_OVERWRITTEN) {
                        // The chunks are counted, and the patches are no loss beside them.
                        Some(overwritten) => number = number.saturating_sub(*overwritten),
                        // Other services do not tell them apart.
                        None => {
                            let is_overwritten = buffer.get(OVERWRITTEN).is_some_and(|chunks| *chunks > 0);
                            expected = is_overwritten && reading.expects_overwriting();
                        }
                    }
                }
                if number == 0 {
                    continue;
                }
                let place = format!("buffer {index}");
                losses.push(Loss { place, what: what.to_owned(), number, expected, part: None });
            }
        }
        for (what, number) in [
            ("patches_discarded", self.patches_discarded.saturating_sub(earlier.patches_discarded)),
            ("invalid_packets", self.invalid_packets),
        ] {
            if number > 0 {
                let place = "service".to_owned();
                losses.push(Loss { place, what: what.to_owned(), number, expected: false, part: None });
            }
        }
        losses
    }
}

impl Summary {
    /// Returns all losses of this session that the trace reports.
    pub fn losses(&self) -> Vec<Loss> {
        if !self.parts.is_empty() {
            return self.losses_of_parts();
        }
        let reading = self.reading();
        let config = self.config.as_deref().unwrap_or_default();
        let mut losses = match (&self.stats, &self.first_stats) {
            (Some(last), Some(first)) => last.losses_since(first, config, reading),
            _ => Vec::new(),
        };
        if self.sequences.iter().any(|sequence| sequence.loss_causes.contains_key(SMB_FULL)) {
            // The same gaps, but it is known where.
            losses.retain(|loss| loss.what != GAPS_BETWEEN_PACKETS);
        }
        let mut add = |place: &str, what: &str, number: u64, expected| {
            if number > 0 {
                losses.push(Loss { place: place.to_owned(), what: what.to_owned(), number, expected, part: None });
            }
        };
        if let Some(stats) = &self.stats {
            add("service", FLUSHES_FAILED, stats.flushes_failed, false);
            add("service", FINAL_FLUSH_FAILED, u64::from(stats.final_flush_succeeded == Some(false)), false);
        }
        let late_stops = self.service_events.iter().filter(|event| event.name == SLOW_STOPPING).count();
        add("service", STOP_FAILED, late_stops as u64, false);
        let ends = self.service_events.iter().filter(|event| event.name == ENDED_DATA_SOURCES);
        add("service", ENDED_DATA_SOURCES, ends.map(|event| event.data_sources.len() as u64).sum(), false);
        let mut relay_ends: BTreeMap<u32, u64> = BTreeMap::new();
        for event in self.service_events.iter().filter(|event| event.name == RELAY_DISCONNECTED) {
            *relay_ends.entry(event.machine_id.unwrap_or_default()).or_default() += 1;
        }
        let mut unreached: BTreeMap<&str, u64> = BTreeMap::new();
        for event in self.service_events.iter().filter(|event| event.name == UNREACHED) {
            for source in &event.data_sources {
                *unreached.entry(&source.producer).or_default() += 1;
            }
        }
        for (program, number) in unreached {
            add(&format!("program {program}"), UNREACHED, number, false);
        }
        let machines = MachineColumn::new(self);
        for (machine, number) in relay_ends {
            add(&format!("machine {}", machines.label(machine)), RELAY_DISCONNECTED, number, false);
        }
        for sequence in &self.sequences {
            for (cause, &number) in &sequence.loss_causes {
                let place = format!("sequence {}", sequence.id);
                add(&place, cause, number, *cause == OVERWRITE && reading.expects_overwriting());
            }
        }
        add("kernel", LOST_EVENTS, self.ftrace_report.lost_events(), false);
        let is_normal = matches!(self.end_missing(), Some(EndMissing::Full { .. } | EndMissing::BeingWritten));
        add("trace", END_MISSING, u64::from(self.lacks_end()), is_normal);
        losses
    }

    /// Returns what would prevent a loss of this trace; see [`Loss::remedy`].
    pub fn remedy(&self, loss: &Loss) -> String {
        if let Some(remedy) = self.remedy_of_part(loss) {
            return remedy;
        }
        if let Some(missing) = self.end_missing().filter(|_| loss.what == END_MISSING) {
            return match missing {
                EndMissing::Full { limit } => {
                    format!(
                        "Normal for a file that has reached its `max_file_size_bytes: {limit}`. A larger one keeps more."
                    )
                }
                EndMissing::BeingWritten => "The recording still runs, and its file is not complete yet.".to_owned(),
                EndMissing::Unknown => {
                    "The recording was ended by force, or the disk was full, or the recording still runs.".to_owned()
                }
            };
        }
        if loss.is_of_shared_memory() {
            let remedy = loss.remedy(None);
            return match self.crowded_program(loss) {
                Some(name) => remedy.replace("NAME", &name.escape_default().to_string()),
                None => remedy,
            };
        }
        let index: Option<usize> = loss.place.strip_prefix("buffer ").and_then(|index| index.parse().ok());
        let config = TraceConfigReader::new(self.config.as_deref().unwrap_or_default());
        let buffer = index.and_then(|index| config.buffers().nth(index));
        let period = config.file_write_period_ms().filter(|ms| *ms > 0).unwrap_or(DEFAULT_WRITE_PERIOD_MS);
        let period = Some(period).filter(|_| config.write_into_file() == Some(true));
        let double = buffer.and_then(|buffer| buffer.size_kb()).map(|kb| u64::from(kb).saturating_mul(2));
        let discarded = index.filter(|_| loss.what == DISCARDED);
        let counts = discarded.and_then(|index| self.stats.as_ref()?.buffers.get(index));
        let whole = counts.and_then(kb_without_discards);
        loss.remedy_with(double.map(|double| double.max(whole.unwrap_or(0))), period)
    }

    /// Returns the name of the program that found its shared memory full, as it told it to the
    /// service. `None` if the trace does not tell, or several programs may be meant.
    fn crowded_program(&self, loss: &Loss) -> Option<&str> {
        let sequence: Option<u32> = loss.place.strip_prefix("sequence ").and_then(|id| id.parse().ok());
        let is_meant = |of: &&SequenceSummary| match sequence {
            Some(id) => of.id == id,
            None => of.loss_causes.contains_key(SMB_FULL),
        };
        let mut pids = self.sequences.iter().filter(is_meant).map(|of| (of.machine_id, of.pid));
        let (machine, pid) = pids.next()?;
        if !pids.all(|other| other == (machine, pid)) {
            return None;
        }
        let pid = i64::from(pid?);
        let process = self.processes.iter().find(|process| (process.machine_id, process.pid) == (machine, pid))?;
        process.cmdline.first().or(process.name.as_ref()).map(String::as_str)
    }

    /// Returns `clear_period_ms` of the config: the time after which programs send names again. It
    /// is 0 if the config has none.
    pub fn clear_period_ms(&self) -> u32 {
        let config = TraceConfigReader::new(self.config.as_deref().unwrap_or_default());
        config.incremental_state_config().and_then(|clears| clears.clear_period_ms()).unwrap_or(0)
    }

    /// Returns whether the file begins in the middle of the recording, and no buffer was
    /// overwritten: a program has read the first packets before, or a file was cut into pieces.
    ///
    /// The service writes the config first, also if a ring has lost the first packets of programs.
    pub fn begins_in_another_file(&self) -> bool {
        let is_overwritten = |stats: &TraceStats| {
            stats.buffers.iter().any(|buffer| buffer.get(OVERWRITTEN).is_some_and(|chunks| *chunks > 0))
        };
        let has_begin = self.config.is_some() || self.service_events.iter().any(|event| event.name == TRACING_STARTED);
        !has_begin
            && self.sequences.iter().any(|sequence| sequence.skipped_packets > 0 && sequence.losses == 0)
            && !self.stats.as_ref().is_some_and(is_overwritten)
    }

    /// Returns how many of the [skipped packets](Self::skipped_packets) are normal: they are the
    /// oldest ones of a ring buffer, which has overwritten the state that they need. If they are
    /// more than a fifth of all, none of them are.
    pub fn skipped_of_ring(&self) -> u64 {
        let at_begin = self.sequences.iter().map(|sequence| sequence.skipped_at_begin).sum();
        let is_ring = || self.losses().iter().any(|loss| loss.expected && loss.what == OVERWRITTEN);
        if at_begin > 0 && at_begin <= self.packets / NORMAL_PART_OF_RING && is_ring() { at_begin } else { 0 }
    }

    /// Returns whether the end of the recording is missing, because the program or the service that
    /// wrote the file did not complete it: it was killed, the disk was full, the file has reached
    /// the size that its config allows, or the recording still runs.
    ///
    /// The service notes the start and the end of the recording, and the end of each reading of its
    /// buffers. A trace without these notes lacks its end only if it ends within a packet.
    pub fn lacks_end(&self) -> bool {
        // After other errors the rest of the file may be there, but this reader did not see it.
        let goes_on = |error: &Error| matches!(error, Error::Malformed { .. } | Error::TemporaryFile { .. });
        let is_read_through = self.errors.iter().all(goes_on);
        self.is_torn || is_read_through && self.progress.lacks_end(self.is_written_by_service())
    }

    /// Returns why the end of the recording is missing, if it is.
    pub(super) fn end_missing(&self) -> Option<EndMissing> {
        if !self.lacks_end() {
            return None;
        }
        if self.is_being_written {
            return Some(EndMissing::BeingWritten);
        }
        let config = TraceConfigReader::new(self.config.as_deref().unwrap_or_default());
        let limit = config.max_file_size_bytes().filter(|_| self.is_written_by_service() && !self.is_torn);
        // The service leaves out the packet that would reach the limit.
        let is_full = |limit: &u64| {
            let room = limit.saturating_sub(self.trace_bytes);
            room > 0 && room <= (limit / 4).min(ROOM_OF_FULL_FILE)
        };
        Some(limit.filter(is_full).map_or(EndMissing::Unknown, |limit| EndMissing::Full { limit }))
    }

    /// Returns whether the config asks the service to write the file.
    fn is_written_by_service(&self) -> bool {
        let config = TraceConfigReader::new(self.config.as_deref().unwrap_or_default());
        config.write_into_file() == Some(true)
    }

    /// Returns when the buffers were read. The service marks the end of each reading, and the
    /// config asks for a file or not.
    fn reading(&self) -> Reading {
        let is_continuous = self.progress.is_read_again() || self.is_written_by_service();
        if is_continuous { Reading::Continuous } else { Reading::AtEnd }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_protozero::{HeapBuffer, Owned as _};
    use esatto_schema::TraceConfig;
    use esatto_schema::trace_config::BufferConfig;

    #[test]
    fn an_overwritten_buffer_is_normal_only_if_it_is_read_at_the_end() {
        let counts = [("chunks_overwritten".to_owned(), 5), ("patches_failed".to_owned(), 1)];
        let stats = TraceStats { buffers: vec![counts.into()], invalid_packets: 2, ..TraceStats::default() };
        let shown = |reading| {
            let losses = stats.losses_since(&stats, &[], reading).into_iter();
            losses.map(|loss| (loss.place + " " + &loss.what, loss.number, loss.expected)).collect::<Vec<_>>()
        };
        let expected = |overwriting| {
            [
                ("buffer 0 chunks_overwritten".to_owned(), 5, overwriting),
                ("buffer 0 patches_failed".to_owned(), 1, overwriting),
                ("service invalid_packets".to_owned(), 2, false),
            ]
        };
        assert_eq!(shown(Reading::AtEnd), expected(true));
        assert_eq!(shown(Reading::Continuous), expected(false));
    }

    #[test]
    fn the_advice_respects_the_period_of_the_config() {
        let place = "buffer 0".to_owned();
        let loss = Loss { place, what: OVERWRITTEN.to_owned(), number: 5, expected: false, part: None };
        let remedy = |write_into_file, file_write_period_ms| {
            let config = TraceConfig { write_into_file, file_write_period_ms, ..TraceConfig::default() }.encode();
            let mut packet = HeapBuffer::new();
            packet.message().bytes(33, &config);
            let mut trace = HeapBuffer::new();
            trace.message().bytes(1, packet.as_slice());
            Summary::read(trace.as_slice()).remedy(&loss)
        };
        assert!(remedy(None, None).ends_with("`write_into_file: true file_write_period_ms: 1000`"));
        for (period, advised) in [(None, 1000), (Some(2500), 1000), (Some(500), 250), (Some(150), 100)] {
            let remedy = remedy(Some(true), period);
            assert!(remedy.ends_with(&format!(" more often: `file_write_period_ms: {advised}`")), "{remedy}");
        }
        for period in [1, 100] {
            let remedy = remedy(Some(true), Some(period));
            assert_eq!(remedy, "The buffer was too small: use a larger `buffers { size_kb: … }`");
        }
    }

    #[test]
    fn patches_of_overwritten_chunks_are_no_loss() {
        let counts = [("chunks_overwritten", 5), ("patches_failed", 7), ("patches_of_overwritten", 7)];
        let counts = counts.map(|(what, number)| (what.to_owned(), number));
        let mut stats = TraceStats { buffers: vec![counts.into()], ..TraceStats::default() };
        let lost = |stats: &TraceStats| {
            let losses = stats.losses_since(stats, &[], Reading::Continuous).into_iter();
            losses.map(|loss| (loss.what, loss.number)).collect::<Vec<_>>()
        };
        assert_eq!(lost(&stats), [("chunks_overwritten".to_owned(), 5)]);
        stats.buffers[0].insert("patches_failed".to_owned(), 9);
        assert_eq!(lost(&stats)[1], ("patches_failed".to_owned(), 2));
    }

    #[test]
    fn a_ring_buffer_discards_only_what_was_read() {
        let counts = || [("chunks_discarded".to_owned(), 3), ("gaps_between_packets".to_owned(), 2)].into();
        let stats = TraceStats { buffers: vec![counts(), counts()], ..TraceStats::default() };
        let buffer = |fill_policy| BufferConfig { fill_policy, ..BufferConfig::default() };
        let buffers = vec![buffer(None), buffer(Some(FillPolicy::DISCARD))];
        let config = TraceConfig { buffers, ..TraceConfig::default() }.encode();
        let losses = stats.losses_since(&stats, &config, Reading::Continuous);
        let shown: Vec<_> = losses.iter().map(|loss| (loss.place.as_str(), loss.what.as_str(), loss.number)).collect();
        let gaps = |buffer| (buffer, "gaps_between_packets", 2);
        assert_eq!(shown, [gaps("buffer 0"), ("buffer 1", "chunks_discarded", 3), gaps("buffer 1")]);
    }

    #[test]
    fn only_the_growth_of_discarded_patches_is_a_loss() {
        let stats = |chunks_discarded, patches_discarded| TraceStats {
            chunks_discarded,
            patches_discarded,
            ..TraceStats::default()
        };
        let losses = stats(9, 5).losses_since(&stats(7, 3), &[], Reading::Continuous);
        let shown: Vec<_> = losses.iter().map(|loss| (loss.what.as_str(), loss.number)).collect();
        assert_eq!(shown, [("patches_discarded", 2)]);
    }
}
