//! Packets inside a chunk: size, bytes, size, bytes, … (`docs/spec/shared-memory.md §6`).

/// Size field of a packet that its writer abandoned.
const DROP_MARKER: u64 = 0x0fff_ffff;

/// One fragment within the bytes it was parsed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fragment {
    /// Offset of its bytes.
    pub(super) start: usize,
    /// Number of its bytes.
    pub(super) len: usize,
}

impl Fragment {
    /// Returns the offset of the next size field.
    pub(super) fn end(self) -> usize {
        self.start + self.len
    }
}

/// Reason why there is no fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The writer abandoned the packet.
    DropMarker,
    /// The size field is malformed or runs beyond the bytes.
    Malformed,
}

/// Parses the fragment whose size field begins at `at`.
#[inline]
pub(super) fn parse(bytes: &[u8], at: usize) -> Result<Fragment, Broken> {
    // Almost all sizes take one byte or four, as writers reserve them. None of these is a drop
    // marker.
    let (start, len) = match bytes.get(at..) {
        Some(&[a @ ..0x80, ..]) => (at + 1, usize::from(a)),
        Some(&[a, b, c, d @ 0..4, ..]) if a & b & c >= 0x80 => {
            let digit = |byte: u8| usize::from(byte & 0x7f);
            (at + 4, digit(a) | digit(b) << 7 | digit(c) << 14 | digit(d) << 21)
        }
        _ => return parse_long(bytes, at),
    };
    if len <= bytes.len() - start { Ok(Fragment { start, len }) } else { Err(Broken::Malformed) }
}

#[inline(never)]
fn parse_long(bytes: &[u8], at: usize) -> Result<Fragment, Broken> {
    let mut size = 0u64;
    for (i, &byte) in bytes.get(at..).unwrap_or_default().iter().take(10).enumerate() {
        size |= u64::from(byte & 0x7f).checked_shl(7 * u32::try_from(i).unwrap_or(9)).unwrap_or(0);
        if byte < 0x80 {
            if size == DROP_MARKER {
                return Err(Broken::DropMarker);
            }
            let start = at + i + 1;
            return match usize::try_from(size) {
                Ok(len) if len <= bytes.len() - start => Ok(Fragment { start, len }),
                _ => Err(Broken::Malformed),
            };
        }
    }
    Err(Broken::Malformed)
}

/// Result of parsing a chunk's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parsed {
    /// Bytes of the valid fragments at its start, size fields included.
    pub(super) valid_bytes: usize,
    /// Number of parsed fragments.
    pub(super) visited: u16,
    /// Reason why there are fewer than announced.
    pub(super) broken: Option<Broken>,
}

/// Walks up to `count` fragments.
pub(super) fn parse_all(payload: &[u8], count: u16) -> Parsed {
    let mut valid_bytes = 0;
    for visited in 1..=count {
        match parse(payload, valid_bytes) {
            Ok(fragment) => valid_bytes = fragment.end(),
            Err(broken) => return Parsed { valid_bytes, visited, broken: Some(broken) },
        }
    }
    Parsed { valid_bytes, visited: count, broken: None }
}

/// Tag of `TracePacket.previous_packet_dropped`.
const PREVIOUS_PACKET_DROPPED_TAG: [u8; 2] = [0xd0, 0x02];

/// Returns the loss that the first packet of a chunk tells, 0 if it tells none. Writers put it
/// before all other fields (`docs/spec/shared-memory.md §9`).
#[inline]
pub(super) fn told_loss(fragments: &[u8]) -> u32 {
    let Ok(first) = parse(fragments, 0) else { return 0 };
    match fragments[first.start..first.end()].strip_prefix(&PREVIOUS_PACKET_DROPPED_TAG) {
        Some(&[value @ ..0x80, ..]) => value.into(),
        Some(&[low, high @ ..0x80, ..]) => u32::from(low & 0x7f) | u32::from(high) << 7,
        _ => 0,
    }
}

/// Returns the first end of a fragment that is not before `at`, in bytes that were parsed.
pub(super) fn end_from(fragments: &[u8], at: usize) -> usize {
    let mut end = 0;
    while end < at {
        end = parse(fragments, end).map_or(fragments.len(), Fragment::end);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_packet_tells_a_loss_in_its_first_field() {
        assert_eq!(told_loss(b"\x05\xd0\x02\x81\x02xyz"), 257);
        assert_eq!(told_loss(b"\x03\xd0\x02\x01\xd0\x02\x81\x02"), 1);
        for other in [&b""[..], b"\x00", b"\x02\xd0\x02\x01", b"\x05\x40\x01\xd0\x02\x01", b"\x04\xd0\x02\x81\x81"] {
            assert_eq!(told_loss(other), 0, "{other:x?}");
        }
    }

    #[test]
    fn a_size_field_may_be_redundant_but_not_longer_than_ten_bytes() {
        assert_eq!(parse(b"\x83\x80\x80\x00abc", 0), Ok(Fragment { start: 4, len: 3 }));
        assert_eq!(parse(b"\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00a", 0), Ok(Fragment { start: 10, len: 1 }));
        assert_eq!(parse(b"\x81\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00a", 0), Err(Broken::Malformed));
    }

    #[test]
    fn a_size_beyond_the_end_is_malformed() {
        assert_eq!(parse(b"\x03ab", 0), Err(Broken::Malformed));
        assert_eq!(parse(b"\x82", 0), Err(Broken::Malformed));
        assert_eq!(parse(b"", 0), Err(Broken::Malformed));
        assert_eq!(parse(b"a", 7), Err(Broken::Malformed));
        assert_eq!(parse(&[0xff; 10], 0), Err(Broken::Malformed));
        assert_eq!(parse(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 0), Err(Broken::Malformed));
    }

    #[test]
    fn the_drop_marker_ends_the_chunk() {
        assert_eq!(parse(b"\xff\xff\xff\x7f", 0), Err(Broken::DropMarker));
        let parsed = parse_all(b"\x01a\xff\xff\xff\x7f\x01b", 3);
        assert_eq!(parsed, Parsed { valid_bytes: 2, visited: 2, broken: Some(Broken::DropMarker) });
    }
}
