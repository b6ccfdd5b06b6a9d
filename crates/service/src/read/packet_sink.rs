//! Destinations of a read pass, and the replies to a consumer that reads.

use esatto_protozero::wire::varint_size;

use crate::encode::put_varint;

/// Bytes of slices, each with [`SLICE_OVERHEAD`], after which a reply is complete.
const MAX_REPLY_BYTES: usize = 131_072 - 64;

/// Bytes that a slice adds to a reply, at most.
const SLICE_OVERHEAD: usize = 16;

/// Longest slice. Longer packets are cut into several.
const MAX_SLICE_BYTES: usize = 130_560;

const _: () = assert!(MAX_SLICE_BYTES + SLICE_OVERHEAD <= MAX_REPLY_BYTES);

/// A destination of packets.
pub(crate) trait PacketSink {
    /// Takes a packet: its slices, and the fields that the service appends. Returns false if the
    /// sink accepts no more packets.
    fn put<'a>(&mut self, slices: impl Iterator<Item = &'a [u8]> + Clone, trailer: &'a [u8]) -> bool;
}

/// Packets as the slices of ReadBuffersResponse messages.
#[derive(Debug, Default)]
pub(crate) struct ReplySink {
    /// Full replies.
    done: Vec<Vec<u8>>,
    reply: Vec<u8>,
    /// Bytes that the slices of `reply` count for.
    reply_bytes: usize,
}

impl ReplySink {
    /// Puts the first reply into `buffer`, which is empty.
    pub(crate) fn new(buffer: Vec<u8>) -> Self {
        Self { reply: buffer, ..Self::default() }
    }

    fn put_slice(&mut self, data: &[u8], is_last: bool) {
        let cost = data.len() + SLICE_OVERHEAD;
        if self.reply_bytes + cost > MAX_REPLY_BYTES {
            self.done.push(core::mem::take(&mut self.reply));
            self.reply_bytes = 0;
        }
        self.reply_bytes += cost;
        // Slice { data = 1, last_slice_for_packet = 2 }, as field 2.
        let inner = 1 + varint_size(data.len() as u64) + data.len() + 2;
        self.reply.push(2 << 3 | 2);
        put_varint(&mut self.reply, inner as u64);
        self.reply.push(1 << 3 | 2);
        put_varint(&mut self.reply, data.len() as u64);
        self.reply.extend_from_slice(data);
        self.reply.extend_from_slice(&[2 << 3, is_last.into()]);
    }

    /// Returns the encoded replies. There is at least one, and the last one may be empty.
    pub(crate) fn into_replies(mut self) -> Vec<Vec<u8>> {
        if self.done.is_empty() || !self.reply.is_empty() {
            self.done.push(self.reply);
        }
        self.done
    }
}

impl PacketSink for ReplySink {
    fn put<'a>(&mut self, slices: impl Iterator<Item = &'a [u8]> + Clone, trailer: &'a [u8]) -> bool {
        let pieces = slices.chain(core::iter::once(trailer)).flat_map(|slice| slice.chunks(MAX_SLICE_BYTES));
        let mut pieces = pieces.peekable();
        while let Some(piece) = pieces.next() {
            self.put_slice(piece, pieces.peek().is_none());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_schema::ReadBuffersResponseReader;

    #[test]
    fn long_packets_are_cut_and_spread_over_replies() {
        let mut sink = ReplySink::default();
        let long = vec![7u8; 300_000];
        sink.put([&long[..], b"", b"tail"].into_iter(), b"trailer");
        sink.put([].into_iter(), b"second");
        let replies = sink.into_replies();
        assert_eq!(replies.len(), 3);
        let mut packets = vec![Vec::new()];
        for reply in &replies {
            assert!(reply.len() <= 131_072 - 64);
            for slice in ReadBuffersResponseReader::new(reply).slices() {
                packets.last_mut().unwrap().extend_from_slice(slice.data().unwrap());
                if slice.last_slice_for_packet().unwrap() {
                    packets.push(Vec::new());
                }
            }
        }
        assert_eq!(packets.len(), 3);
        assert_eq!(packets[0].len(), 300_000 + 4 + 7);
        assert_eq!(packets[1], b"second");
    }

    #[test]
    fn an_empty_pass_is_one_empty_reply() {
        assert_eq!(ReplySink::default().into_replies(), [Vec::<u8>::new()]);
    }
}
