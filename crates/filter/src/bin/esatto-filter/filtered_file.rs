//! Filtering of a file: one message, or a trace with compressed packets.

use esatto_filter::{Action, Filter, MessageId, Program};
use esatto_protozero::Fields;
use esatto_protozero::wire::{self, WireType};
use esatto_schema::trace_packet::field::{COMPRESSED_PACKETS, ZSTD_COMPRESSED_PACKETS};
use esatto_trace::packets;

use crate::output::Output;

/// `Trace.packet`.
const PACKET: u32 = 1;

/// Kind of the message in a file, as far as compressed packets may occur in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The filter's root, with a nested message in field 1: probably a trace.
    Trace,
    /// A message in field 1 of the filter's root: probably a packet.
    Packet,
    /// Any other message, in which compressed packets mean nothing.
    Other,
}

impl Kind {
    pub(crate) fn new(program: &Program, root: &[u32]) -> Self {
        match root {
            [] if matches!(program.action(MessageId::ROOT, PACKET), Some(Action::Enter(_))) => Self::Trace,
            [PACKET] => Self::Packet,
            _ => Self::Other,
        }
    }
}

/// Filters the content of a file. The packets in compressed packets are filtered and written
/// plainly, because a filter cannot look into compressed ones.
pub(crate) fn filter_file(filter: &mut Filter, kind: Kind, input: &[u8], output: &mut Output) -> Result<(), String> {
    let is_gzipped = input.starts_with(b"\x1f\x8b");
    if kind == Kind::Trace && (is_gzipped || inner_packets(input).any(is_container)) {
        return filter_packets(filter, input, output);
    }
    if kind == Kind::Packet && is_container(input) {
        return Err(container_error("filter the whole trace, without --root"));
    }
    let filtered = filter.filter_to_vec(input).map_err(|error| error.to_string())?;
    // The filter may read a malformed message in another way than the test above.
    let has_container = match kind {
        Kind::Trace => inner_packets(&filtered).any(is_container),
        Kind::Packet => is_container(&filtered),
        Kind::Other => false,
    };
    if has_container {
        return Err(container_error("the file is not a well-formed trace"));
    }
    output.write(&filtered)
}

/// Filters packet after packet, with those that are compressed.
fn filter_packets(filter: &mut Filter, input: &[u8], output: &mut Output) -> Result<(), String> {
    let mut filtered = Vec::new();
    for packet in packets(input) {
        let packet = packet.map_err(|error| error.to_string())?;
        let (mut tag, mut length) = ([0; wire::MAX_VARINT_SIZE], [0; wire::MAX_VARINT_SIZE]);
        let tag_size = wire::encode_varint(wire::tag(PACKET, WireType::LengthDelimited).into(), &mut tag);
        let length_size = wire::encode_varint(packet.bytes.len() as u64, &mut length);
        filtered.clear();
        filter
            .filter(&[&tag[..tag_size], &length[..length_size], &packet.bytes], &mut filtered)
            .map_err(|error| format!("the packet at {}: {error}", packet.place))?;
        if inner_packets(&filtered).any(is_container) {
            let advice = format!("the packet at {} is not well-formed", packet.place);
            return Err(container_error(&advice));
        }
        output.write(&filtered)?;
    }
    Ok(())
}

fn inner_packets(trace: &[u8]) -> impl Iterator<Item = &[u8]> {
    Fields::new(trace).filter(|field| field.id == PACKET).map(|field| field.as_bytes())
}

fn is_container(packet: &[u8]) -> bool {
    Fields::new(packet).any(|field| matches!(field.id, COMPRESSED_PACKETS | ZSTD_COMPRESSED_PACKETS))
}

fn container_error(advice: &str) -> String {
    format!(
        "it contains compressed packets, which cannot be filtered here: {advice}; if it is not a trace at all, \
             add --not-a-trace"
    )
}
