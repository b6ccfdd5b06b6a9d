//! Reading a session: what comes in which order, and into what it is put (`docs/spec/service.md §15`).

use esatto_protozero::wire::varint_size;

use crate::api::{Attachment, Body, ClientId, Now, Output};
use crate::context::Context;
use crate::ids::SessionId;
use crate::packet_check::{check, put_varint, stamp};
use crate::probe::{self, Note, PassEnd};
use crate::service::Service;

/// Bytes collected for a consumer before it gets them.
const BATCH_BYTES: usize = 32 * 1024;

/// Sum of slices, with [`SLICE_OVERHEAD`] each, at which a reply is closed.
const MAX_REPLY_BYTES: usize = 131_072 - 64;

/// What a slice costs in a reply, at most.
const SLICE_OVERHEAD: usize = 16;

/// Longest slice; longer packets are cut.
const MAX_SLICE_BYTES: usize = 130_560;

const _: () = assert!(MAX_SLICE_BYTES + SLICE_OVERHEAD <= MAX_REPLY_BYTES);

/// Where the packets of a pass go.
pub(crate) trait PacketSink {
    /// Takes a packet: its slices and what the service appends. False: no more packets are taken.
    fn put<'a>(&mut self, slices: impl Iterator<Item = &'a [u8]> + Clone, trailer: &'a [u8]) -> bool;

    /// Bytes of the packets taken.
    fn packet_bytes(&self) -> usize;
}

/// Packets as the slices of ReadBuffersResponse messages.
#[derive(Debug, Default)]
pub(crate) struct ReplySink {
    /// Full replies.
    done: Vec<Vec<u8>>,
    reply: Vec<u8>,
    /// What the slices of `reply` count for.
    reply_bytes: usize,
    packet_bytes: usize,
}

impl ReplySink {
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

    /// The encoded replies; at least one, the last one possibly empty.
    fn into_replies(mut self) -> Vec<Vec<u8>> {
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
            self.packet_bytes += piece.len();
            self.put_slice(piece, pieces.peek().is_none());
        }
        true
    }

    fn packet_bytes(&self) -> usize {
        self.packet_bytes
    }
}

/// Packets as the bytes of a `Trace` message.
#[derive(Debug)]
pub(crate) struct FileSink {
    bytes: Vec<u8>,
    /// The batch must stay below this.
    max_bytes: Option<u64>,
    is_full: bool,
}

impl FileSink {
    pub(crate) fn new(max_bytes: Option<u64>) -> Self {
        Self { bytes: Vec::new(), max_bytes, is_full: false }
    }

    /// The bytes, and whether a packet did not fit any more.
    pub(crate) fn into_bytes(self) -> (Vec<u8>, bool) {
        (self.bytes, self.is_full)
    }
}

impl PacketSink for FileSink {
    fn put<'a>(&mut self, slices: impl Iterator<Item = &'a [u8]> + Clone, trailer: &'a [u8]) -> bool {
        let len = slices.clone().map(<[u8]>::len).sum::<usize>() + trailer.len();
        let total = self.bytes.len() + 1 + varint_size(len as u64) + len;
        if self.is_full || self.max_bytes.is_some_and(|max| total as u64 >= max) {
            self.is_full = true;
            return false;
        }
        self.bytes.push(1 << 3 | 2);
        put_varint(&mut self.bytes, len as u64);
        for slice in slices {
            self.bytes.extend_from_slice(slice);
        }
        self.bytes.extend_from_slice(trailer);
        true
    }

    fn packet_bytes(&self) -> usize {
        self.bytes.len()
    }
}

