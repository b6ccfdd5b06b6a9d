//! Reading a session: what comes in which order (`docs/spec/service.md §15`).

use crate::api::{Attachment, Body, ClientId, Now, Output};
use crate::buffer::Next;
use crate::context::Context;
use crate::ids::SessionId;
use crate::probe::{self, Note, PassEnd};
use crate::read::packet_check::check;
use crate::read::packet_sink::{PacketSink, ReplySink};
use crate::read::read_pass::Pass;
use crate::read::trusted_fields::Stamper;
use crate::service::Service;

/// Bytes collected for a consumer before it gets them. The contract has half of it; but all of a pass costs, not only its packets.
const BATCH_BYTES: usize = 64 * 1024;

/// What a batch may be longer without its memory being moved.
const SLACK_BYTES: usize = 32 * 1024;

/// Work of a turn of reading, in units of
/// [`CentralBuffer::work`](crate::buffer::CentralBuffer::work). Protects the event loop from
/// buffers full of what gives no packets (empty chunks, broken packets, packets that the check
/// refuses), and from the string rules of a filter. At the bound the batch ends, however little is in it, and reading goes on in a later
/// turn.
const WORK_PER_TURN: u64 = 1 << 17;

/// Bytes of a packet that the check refuses which cost one unit of work.
const CHECKED_BYTES_PER_UNIT: u64 = 16;

impl Service {
    /// Sends the next batch of a pending ReadBuffers call.
    pub(crate) fn continue_read(&mut self, client: ClientId, cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.get_mut(&client) else { return };
        let Some(call) = consumer.read_call else { return };
        let session = consumer.session.and_then(|id| self.sessions.get(&id));
        let Some(session) = session.filter(|session| !session.streams_to_file).map(|session| session.id) else {
            consumer.read_call = None;
            return cx.reply_empty(call);
        };
        let mut sink = ReplySink::new(cx.out.buffer(BATCH_BYTES + SLACK_BYTES));
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
            cx.out.forget_buffers();
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
        let Some(session) = self.sessions.get_mut(&id).filter(|session| !session.is_hidden()) else { return false };
        let threshold_bytes = session.codec.map_or(threshold_bytes, |codec| codec.batch_bytes().min(threshold_bytes));
        let mut pass = Pass::new(session.trace_filter.take(), session.codec, sink);
        let has_more = self.fill(id, threshold_bytes, &mut pass, now);
        let trace_filter = pass.finish();
        if let Some(session) = self.sessions.get_mut(&id) {
            session.trace_filter = trace_filter;
        }
        has_more
    }

    fn fill(&mut self, id: SessionId, threshold_bytes: usize, pass: &mut Pass<'_, impl PacketSink>, now: &Now) -> bool {
        let note = |end| probe::note(Note::Read { session: id.0, end });
        if !self.put_service_packets(id, pass, now) {
            note(PassEnd::NotBegun);
            return false;
        }
        let before = self.work_of_buffers(id) + pass.work();
        let contents = self.put_buffered_packets(id, threshold_bytes, pass);
        self.work += self.work_of_buffers(id) + pass.work() - before;
        match contents {
            Contents::Exhausted => {
                note(PassEnd::Exhausted);
                self.put_closing_packets(id, pass, now);
                false
            }
            Contents::More => {
                note(PassEnd::More);
                true
            }
            Contents::OutOfWork => {
                note(PassEnd::OutOfWork);
                true
            }
            Contents::Refused => {
                note(PassEnd::Refused);
                false
            }
        }
    }

    fn work_of_buffers(&self, id: SessionId) -> u64 {
        self.sessions.get(&id).map_or(0, |session| self.buffers.work_of(&session.buffers))
    }

    fn put_buffered_packets(
        &mut self,
        id: SessionId,
        threshold_bytes: usize,
        pass: &mut Pass<'_, impl PacketSink>,
    ) -> Contents {
        let Some(session) = self.sessions.get_mut(&id) else { return Contents::Exhausted };
        let mut stamper = Stamper::default();
        let mut left = WORK_PER_TURN;
        for (index, buffer) in session.buffers.iter().enumerate() {
            let Some(buffer) = self.buffers.get_mut(*buffer) else { continue };
            buffer.resume_read();
            let mut last = buffer.work();
            loop {
                left = left.saturating_sub(buffer.work() - last);
                last = buffer.work();
                let packet = match buffer.next_within(left) {
                    Next::Packet(packet) => packet,
                    Next::Exhausted => break,
                    Next::OutOfWork => return Contents::OutOfWork,
                };
                let Some(found) = check(packet.slices()) else {
                    session.invalid_packets += 1;
                    left = left.saturating_sub(1 + packet.size_bytes() as u64 / CHECKED_BYTES_PER_UNIT);
                    continue;
                };
                let stamp = stamper.stamp(&packet, found, &mut session.sequence_ids);
                let filtered = pass.work();
                if !pass.put_buffered(index, packet.slices(), stamp) {
                    return Contents::Refused;
                }
                if pass.bytes() >= threshold_bytes {
                    return Contents::More;
                }
                left = left.saturating_sub(pass.work() - filtered);
                if left == 0 {
                    return Contents::OutOfWork;
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
    /// The work of a turn is done.
    OutOfWork,
    /// The sink takes no more.
    Refused,
}
