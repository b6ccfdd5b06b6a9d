//! Looks for events in the packets of a recording.

use std::collections::BTreeSet;
use std::io::Read;

use esatto_protozero::{Field, Fields};
use esatto_schema::trace_packet::field;
use esatto_schema::tracing_service_event::DataSourcesReader;
use esatto_schema::tracing_service_event::field::{LAST_FLUSH_SLOW_DATA_SOURCES, TRACING_DISABLED};
use esatto_schema::{SLOW_STOPPING_DATA_SOURCES_FIELD, TracePacketReader};

/// Sequence of the packets that the service itself writes (`docs/spec/service.md` §16).
const SERVICE_SEQUENCE: u64 = 1;

/// Fields that say where and when the events of a packet happened, or that explain them. A packet
/// with only these has no event.
const EXPLANATIONS: [u32; 22] = [
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
];

/// Content of the packets of a recording.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// Some packet has an event of a program.
    pub(crate) has_events: bool,
    pub(crate) silent: Silent,
    /// Look also for data sources that did not answer.
    pub(crate) wants_silent: bool,
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
        self.has_events && !self.wants_silent
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
        for found in Fields::new(packet) {
            match found.id {
                field::TRUSTED_PACKET_SEQUENCE_ID => is_of_service = found.as_u64() == SERVICE_SEQUENCE,
                field::SERVICE_EVENT if self.wants_silent => self.service_event(found.as_bytes()),
                id => has_event |= !EXPLANATIONS.contains(&id),
            }
        }
        self.has_events |= has_event && !is_of_service;
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
    /// The service has noted that the session ended. It does so after all data of programs.
    pub(crate) is_noted: bool,
}

impl End {
    pub(crate) fn of(trace: impl Read) -> Self {
        let mut end = Self { is_whole: true, is_noted: false };
        for packet in esatto_trace::PacketReader::new(trace) {
            match packet {
                Ok(packet) => end.is_noted |= notes_end(&packet.bytes),
                Err(_) => end.is_whole = false,
            }
        }
        end
    }
}

fn notes_end(packet: &[u8]) -> bool {
    let of_service =
        |found: &Field<'_>| found.id == field::TRUSTED_PACKET_SEQUENCE_ID && found.as_u64() == SERVICE_SEQUENCE;
    let is_end = |found: &Field<'_>| {
        found.id == field::SERVICE_EVENT && Fields::new(found.as_bytes()).any(|event| event.id == TRACING_DISABLED)
    };
    Fields::new(packet).any(|found| is_end(&found)) && Fields::new(packet).any(|found| of_service(&found))
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
        assert!(!content.has_events);
        content.packet(&packet(2, |packet| _ = packet.track_event().r#type(track_event::Type::TYPE_INSTANT)));
        assert!(content.has_events);
    }
}