impl Service {
    /// Sends the next batch of a pending ReadBuffers call.
    pub(crate) fn continue_read(&mut self, client: ClientId, cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.get_mut(&client) else { return };
        let Some(call) = consumer.read_call else { return };
        let session = consumer.session.and_then(|id| self.sessions.get(&id));
        let Some(session) = session.filter(|session| !session.is_streaming_to_file()).map(|session| session.id) else {
            consumer.read_call = None;
            return cx.reply_empty(call);
        };
        let mut sink = ReplySink::default();
        let has_more = self.read_pass(session, BATCH_BYTES, &mut sink, cx.now);
        let mut replies = sink.into_replies();
        let last = replies.pop();
        for reply in replies {
            cx.reply_part(call, reply);
        }
        if let Some(last) = last {
            let body = if last.is_empty() { Body::Empty } else { Body::Encoded(last) };
            cx.send(call, body, has_more, Attachment::Absent);
        }
        if has_more {
            cx.push(Output::AwaitReady(client));
        } else if let Some(consumer) = self.consumers.get_mut(&client) {
            consumer.read_call = None;
        }
    }

    /// One pass over a session; true if there is more (`docs/spec/service.md §15`).
    pub(crate) fn read_pass(
        &mut self,
        id: SessionId,
        threshold_bytes: usize,
        sink: &mut impl PacketSink,
        now: &Now,
    ) -> bool {
        if self.sessions.get(&id).is_some_and(crate::session::Session::is_hidden) {
            return false;
        }
        let note = |end| probe::note(Note::Read { session: id.0, end });
        if !self.put_service_packets(id, sink, now) {
            note(PassEnd::NotBegun);
            return false;
        }
        match self.put_buffered_packets(id, threshold_bytes, sink) {
            Contents::Exhausted => {
                note(PassEnd::Exhausted);
                self.put_closing_packets(id, sink, now);
                false
            }
            Contents::More => {
                note(PassEnd::More);
                true
            }
            Contents::Refused => {
                note(PassEnd::Refused);
                false
            }
        }
    }

    fn put_buffered_packets(&mut self, id: SessionId, threshold_bytes: usize, sink: &mut impl PacketSink) -> Contents {
        let Some(session) = self.sessions.get_mut(&id) else { return Contents::Exhausted };
        let mut trailer = Vec::with_capacity(64);
        for buffer in &session.buffers {
            let Some(buffer) = self.buffers.get_mut(buffer) else { continue };
            buffer.begin_read();
            while let Some(packet) = buffer.next_packet() {
                let Some(found) = check(packet.slices()) else {
                    session.invalid_packets += 1;
                    continue;
                };
                let machine_id = packet.identity.machine_id;
                let sequence_id = session.sequence_ids.of(machine_id, packet.producer.0, packet.writer.0);
                // Readers of old producers' packets know only this mark (`docs/spec/trace-buffer.md §19`).
                let is_first = session.sequence_ids.is_first_packet(sequence_id) && !found.tells_first;
                let loss = packet.loss | if is_first { crate::buffer::loss::PRESENT } else { 0 };
                trailer.clear();
                // The last occurrence wins: what the producer reports itself must not be lost.
                let reported = if loss != 0 { loss | found.loss } else { 0 };
                stamp(&mut trailer, &packet.identity, sequence_id, reported);
                if !sink.put(packet.slices(), &trailer) {
                    return Contents::Refused;
                }
                if sink.packet_bytes() >= threshold_bytes {
                    return Contents::More;
                }
            }
        }
        Contents::Exhausted
    }
}

/// How far the buffers were read.
enum Contents {
    Exhausted,
    /// The threshold was reached.
    More,
    /// The sink takes no more.
    Refused,
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

    #[test]
    fn a_file_stays_below_its_limit() {
        let mut sink = FileSink::new(Some(10));
        assert!(sink.put([&b"abcd"[..]].into_iter(), b""));
        assert!(!sink.put([&b"ab"[..]].into_iter(), b""), "6 + 4 bytes would reach the limit");
        assert!(!sink.put([].into_iter(), b""), "what follows a packet that did not fit is dropped, too");
        assert_eq!(sink.into_bytes(), (b"\x0a\x04abcd".to_vec(), true));
    }
}
