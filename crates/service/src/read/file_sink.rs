//! Packets for a file, as the bytes of a `Trace` message.

use esatto_protozero::wire::varint_size;

use super::packet_sink::PacketSink;
use crate::encode::put_varint;

/// Packets as the bytes of a `Trace` message.
#[derive(Debug)]
pub(crate) struct FileSink {
    bytes: Vec<u8>,
    /// The batch must stay below this size.
    max_bytes: Option<u64>,
    is_full: bool,
}

impl FileSink {
    /// Appends to `bytes`.
    pub(crate) fn new(bytes: Vec<u8>, max_bytes: Option<u64>) -> Self {
        Self { bytes, max_bytes, is_full: false }
    }

    /// Returns the bytes, and whether a packet did not fit.
    pub(crate) fn into_bytes(self) -> (Vec<u8>, bool) {
        (self.bytes, self.is_full)
    }
}

impl PacketSink for FileSink {
    fn put<'a>(&mut self, slices: impl Iterator<Item = &'a [u8]> + Clone, trailer: &'a [u8]) -> bool {
        let len = slices.clone().map(<[u8]>::len).sum::<usize>() + trailer.len();
        let total = self.bytes.len() + 1 + varint_size(len as u64) + len;
        let is_beyond = |max| total as u64 >= max;
        if self.is_full || self.max_bytes.is_some_and(is_beyond) {
            self.is_full = true;
            return false;
        }
        self.bytes.reserve(total - self.bytes.len());
        self.bytes.push(1 << 3 | 2);
        put_varint(&mut self.bytes, len as u64);
        for slice in slices {
            self.bytes.extend_from_slice(slice);
        }
        self.bytes.extend_from_slice(trailer);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stays_below_its_limit() {
        let mut sink = FileSink::new(Vec::new(), Some(10));
        assert!(sink.put([&b"abcd"[..]].into_iter(), b""));
        assert!(!sink.put([&b"ab"[..]].into_iter(), b""), "6 + 4 bytes would reach the limit");
        assert!(!sink.put([].into_iter(), b""), "what follows a packet that did not fit is also dropped");
        assert_eq!(sink.into_bytes(), (b"\x0a\x04abcd".to_vec(), true));
    }
}
