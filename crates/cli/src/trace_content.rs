//! Looks for events in the packets of a recording.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use esatto_protozero::{Field, Fields};
use esatto_schema::trace_packet::field;
use esatto_schema::tracing_service_event::DataSourcesReader;
use esatto_schema::tracing_service_event::field::{LAST_FLUSH_SLOW_DATA_SOURCES, TRACING_DISABLED, TRACING_STARTED};
use esatto_schema::{
    RELAY_DISCONNECTED_FIELD, SHARED_MACHINE_ID_FIELD, SHARED_MACHINE_NAMES_FIELD, SLOW_STOPPING_DATA_SOURCES_FIELD,
    TracePacketReader,
};

/// Sequence of the packets that the service itself writes (`docs/spec/service.md` §16).
const SERVICE_SEQUENCE: u64 = 1;

/// Fields that say where and when the events of a packet happened, or that explain them. A packet
/// with only these has no event.
const EXPLANATIONS: [u32; 24] = [
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
    field::THREAD_DESCRIPTOR,
    field::EXTENSION_DESCRIPTOR,
    field::CHROME_METADATA,
    field::CHROME_BENCHMARK_METADATA,
    field::TRACE_ATTRIBUTES,
    field::TRACK_EVENT_RANGE_OF_INTEREST,
    // The service also writes them about other machines, without its sequence.
    field::SYSTEM_INFO,
    field::REMOTE_CLOCK_SYNC,
];

/// Content of the packets of a recording.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// Some packet has an event of a program.
    pub(crate) has_events: bool,
    pub(crate) silent: Silent,
    /// Look also for data sources that did not answer.
    pub(crate) wants_silent: bool,
    pub(crate) relays: Relays,
}

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

impl Content {
    /// Reads a trace until everything that is looked for is found.
    pub(crate) fn read(&mut self, trace: impl Read) {
        // A torn packet at the end has no event that readers could show.
        for packet in esatto_trace::PacketReader::new(trace).map_while(Result::ok) {
            if self.is_known() {
                return;
            }
            self.plain_packet(&packet.bytes);
        }
    }

    /// Returns whether further packets cannot tell more.
    pub(crate) fn is_known(&self) -> bool {
        self.has_events && !self.wants_silent && !self.relays.are_wanted
    }

    /// Looks at a packet, which may hold compressed packets.
    pub(crate) fn packet(&mut self, packet: &[u8]) {
        match as_trace(packet) {
            Some(trace) => self.read(&trace[..]),
            None => self.plain_packet(packet),
        }
    }

    fn plain_packet(&mut self, packet: &[u8]) {
        let mut is_of_service = false;
        let mut has_event = false;
        let mut is_about_relays = false;
        for found in Fields::new(packet) {
            is_about_relays |= matches!(found.id, field::SERVICE_EVENT | field::SYSTEM_INFO);
            match found.id {
                field::TRUSTED_PACKET_SEQUENCE_ID => is_of_service = found.as_u64() == SERVICE_SEQUENCE,
                field::SERVICE_EVENT if self.wants_silent => self.service_event(found.as_bytes()),
                id => has_event |= !EXPLANATIONS.contains(&id),
            }
        }
        self.has_events |= has_event && !is_of_service;
        if is_about_relays && self.relays.are_wanted {
            self.relays.service_packet(packet);
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
        content.packet(&packet(1, |packet| _ = packet.service_event().tracing_started(true)));
        content.packet(&packet(0, |packet| _ = packet.machine_id(7).system_info().machine_name("guest1")));
        content.packet(&packet(0, |packet| _ = packet.machine_id(7).remote_clock_sync()));
        assert!(!content.has_events);
        content.packet(&packet(2, |packet| _ = packet.track_event().r#type(track_event::Type::TYPE_INSTANT)));
        assert!(content.has_events);
    }
}
