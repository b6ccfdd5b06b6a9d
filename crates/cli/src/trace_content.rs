//! Looks for events in the packets of a recording.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use esatto_protozero::{Field, Fields};
use esatto_schema::trace_packet::field;
use esatto_schema::tracing_service_event::DataSourcesReader;
use esatto_schema::tracing_service_event::field::{LAST_FLUSH_SLOW_DATA_SOURCES, TRACING_DISABLED, TRACING_STARTED};
use esatto_schema::{
    DATA_SOURCE_PROBLEM_FIELD, RELAY_DISCONNECTED_FIELD, SHARED_MACHINE_ID_FIELD, SHARED_MACHINE_NAMES_FIELD,
    SLOW_STOPPING_DATA_SOURCES_FIELD, START_TIMES_FIELD, TracePacketReader, TrackDescriptorReader, data_source_problem,
    start_times,
};
use esatto_trace::escape::Line;

use crate::machine_losses::MachineLosses;
use crate::unreadable_packets::{PacketMarks, STATE_CLEARED, UnreadablePackets};

/// Sequence of the packets that the service itself writes (`docs/spec/service.md` §16).
const SERVICE_SEQUENCE: u64 = 1;

/// Fields that say where and when the events of a packet happened, or that explain them. A packet
/// with only these has no event.
const EXPLANATIONS: [u32; 26] = [
    field::TIMESTAMP,
    field::TIMESTAMP_CLOCK_ID,
    field::TRUSTED_UID,
    field::TRUSTED_PID,
    field::TRUSTED_PACKET_SEQUENCE_ID,
    field::MACHINE_ID,
    field::SEQUENCE_FLAGS,
    field::INCREMENTAL_STATE_CLEARED,
    field::PREVIOUS_PACKET_DROPPED,
    field::FIRST_PACKET_ON_SEQUENCE,
    field::TRACE_PACKET_DEFAULTS,
    field::INTERNED_DATA,
    field::CLOCK_SNAPSHOT,
    field::SYNCHRONIZATION_MARKER,
    field::TRACK_DESCRIPTOR,
    field::PROCESS_DESCRIPTOR,
    field::FTRACE_STATS,
    field::THREAD_DESCRIPTOR,
    field::EXTENSION_DESCRIPTOR,
    field::CHROME_METADATA,
    field::CHROME_BENCHMARK_METADATA,
    field::TRACE_ATTRIBUTES,
    field::TRACK_EVENT_RANGE_OF_INTEREST,
    // The service also writes them about other machines, without its sequence.
    field::SYSTEM_INFO,
    field::REMOTE_CLOCK_SYNC,
    DATA_SOURCE_PROBLEM_FIELD,
];

/// Content of the packets of a recording.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// Some packet that can be read has an event of a program.
    pub(crate) has_events: bool,
    /// Some packet has a track event.
    pub(crate) has_track_events: bool,
    /// Look also for track events: the config also names other data sources.
    pub(crate) wants_track_events: bool,
    /// A packet held compressed packets.
    pub(crate) is_compressed: bool,
    pub(crate) starts: Starts,
    pub(crate) silent: Silent,
    /// Look also for data sources that did not answer.
    pub(crate) wants_silent: bool,
    pub(crate) relays: Relays,
    /// Look also for data of machines that was not recorded.
    pub(crate) wants_problems: bool,
    pub(crate) machine: MachineLosses,
    pub(crate) unreadable: UnreadablePackets,
    /// Count the packets that cannot be read, also of a file that the service wrote.
    pub(crate) wants_unreadable: bool,
    /// Names of these data sources, and the reasons.
    pub(crate) problems: BTreeSet<(String, String)>,
}

/// Programs that ran before the session recorded them, as in `esatto info`.
#[derive(Debug)]
pub(crate) struct Starts {
    /// BOOTTIME of the session's start.
    session_ns: Option<u64>,
    /// Nanoseconds that are missing, by the names and process ids of the programs.
    missing_ns: BTreeMap<(String, i32), u64>,
    /// Packets that are looked at for this only.
    left_packets: u32,
}

