//! Trusted fields that the service appends to the packets of producers (`docs/spec/service.md
//! §15`).

use crate::buffer::{Identity, Packet, loss};
use crate::encode::put;
use crate::read::packet_check::{Found, PREVIOUS_PACKET_DROPPED};
use crate::read::sequence_ids::SequenceIds;

/// Encoder of the trusted fields of a read pass. Packets of one writer usually follow each other,
/// and all their fields but the loss are the same.
#[derive(Debug, Default)]
pub(crate) struct Stamper {
    /// Producer, writer and identity of the packet before.
    last: Option<(u16, u16, Identity)>,
    /// The fields of their packets if nothing was lost.
    stamp: Vec<u8>,
    with_loss: Vec<u8>,
}

impl Stamper {
    /// Returns the bytes to append to a packet.
    #[inline]
    pub(crate) fn stamp(&mut self, packet: &Packet<'_>, found: Found, ids: &mut SequenceIds) -> &[u8] {
        let key = (packet.producer.0, packet.writer.0, packet.identity);
        let is_first = self.last != Some(key) && self.turn_to(key, ids);
        // Readers of packets from old producers know only this mark (`docs/spec/trace-buffer.md
        // §19`).
        let lost = packet.loss | if is_first && !found.tells_first { loss::PRESENT } else { 0 };
        if lost == 0 {
            return &self.stamp;
        }
        // The last occurrence wins, so it must contain the bits that the producer itself reports.
        self.with_loss.clone_from(&self.stamp);
        put(&mut self.with_loss, PREVIOUS_PACKET_DROPPED, (lost | found.loss).into());
        &self.with_loss
    }

    /// Makes the stamp of another writer. Returns true if no packet of it was read before.
    fn turn_to(&mut self, key: (u16, u16, Identity), ids: &mut SequenceIds) -> bool {
        let (producer, writer, identity) = key;
        let (sequence_id, is_first) = ids.of_packet(&identity, producer, writer);
        self.last = Some(key);
        self.stamp.clear();
        put_identity(&mut self.stamp, &identity, sequence_id);
        is_first
    }
}

#[expect(clippy::cast_sign_loss, reason = "negative numbers have ten bytes")]
fn put_identity(out: &mut Vec<u8>, identity: &Identity, sequence_id: u32) {
    put(out, 3, i64::from(identity.uid) as u64);
    put(out, 10, sequence_id.into());
    if let Some(pid) = identity.pid {
        put(out, 79, i64::from(pid) as u64);
    }
    if identity.machine_id != 0 {
        put(out, 98, identity.machine_id.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_123_the_stamp() {
        let mut stamp = Vec::new();
        put_identity(&mut stamp, &Identity { uid: 5, pid: Some(7), machine_id: 0 }, 2);
        put(&mut stamp, PREVIOUS_PACKET_DROPPED, 3);
        assert_eq!(stamp, [0x18, 5, 0x50, 2, 0xf8, 0x04, 7, 0xd0, 0x02, 3]);
    }

    #[test]
    fn row_124_the_stamp_of_another_machine() {
        let mut stamp = Vec::new();
        put_identity(&mut stamp, &Identity { uid: 5, pid: Some(7), machine_id: 9 }, 2);
        assert_eq!(stamp, [0x18, 5, 0x50, 2, 0xf8, 0x04, 7, 0x90, 0x06, 9]);
        stamp.clear();
        put_identity(&mut stamp, &Identity { uid: -5, pid: Some(-5), machine_id: u32::MAX }, u32::MAX);
        assert_eq!(stamp.len(), 1 + 10 + 1 + 5 + 2 + 10 + 2 + 5);
    }
}
