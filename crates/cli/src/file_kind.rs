//! Kind of a file, from its first bytes.

use std::io::{self, Read};

use esatto_protozero::Fields;
use esatto_schema::trace_packet::field::TRUSTED_PACKET_SEQUENCE_ID;

/// Bytes that tell the kind of a file.
const LOOKED_AT_BYTES: usize = 64 << 10;
/// Tag of `Trace.packet`: field 1, length delimited.
const PACKET_TAG: u8 = 0x0a;
/// Bytes of the longest length of a packet.
const LENGTH_BYTES: usize = 5;

/// Reads the bytes that tell the kind of a file.
pub(crate) fn beginning(file: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LOOKED_AT_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns whether a file that begins like this may be a trace.
pub(crate) fn may_be_trace(beginning: &[u8]) -> bool {
    first_packet(beginning).is_some()
}

/// Returns whether a file that begins like this is a trace of a service, and no encoded config.
/// Both begin with a message in field 1.
pub(crate) fn is_trace_of_service(beginning: &[u8]) -> bool {
    // A buffer of a config has only lower fields.
    first_packet(beginning)
        .is_some_and(|packet| Fields::new(packet).any(|field| field.id >= TRUSTED_PACKET_SEQUENCE_ID))
}

/// Returns the first packet of a trace, or its part that is there.
fn first_packet(beginning: &[u8]) -> Option<&[u8]> {
    let mut first = None;
    let mut rest = beginning;
    while !rest.is_empty() {
        let packet = next_packet(&mut rest)?;
        match packet {
            Some(packet) if Fields::new(packet).check().is_err() => return None,
            Some(packet) => _ = first.get_or_insert(packet),
            // The last packet of a trace may be torn.
            None if first.is_some() => break,
            None => return (beginning.len() >= LOOKED_AT_BYTES && Fields::new(rest).next().is_some()).then_some(rest),
        }
    }
    first
}

/// Takes a packet, or only its header if the rest is not there. Returns `None` if none begins here.
fn next_packet<'b>(rest: &mut &'b [u8]) -> Option<Option<&'b [u8]>> {
    let content = rest.strip_prefix(&[PACKET_TAG])?;
    let Some(length_bytes) = content.iter().position(|byte| byte & 0x80 == 0).map(|last| last + 1) else {
        return (content.len() < LENGTH_BYTES).then_some(None);
    };
    let (length, content) = content.split_at(length_bytes);
    if length.len() > LENGTH_BYTES {
        return None;
    }
    let length = length.iter().rev().fold(0_u64, |length, byte| length << 7 | u64::from(byte & 0x7f));
    let packet = usize::try_from(length).ok().and_then(|length| content.get(..length));
    *rest = &content[packet.map_or(0, <[u8]>::len)..];
    Some(packet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_config::track_events;
    use esatto_protozero::Owned as _;

    #[test]
    fn a_trace_is_told_from_texts_and_configs() {
        // A timestamp and a sequence.
        let trace = [PACKET_TAG, 4, 0x40, 7, 0x50, 1];
        let long = [&[PACKET_TAG, 0x80, 0x80, 0x04, 0x50, 1][..], &[0; LOOKED_AT_BYTES]].concat();
        assert!(may_be_trace(&trace) && may_be_trace(&long[..LOOKED_AT_BYTES]) && is_trace_of_service(&trace));
        assert!(!is_trace_of_service(&track_events(false).encode()));
        let texts =
            ["", "\n", "\n\n", "\n// A comment.\nfn main() {}\n", "\n# A heading\n", "fn main() {}", "\u{7f}ELF"];
        assert!(may_be_trace(&[&trace[..], &trace[..5]].concat()), "its last packet may be torn");
        let torn = [&trace[..1], &trace[..5]].map(<[u8]>::to_vec);
        for other in texts.map(|text| text.as_bytes().to_vec()).into_iter().chain(torn) {
            assert!(!may_be_trace(&other) && !is_trace_of_service(&other), "{other:?}");
        }
        let repeated = "\n\tA line of a long text.".repeat(LOOKED_AT_BYTES);
        assert!(!may_be_trace(&repeated.as_bytes()[..LOOKED_AT_BYTES]));
    }
}
