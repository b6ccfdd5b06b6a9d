//! The memory that the buffers of a user's sessions may take.

use super::Session;
use super::clone::PendingClone;
use super::table::Sessions;

impl Sessions {
    /// Checks whether a user's sessions can have this many more bytes of buffers.
    ///
    /// An exclusive session of this priority (if it is not 0) ends some sessions first. A user may
    /// have half of what all others leave; root and the service's own user may have all of it.
    pub(crate) fn check_memory(&self, uid: i32, wanted_prio: u32, bytes: u64, max_bytes: u64) -> Result<(), String> {
        let stays = |other: &&Session| self.counts_beside(other, uid, wanted_prio);
        let of_sessions = self.values().filter(stays).map(|session| (session.consumer_uid, session.buffer_bytes));
        let of_drains =
            self.staying_drains(uid, wanted_prio).map(|session| (session.consumer_uid, session.buffer_bytes));
        let of_clones = self.clones.values().map(PendingClone::charge);
        let (mut all, mut own) = (0_u64, 0_u64);
        for (owner, bytes) in of_sessions.chain(of_drains).chain(of_clones) {
            all += bytes;
            own += if owner == uid { bytes } else { 0 };
        }
        let left_by_others = max_bytes.saturating_sub(all - own);
        let share = if self.is_trusted(uid) { left_by_others } else { left_by_others / 2 };
        if own.saturating_add(bytes) > share {
            return Err(format!(
                "the buffers have {} KiB together, {} KiB are left for uid {uid}: its sessions have {} KiB, and those \
                 of all users may have {} KiB",
                bytes / 1024,
                share.saturating_sub(own) / 1024,
                own / 1024,
                max_bytes / 1024,
            ));
        }
        Ok(())
    }
}
