//! Check of producers' packets: they must be well-formed and contain no reserved field
//! (`docs/spec/trace-buffer.md §13`).

/// Fields of TracePacket that only the service writes. The service drops a producer's packet that
/// contains one of them.
///
/// The list of v58.2 is complete here: `trusted_uid`, `trusted_packet_sequence_id`, `trace_config`,
/// `trace_stats`, `synchronization_marker`, `compressed_packets`, `service_event`, `trusted_pid`,
/// `machine_id`, `trace_provenance`, `protovms` and `zstd_compressed_packets`.
///
/// No producer of any version writes the other fields, which could forge statements of a trace
/// about itself: `trigger` (46), `trace_uuid` (89), `remote_clock_sync` (107),
/// `clone_snapshot_trigger` (113), `concurrent_session_event` (134).
const RESERVED_FIELDS: [u32; 17] = [3, 10, 33, 35, 36, 46, 50, 69, 79, 89, 98, 107, 113, 124, 125, 133, 134];

/// `TracePacket.previous_packet_dropped`.
pub(crate) const PREVIOUS_PACKET_DROPPED: u32 = 42;
/// `TracePacket.first_packet_on_sequence`.
const FIRST_PACKET_ON_SEQUENCE: u32 = 87;

/// Longest length of a field.
const MAX_LENGTH: u64 = (1 << 28) - 1;

/// Result of the check of a well-formed packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The loss bits that the producer reports itself.
    pub(crate) loss: u32,
    /// The producer says whether it is the first packet of its writer.
    pub(crate) tells_first: bool,
}

/// Checks the top level of a packet across its slices. Returns `None` if the packet is malformed or
/// contains a reserved field.
#[inline]
pub(crate) fn check<'a>(mut slices: impl Iterator<Item = &'a [u8]>) -> Option<Found> {
    let current = slices.next().unwrap_or_default();
    // Nearly every packet is in one piece.
    if slices.size_hint().1 == Some(0) {
        check_bytes(Bytes { current, rest: core::iter::empty() })
    } else {
        check_bytes(Bytes { current, rest: slices })
    }
}

fn check_bytes<'a>(mut bytes: Bytes<'a, impl Iterator<Item = &'a [u8]>>) -> Option<Found> {
    let mut found = Found::default();
    while let Some(first) = bytes.next() {
        let tag = bytes.varint_from(first)?;
        // The low 32 bits count.
        let field = ((tag >> 3) & 0xffff_ffff) as u32;
        // Field 0 is invalid protobuf. Upstream lets it through, and its trace processor then
        // refuses the whole trace.
        if field == 0 || is_reserved(field) {
            return None;
        }
        match tag & 7 {
            0 => {
                let first = bytes.next()?;
                let value = bytes.varint_from(first)?;
                if field == PREVIOUS_PACKET_DROPPED {
                    found.loss = (value & 0xffff_ffff) as u32;
                }
                found.tells_first |= field == FIRST_PACKET_ON_SEQUENCE;
            }
            1 => bytes.skip(8)?,
            2 => {
                let first = bytes.next()?;
                let length = bytes.varint_from(first)?;
                if length > MAX_LENGTH {
                    return None;
                }
                bytes.skip(usize::try_from(length).ok()?)?;
            }
            5 => bytes.skip(4)?,
            _ => return None,
        }
    }
    Some(found)
}

/// [`RESERVED_FIELDS`] below 128, a bit each.
const RESERVED_MASK: u128 = {
    let (mut mask, mut i) = (0, 0);
    while i < RESERVED_FIELDS.len() {
        if RESERVED_FIELDS[i] < 128 {
            mask |= 1 << RESERVED_FIELDS[i];
        }
        i += 1;
    }
    mask
};

#[inline]
fn is_reserved(field: u32) -> bool {
    if field < 128 { RESERVED_MASK >> field & 1 != 0 } else { RESERVED_FIELDS.contains(&field) }
}

/// The bytes of several slices, one after the other.
struct Bytes<'a, I> {
    current: &'a [u8],
    rest: I,
}

impl<'a, I: Iterator<Item = &'a [u8]>> Bytes<'a, I> {
    #[inline]
    fn next(&mut self) -> Option<u8> {
        loop {
            if let Some((&first, rest)) = self.current.split_first() {
                self.current = rest;
                return Some(first);
            }
            self.current = self.rest.next()?;
        }
    }

    /// Reads the varint that begins with this byte, of at most 64 bits.
    #[inline]
    fn varint_from(&mut self, first: u8) -> Option<u64> {
        let mut value = u64::from(first & 0x7f);
        let mut byte = first;
        let mut shift = 7;
        while byte >= 0x80 {
            byte = self.next()?;
            if shift == 63 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
        }
        Some(value)
    }

    fn skip(&mut self, mut length: usize) -> Option<()> {
        while length > self.current.len() {
            length -= self.current.len();
            self.current = self.rest.next()?;
        }
        self.current = &self.current[length..];
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::put;

    fn check_one(bytes: &[u8]) -> Option<Found> {
        check([bytes].into_iter())
    }

    #[test]
    fn row_119_reserved_fields_drop_the_packet() {
        for field in RESERVED_FIELDS {
            let mut packet = Vec::new();
            put(&mut packet, field, 1);
            assert_eq!(check_one(&packet), None, "{field}");
        }
    }

    #[test]
    fn row_120_reserved_numbers_in_a_nested_message_are_fine() {
        assert!(check_one(&[0x0a, 2, 0x18, 1]).is_some());
    }

    #[test]
    fn row_121_malformed_packets_are_dropped() {
        let malformed: [&[u8]; 10] = [
            &[0x00, 1],
            &[0x88],
            &[0x08, 0x80],
            &[0x0a, 5, b'a'],
            &[0x0b],
            &[0x0c],
            &[0x0e],
            &[0x0a, 0x80, 0x80, 0x80, 0x80, 0x01],
            &[0x0d, 1, 2, 3],
            &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
        ];
        for packet in malformed {
            assert_eq!(check_one(packet), None, "{packet:x?}");
        }
        assert!(check_one(&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]).is_some());
        assert!(check_one(&[]).is_some());
    }

    #[test]
    fn row_122_a_reserved_tag_over_two_slices() {
        let field_33: [&[u8]; 2] = [&[0x08, 1, 0x8a], &[0x02, 0]];
        assert_eq!(check(field_33.into_iter()), None);
        let nested: [&[u8]; 3] = [&[0x0a, 4, 0x8a], &[], &[0x02, 0, 0, 0x08, 1]];
        assert!(check(nested.into_iter()).is_some());
    }

    #[test]
    fn the_check_finds_the_producers_own_sequence_marks() {
        assert_eq!(check_one(&[0xd0, 0x02, 0x81, 0x02]), Some(Found { loss: 257, tells_first: false }));
        assert_eq!(check_one(&[0xb8, 0x05, 1]), Some(Found { loss: 0, tells_first: true }));
    }
}