/// Bit of `previous_packet_dropped` (`docs/spec/trace-buffer.md`): shared memory was full.
const SMB_FULL: u64 = 256;
/// Packets that are looked at only for starts. Those of the first programs are among them.
const START_PACKETS: u32 = 100_000;
/// Programs with missing starts that are kept.
const MAX_STARTS: usize = 1000;

impl Default for Starts {
    fn default() -> Self {
        Self { session_ns: None, missing_ns: BTreeMap::new(), left_packets: START_PACKETS }
    }
}

impl Starts {
    /// Looks at the descriptor of a track.
    fn descriptor(&mut self, descriptor: &[u8]) {
        let times = Fields::new(descriptor).filter(|field| field.id == START_TIMES_FIELD).last();
        let Some((times, began)) = times.zip(self.session_ns) else { return };
        let (mut connected, mut ready, mut enabled) = (None, None, None);
        for field in Fields::new(times.as_bytes()) {
            match field.id {
                start_times::CONNECTED_NS => connected = Some(field.as_u64()),
                start_times::READY_NS => ready = Some(field.as_u64()),
                start_times::ENABLED_NS => enabled = Some(field.as_u64()),
                _ => {}
            }
        }
        let missing = ready.zip(enabled).map_or(0, |(ready, enabled)| enabled.saturating_sub(ready));
        // A program that was there before begins with the session.
        let is_new = connected.is_some_and(|connected| connected >= began);
        if is_new && missing > 0 && self.missing_ns.len() < MAX_STARTS {
            let process = TrackDescriptorReader::new(descriptor).process();
            let name = process.and_then(|process| process.process_name()).unwrap_or_default();
            let pid = process.and_then(|process| process.pid()).unwrap_or(0);
            let longest = self.missing_ns.entry((String::from_utf8_lossy(name).into_owned(), pid)).or_default();
            *longest = missing.max(*longest);
        }
    }

    /// Returns a line about the programs with missing starts, if there are any.
    pub(crate) fn in_words(&self) -> Option<String> {
        let ((name, _), &longest_ns) = self.missing_ns.iter().max_by_key(|(_, ns)| **ns)?;
        let others = match self.missing_ns.len() - 1 {
            0 => String::new(),
            1 => ", and less of 1 other program".to_owned(),
            others => format!(", and less of {others} other programs"),
        };
        Some(format!(
            "The first {:.1} ms of {} are missing{others}: programs run until the recording reaches them. To record \
             their start, set ESATTO_WAIT_MS=5000 for them, or call `Tracing::wait_until_enabled`.",
            longest_ns as f64 / 1e6,
            if name.is_empty() { "a program" } else { name }
        ))
    }
}
/// Problems that are kept.
const MAX_PROBLEMS: usize = 50;

/// Relays that disconnected while programs of their machines were recorded, and relays that have
/// one machine id.
#[derive(Debug, Default)]
pub(crate) struct Relays {
    /// Look for them: the config records other machines.
    pub(crate) are_wanted: bool,
    started_ns: Option<u64>,
    /// Names of machines by their ids.
    machines: BTreeMap<u64, String>,
    /// Machine and time of each end.
    ends: Vec<(u64, u64)>,
    /// Machine ids that two relays have, and the names of the relays.
    shared: BTreeMap<u64, Vec<String>>,
}

/// Machines, and ends of relays, that are kept.
const MAX_RELAYS: usize = 1000;

