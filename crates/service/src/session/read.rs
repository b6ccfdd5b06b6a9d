//! One read pass over a session: the service's own packets, the buffers, then statistics
//! (`docs/spec/service.md §15`).

use super::Session;
use super::state::State;
use super::statistics::Totals;
use crate::api::{Now, ServiceConfig};
use crate::buffer::Next;
use crate::buffer::table::Buffers;
use crate::machines::Machines;
use crate::observer::{Observer, PassEnd, Step};
use crate::read::packet_check::check;
use crate::read::packet_sink::PacketSink;
use crate::read::read_pass::ReadPass;
use crate::read::trusted_fields::Stamper;

/// Work of one turn of reading, in units of
/// [`CentralBuffer::work`](crate::buffer::CentralBuffer::work).
///
/// Protects the event loop from buffers whose content gives no packets (empty chunks, broken
/// packets, refused packets), and from the string rules of a filter. At the bound the batch ends,
/// even if it is small, and reading continues in a later turn.
const WORK_PER_TURN: u64 = 1 << 17;

/// Bytes of a packet that cost one unit of work if the check refuses it.
const CHECKED_BYTES_PER_UNIT: u64 = 16;

/// The parts of the service that a read pass uses beside the session.
pub(crate) struct ReadContext<'a> {
    pub(crate) config: &'a ServiceConfig,
    pub(crate) machines: &'a Machines,
    pub(crate) buffers: &'a mut Buffers,
    pub(crate) totals: Totals,
    pub(crate) now: &'a Now,
    /// Counts the work; see [`Service::work`](crate::Service::work).
    pub(crate) work: &'a mut u64,
    pub(crate) observer: &'a Observer,
}

/// How a pass over the buffers ended.
enum Contents {
    Exhausted,
    /// The batch has reached its threshold.
    More,
    /// The work of a turn is done.
    OutOfWork,
    /// The sink accepts no more packets.
    Refused,
}

impl Session {
    /// Reads packets into a sink until they reach a threshold. Returns true if there is more.
    pub(crate) fn read(
        &mut self,
        threshold_bytes: usize,
        sink: &mut impl PacketSink,
        from: &mut ReadContext<'_>,
    ) -> bool {
        if self.is_hidden() {
            return false;
        }
        self.reading.is_done_while_recording |= self.state() == State::Started;
        let threshold_bytes =
            self.reading.codec.map_or(threshold_bytes, |codec| codec.batch_bytes().min(threshold_bytes));
        let mut pass = ReadPass::new(self.reading.filter.take(), self.reading.codec, sink);
        let has_more = self.fill(threshold_bytes, &mut pass, from);
        self.reading.filter = pass.finish();
        has_more
    }

    fn fill(
        &mut self,
        threshold_bytes: usize,
        pass: &mut ReadPass<'_, impl PacketSink>,
        from: &mut ReadContext<'_>,
    ) -> bool {
        let (session, observer) = (self.id.0, from.observer);
        let report = |end| observer.report(Step::Read { session, end });
        if !self.put_service_packets(pass, from) {
            report(PassEnd::NotBegun);
            return false;
        }
        let before = from.buffers.work_of(&self.buffers) + pass.work();
        let contents = self.put_buffered_packets(threshold_bytes, pass, from.buffers);
        *from.work += from.buffers.work_of(&self.buffers) + pass.work() - before;
        match contents {
            Contents::Exhausted => {
                report(PassEnd::Exhausted);
                self.put_closing_packets(pass, from);
                false
            }
            Contents::More => {
                report(PassEnd::More);
                true
            }
            Contents::OutOfWork => {
                report(PassEnd::OutOfWork);
                true
            }
            Contents::Refused => {
                report(PassEnd::Refused);
                false
            }
        }
    }

    fn put_buffered_packets(
        &mut self,
        threshold_bytes: usize,
        pass: &mut ReadPass<'_, impl PacketSink>,
        buffers: &mut Buffers,
    ) -> Contents {
        let mut stamper = Stamper::default();
        let mut left = WORK_PER_TURN;
        for (index, &buffer) in self.buffers.iter().enumerate() {
            let Some(buffer) = buffers.get_mut(buffer) else { continue };
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
                    self.reading.invalid_packets += 1;
                    left = left.saturating_sub(1 + packet.size_bytes() as u64 / CHECKED_BYTES_PER_UNIT);
                    continue;
                };
                let stamp = stamper.stamp(&packet, found, &mut self.reading.sequence_ids);
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
