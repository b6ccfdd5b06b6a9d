//! Track events of a trace.

use esatto_protozero::{Fields, wire};
use esatto_schema::{TracePacketReader, trace, trace_packet};

/// Sums over the packets with a track event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrackEvents {
    pub(crate) count: u64,
    /// With the tag and length of each packet.
    pub(crate) bytes: u64,
    /// The same without the fields that the service added.
    pub(crate) bytes_of_producer: u64,
    /// Packets, of any kind, that say that some before them on their sequence were lost.
    pub(crate) marks: u64,
    /// Losses that the service has counted: sequences' losses, and chunks that it overwrote or
    /// discarded.
    pub(crate) counted: u64,
}

/// Fields that a tracing service stamps on every packet.
const STAMPED: [u32; 4] = [
    trace_packet::field::TRUSTED_UID,
    trace_packet::field::TRUSTED_PACKET_SEQUENCE_ID,
    trace_packet::field::TRUSTED_PID,
    trace_packet::field::MACHINE_ID,
];

impl TrackEvents {
    /// Reads a whole trace file.
    pub(crate) fn of(bytes: &[u8]) -> Result<Self, String> {
        let mut sums = Self::default();
        let mut packets = Fields::new(bytes);
        for packet in packets.by_ref() {
            if packet.id != trace::field::PACKET {
                continue;
            }
            let content = packet.as_bytes();
            let mut fields = Fields::new(content);
            let mut is_event = false;
            let mut stamped = 0;
            let mut before = 0;
            while let Some(field) = fields.next() {
                let size = fields.offset() - before;
                before = fields.offset();
                is_event |= field.id == trace_packet::field::TRACK_EVENT;
                if STAMPED.contains(&field.id) {
                    stamped += size;
                }
            }
            let packet = TracePacketReader::new(content);
            sums.marks += u64::from(packet.previous_packet_dropped().unwrap_or(0) != 0);
            if let Some(stats) = packet.trace_stats() {
                // The last ones are those of the end.
                sums.counted = stats
                    .buffer_stats()
                    .map(|buffer| {
                        buffer.trace_writer_packet_loss().unwrap_or(0)
                            + buffer.chunks_overwritten().unwrap_or(0)
                            + buffer.chunks_discarded().unwrap_or(0)
                    })
                    .sum();
            }
            if is_event {
                let own = content.len() - stamped;
                sums.count += 1;
                sums.bytes += (framing(content.len()) + content.len()) as u64;
                sums.bytes_of_producer += (framing(own) + own) as u64;
            }
        }
        if packets.is_malformed() {
            return Err(format!("the trace is malformed at byte {}", packets.offset()));
        }
        Ok(sums)
    }
}

/// Bytes of a packet's tag and length.
fn framing(len: usize) -> usize {
    1 + wire::varint_size(len as u64)
}