impl Relays {
    fn service_packet(&mut self, packet: &[u8]) {
        let reader = TracePacketReader::new(packet);
        let timestamp = reader.timestamp().unwrap_or(0);
        if let Some(name) = reader.system_info().and_then(|info| info.machine_name()) {
            if self.machines.len() < MAX_RELAYS {
                let id = reader.machine_id().unwrap_or(0);
                self.machines.insert(id.into(), String::from_utf8_lossy(name).into_owned());
            }
        }
        let Some(event) = reader.service_event() else { return };
        for found in Fields::new(event.as_bytes()) {
            match found.id {
                TRACING_STARTED => self.started_ns = Some(timestamp),
                RELAY_DISCONNECTED_FIELD if self.ends.len() < MAX_RELAYS => {
                    self.ends.push((found.as_u64(), timestamp));
                }
                SHARED_MACHINE_ID_FIELD if self.shared.len() < MAX_RELAYS => {
                    let names = Fields::new(event.as_bytes()).filter(|field| field.id == SHARED_MACHINE_NAMES_FIELD);
                    let names = names.take(2).map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned());
                    self.shared.insert(found.as_u64(), names.collect());
                }
                _ => {}
            }
        }
    }

    /// Returns the machine ids that two relays have, with the names of the relays.
    pub(crate) const fn shared_ids(&self) -> &BTreeMap<u64, Vec<String>> {
        &self.shared
    }

    /// Returns the machines whose relays disconnected, and when after the start, each once.
    pub(crate) fn ends(&self) -> BTreeMap<String, Option<Duration>> {
        let mut ends = BTreeMap::new();
        for (machine, at_ns) in &self.ends {
            let name = self.machines.get(machine).filter(|name| !name.is_empty());
            let name = name.cloned().unwrap_or_else(|| format!("0x{machine:08x}"));
            let after = self.started_ns.map(|started| Duration::from_nanos(at_ns.saturating_sub(started)));
            ends.entry(name).or_insert(after);
        }
        ends
    }
}

/// Data sources that did not answer the service in time, as `program (data source)`.
#[derive(Debug, Default)]
pub(crate) struct Silent {
    pub(crate) at_flush: BTreeSet<String>,
    pub(crate) at_stop: BTreeSet<String>,
}

impl Silent {
    /// Returns a line about those that did not deliver their last events, if there are any.
    pub(crate) fn flush_in_words(&self) -> Option<String> {
        let who = names(&self.at_flush)?;
        Some(format!("{who} did not deliver the last events in time. The end of the trace is incomplete."))
    }

    /// Returns a line about those that did not stop, if there are any.
    pub(crate) fn stop_in_words(&self) -> Option<String> {
        Some(format!("{} did not stop in time. It delays the end of every recording.", names(&self.at_stop)?))
    }
}

fn names(silent: &BTreeSet<String>) -> Option<String> {
    let names = silent.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    Some(Line(names).to_string()).filter(|names| !names.is_empty())
}

impl Content {
    /// Reads a trace until everything that is looked for is found.
    pub(crate) fn read(&mut self, trace: impl Read) {
        // A torn packet at the end has no event that readers could show.
        for packet in esatto_trace::PacketReader::new(trace).map_while(Result::ok) {
            if self.is_known() && !self.wants_unreadable {
                return;
            }
            self.is_compressed |= packet.place.inside.is_some();
            self.plain_packet(&packet.bytes);
        }
    }

    /// Returns whether further packets tell only how many of them cannot be read.
    fn is_known(&self) -> bool {
        let has_track_events = self.has_track_events || !self.wants_track_events;
        self.has_events
            && has_track_events
            && self.starts.left_packets == 0
            && !self.wants_silent
            && !self.relays.are_wanted
            && !self.wants_problems
    }

    /// Looks at a packet, which may hold compressed packets.
    pub(crate) fn packet(&mut self, packet: &[u8]) {
        match as_trace(packet) {
            Some(trace) => {
                self.is_compressed = true;
                let wants_unreadable = core::mem::replace(&mut self.wants_unreadable, true);
                self.read(&trace[..]);
                self.wants_unreadable = wants_unreadable;
            }
            None => self.plain_packet(packet),
        }
    }

