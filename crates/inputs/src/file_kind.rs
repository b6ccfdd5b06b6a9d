//! Kind of a file, from its first bytes.

use std::io::{self, Read};

use esatto_protozero::Fields;
use esatto_schema::trace_packet::field::TRUSTED_PACKET_SEQUENCE_ID;

/// Bytes that tell the kind of a file.
const LOOKED_AT_BYTES: usize = 64 << 10;
/// Tag of `Trace.packet`: field 1, length delimited.
const PACKET_TAG: u8 = 0x0a;
/// Place of the magic of a tar archive in its first header.
const TAR_MAGIC_AT: usize = 257;
/// Begin of a manifest, without spaces.
const MANIFEST_BEGIN: &[u8] = b"{\"perfetto_manifest\"";
/// Bytes of the longest length of a packet.
const LENGTH_BYTES: usize = 5;

/// Kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A Perfetto trace.
    Trace,
    /// JSON, such as a trace in the format of Chrome's about:tracing.
    Json,
    /// A manifest for the files beside it in an archive.
    Manifest,
    /// Data that is compressed with gzip.
    Gzip,
    /// Data that is compressed with zstd.
    Zstd,
    /// A zip archive.
    Zip,
    /// A tar archive.
    Tar,
    /// A file without bytes.
    Empty,
    /// Anything else.
    Unknown,
}

impl FileKind {
    /// Returns the kind of a file that begins like this.
    pub fn of(beginning: &[u8]) -> Self {
        match beginning {
            [] => Self::Empty,
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Self::Zip,
            _ if may_be_trace(beginning) => Self::Trace,
            _ if beginning.get(TAR_MAGIC_AT..).is_some_and(|rest| rest.starts_with(b"ustar")) => Self::Tar,
            _ if is_manifest(beginning) => Self::Manifest,
            _ if begins_with_packet(beginning) => Self::Trace,
            _ if is_json(beginning) => Self::Json,
            _ => Self::Unknown,
        }
    }

    /// Returns whether it holds several files.
    pub fn is_archive(self) -> bool {
        matches!(self, Self::Zip | Self::Tar)
    }
}

/// Returns whether a text begins with the key of a manifest, except for spaces.
fn is_manifest(beginning: &[u8]) -> bool {
    let text = beginning.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
    text.take(MANIFEST_BEGIN.len()).eq(MANIFEST_BEGIN.iter().copied())
}

/// Returns whether a file that begins like this is JSON.
fn is_json(beginning: &[u8]) -> bool {
    // A mark of the byte order may come first.
    let text = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    // The tag of a packet is a line feed, and its length may be that of a bracket.
    matches!(first, Some(b'{' | b'[')) && !may_be_trace(beginning)
}

/// Reads the bytes that tell the kind of a file.
///
/// # Errors
///
/// Reading fails.
pub fn beginning(file: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LOOKED_AT_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns whether a file that begins like this may be a trace.
pub fn may_be_trace(beginning: &[u8]) -> bool {
    first_packet(beginning).is_some()
}

/// Returns whether a file begins with a whole packet of the usual kind, so that it is a trace, if a
/// damaged one.
fn begins_with_packet(beginning: &[u8]) -> bool {
    let mut rest = beginning;
    let Some(Some(packet)) = next_packet(&mut rest) else { return false };
    let is_usual = Fields::new(packet).any(|field| field.id >= TRUSTED_PACKET_SEQUENCE_ID);
    is_usual && Fields::new(packet).check().is_ok()
}

/// Returns whether a file in an archive has the name of a trace. It decides about a file whose
/// beginning tells no kind, because its first packet is damaged.
pub(crate) fn is_named_like_trace(name: &str) -> bool {
    const ENDINGS: [&str; 4] = [".pftrace", ".perfetto-trace", ".perfetto", ".pb"];
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Returns whether a file that begins like this is a trace of a service, and no encoded config.
/// Both begin with a message in field 1.
pub fn is_trace_of_service(beginning: &[u8]) -> bool {
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

    #[test]
    fn a_trace_is_told_from_texts() {
        // A timestamp and a sequence.
        let trace = [PACKET_TAG, 4, 0x40, 7, 0x50, 1];
        let long = [&[PACKET_TAG, 0x80, 0x80, 0x04, 0x50, 1][..], &[0; LOOKED_AT_BYTES]].concat();
        assert!(may_be_trace(&trace) && may_be_trace(&long[..LOOKED_AT_BYTES]) && is_trace_of_service(&trace));
        let texts =
            ["", "\n", "\n\n", "\n// A comment.\nfn main() {}\n", "\n# A heading\n", "fn main() {}", "\u{7f}ELF"];
        assert!(may_be_trace(&[&trace[..], &trace[..5]].concat()), "its last packet may be torn");
        let torn = [&trace[..1], &trace[..5]].map(<[u8]>::to_vec);
        let damaged = [&trace[..], b"\0\0garbage"].concat();
        assert!(!may_be_trace(&damaged) && FileKind::of(&damaged) == FileKind::Trace, "it is a damaged trace");
        for other in texts.map(|text| text.as_bytes().to_vec()).into_iter().chain(torn) {
            assert!(!may_be_trace(&other) && !is_trace_of_service(&other), "{other:?}");
        }
        let repeated = "\n\tA line of a long text.".repeat(LOOKED_AT_BYTES);
        assert!(!may_be_trace(&repeated.as_bytes()[..LOOKED_AT_BYTES]));
    }

    #[test]
    fn packets_of_any_length_are_no_json() {
        for length in 2..300 {
            // The number of a sequence, again and again.
            let mut packet = [0x50, 1].repeat(length / 2);
            if length % 2 == 1 {
                packet.splice(..2, [0x50, 0x81, 0]);
            }
            let mut trace = Vec::new();
            esatto_trace::write_packet(&mut trace, &packet).unwrap();
            assert_eq!(FileKind::of(&trace), FileKind::Trace, "{length}");
        }
        for json in ["[", "\n[{}]", " {\"traceEvents\":[]}", "\u{feff}[{}]", "\n{\n\"traceEvents\": []\n}\n"] {
            assert_eq!(FileKind::of(json.as_bytes()), FileKind::Json, "{json}");
        }
        for manifest in ["{\"perfetto_manifest\":{}}", "\n {\t\"perfetto_manifest\" : 7"] {
            assert_eq!(FileKind::of(manifest.as_bytes()), FileKind::Manifest, "{manifest}");
        }
    }
}