    fn plain_packet(&mut self, packet: &[u8]) {
        if self.is_known() {
            let mut marks = PacketMarks::default();
            Fields::new(packet).for_each(|found| note_mark(&mut marks, &found));
            self.unreadable.add(marks);
            return;
        }
        self.starts.left_packets = self.starts.left_packets.saturating_sub(1);
        let mut is_of_service = false;
        let mut has_event = false;
        let mut is_about_relays = false;
        let mut marks = PacketMarks::default();
        for found in Fields::new(packet) {
            note_mark(&mut marks, &found);
            is_about_relays |= matches!(found.id, field::SERVICE_EVENT | field::SYSTEM_INFO);
            match found.id {
                field::TRACK_DESCRIPTOR => self.starts.descriptor(found.as_bytes()),
                field::TRACK_EVENT => (has_event, self.has_track_events) = (true, true),
                field::TRUSTED_PACKET_SEQUENCE_ID => is_of_service = found.as_u64() == SERVICE_SEQUENCE,
                DATA_SOURCE_PROBLEM_FIELD => self.problem(found.as_bytes()),
                field::SERVICE_EVENT if self.wants_silent => self.service_event(found.as_bytes()),
                id => has_event |= !EXPLANATIONS.contains(&id),
            }
        }
        let is_event = has_event && !is_of_service;
        if self.unreadable.add(marks) {
            self.has_events |= is_event;
        } else {
            self.unreadable.have_events |= is_event;
        }
        if is_of_service && self.starts.session_ns.is_none() && notes(TRACING_STARTED, packet) {
            self.starts.session_ns = TracePacketReader::new(packet).timestamp();
        }
        if is_about_relays && self.relays.are_wanted {
            self.relays.service_packet(packet);
        }
        if self.wants_problems {
            self.machine.ftrace.add_packet(packet);
            if is_of_service && is_about_relays {
                self.machine.service_packet(packet);
            }
        }
    }

    fn problem(&mut self, problem: &[u8]) {
        if self.problems.len() < MAX_PROBLEMS {
            let part = |id| Fields::new(problem).find(|field| field.id == id).map(|field| field.as_bytes());
            let text = |id| String::from_utf8_lossy(part(id).unwrap_or_default()).into_owned();
            let problem = (text(data_source_problem::DATA_SOURCE_NAME), text(data_source_problem::REASON));
            self.problems.insert(problem);
        }
    }

    fn service_event(&mut self, event: &[u8]) {
        for found in Fields::new(event) {
            let silent = match found.id {
                LAST_FLUSH_SLOW_DATA_SOURCES => &mut self.silent.at_flush,
                SLOW_STOPPING_DATA_SOURCES_FIELD => &mut self.silent.at_stop,
                _ => continue,
            };
            let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
            for source in DataSourcesReader::new(found.as_bytes()).data_source() {
                silent.insert(format!("{} ({})", text(source.producer_name()), text(source.data_source_name())));
            }
        }
    }
}

/// Notes a field of a packet if it tells whether the packet can be read.
fn note_mark(marks: &mut PacketMarks, found: &Field<'_>) {
    match found.id {
        field::TRUSTED_PACKET_SEQUENCE_ID => marks.sequence = found.as_u32(),
        field::MACHINE_ID => marks.machine = found.as_u32(),
        field::SEQUENCE_FLAGS => marks.flags |= found.as_u32(),
        field::INCREMENTAL_STATE_CLEARED if found.as_u64() != 0 => marks.flags |= STATE_CLEARED,
        field::PREVIOUS_PACKET_DROPPED => {
            // The service may add a mark of its own to that of the program.
            marks.is_after_loss |= found.as_u64() != 0;
            marks.is_after_full_memory |= found.as_u64() & SMB_FULL != 0;
        }
        _ => {}
    }
}

/// Returns a trace of this packet if it holds compressed packets.
fn as_trace(packet: &[u8]) -> Option<Vec<u8>> {
    let is_compressed = |id: u32| id == field::COMPRESSED_PACKETS || id == field::ZSTD_COMPRESSED_PACKETS;
    Fields::new(packet).any(|field| is_compressed(field.id)).then(|| {
        let mut trace = Vec::with_capacity(packet.len() + 8);
        crate::trace_output::push_packet(&mut trace, packet);
        trace
    })
}

/// A trigger that a program has told.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Trigger {
    pub(crate) boot_time_ns: u64,
    pub(crate) name: Vec<u8>,
}

/// Triggers in the packets of the service at the beginning of a clone (`docs/spec/service.md` §16).
#[derive(Debug, Default)]
pub(crate) struct ReceivedTriggers {
    pub(crate) came: Vec<Trigger>,
    /// The first packet of a program has come, and no trigger comes after it.
    pub(crate) is_complete: bool,
}

impl ReceivedTriggers {
    /// Looks at a packet, which may hold compressed packets.
    pub(crate) fn packet(&mut self, packet: &[u8]) {
        if self.is_complete {
            return;
        }
        match as_trace(packet) {
            Some(trace) => {
                for packet in esatto_trace::PacketReader::new(&trace[..]).map_while(Result::ok) {
                    self.plain_packet(&packet.bytes);
                }
            }
            None => self.plain_packet(packet),
        }
    }

    fn plain_packet(&mut self, packet: &[u8]) {
        let reader = TracePacketReader::new(packet);
        self.is_complete |= u64::from(reader.trusted_packet_sequence_id().unwrap_or(0)) != SERVICE_SEQUENCE;
        if let Some(trigger) = reader.trigger().filter(|_| !self.is_complete) {
            let name = trigger.trigger_name().unwrap_or_default().to_vec();
            self.came.push(Trigger { boot_time_ns: reader.timestamp().unwrap_or(0), name });
        }
    }
}

/// End of a file that a service wrote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// No packet is torn.
    pub(crate) is_whole: bool,
    /// There is no packet.
    pub(crate) is_empty: bool,
    /// The service has noted that the session started.
    pub(crate) is_start_noted: bool,
    /// The service has noted that the session ended. It does so after all data of programs.
    pub(crate) is_noted: bool,
}

impl End {
    /// Returns whether the service stopped writing before the end of the session. Not every service
    /// notes both.
    pub(crate) fn is_cut(self) -> bool {
        !self.is_noted && (self.is_start_noted || self.is_empty)
    }

    pub(crate) fn of(trace: impl Read) -> Self {
        let mut end = Self { is_whole: true, is_empty: true, is_start_noted: false, is_noted: false };
        for packet in esatto_trace::PacketReader::new(trace) {
            match packet {
                Ok(packet) => {
                    end.is_empty = false;
                    end.is_start_noted |= notes(TRACING_STARTED, &packet.bytes);
                    end.is_noted |= notes(TRACING_DISABLED, &packet.bytes);
                }
                Err(_) => end.is_whole = false,
            }
        }
        end
    }
}

/// Returns whether a packet is an event of the service.
fn notes(wanted: u32, packet: &[u8]) -> bool {
    let of_service =
        |found: &Field<'_>| found.id == field::TRUSTED_PACKET_SEQUENCE_ID && found.as_u64() == SERVICE_SEQUENCE;
    let is_event = |found: &Field<'_>| {
        found.id == field::SERVICE_EVENT && Fields::new(found.as_bytes()).any(|event| event.id == wanted)
    };
    Fields::new(packet).any(|found| is_event(&found)) && Fields::new(packet).any(|found| of_service(&found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_protozero::HeapBuffer;
    use esatto_schema::{TracePacketWriter, track_event};

    fn packet(sequence: u32, write: impl FnOnce(&mut TracePacketWriter<'_>)) -> Vec<u8> {
        let mut buffer = HeapBuffer::new();
        let mut packet = TracePacketWriter::from(buffer.message());
        packet.timestamp(7).trusted_packet_sequence_id(sequence);
        write(&mut packet);
        drop(packet);
        buffer.to_vec()
    }

    #[test]
    fn descriptions_and_packets_of_the_service_are_no_events() {
        let mut content = Content::default();
        content.packet(&packet(2, |packet| _ = packet.track_descriptor().uuid(1)));
        content.packet(&packet(2, |packet| _ = packet.sequence_flags(1)));
        content.packet(&packet(2, |packet| _ = packet.ftrace_stats().kernel_symbols_parsed(1)));
        content.packet(&packet(1, |packet| _ = packet.service_event().tracing_started(true)));
        content.packet(&packet(0, |packet| _ = packet.machine_id(7).system_info().machine_name("guest1")));
        content.packet(&packet(0, |packet| _ = packet.machine_id(7).remote_clock_sync()));
        assert!(!content.has_events);
        content.packet(&packet(2, |packet| _ = packet.track_event().r#type(track_event::Type::TYPE_INSTANT)));
        assert!(content.has_events);
    }
}
