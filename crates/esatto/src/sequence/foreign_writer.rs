//! Methods for other libraries that write events to a sequence: see [`crate::raw`].

use esatto_schema::interned_data;
use esatto_shm::TraceWriter;

use super::Sequence;
use crate::event::interning::FIRST_FOREIGN;

/// Track that the caller describes itself. The event names it by an argument.
pub(crate) struct ForeignTrack<'a> {
    /// Writes the description, and marks the track as described. Called each time that the sequence
    /// does not know the track, which is also after a loss.
    pub(crate) describe: &'a dyn Fn(&mut Sequence),
}

impl Sequence {
    /// Prepares the sequence for a track event that the caller writes. Returns false if there is no
    /// memory.
    pub fn begin(&mut self, now_ns: u64) -> bool {
        self.renew_if_due();
        self.is_ready() || self.start(now_ns.max(self.last_ns))
    }

    /// Returns the writer of the sequence, once it is ready.
    pub const fn packets(&mut self) -> &mut TraceWriter {
        &mut self.writer
    }

    /// Marks a track as described. Returns whether it was already.
    pub fn track_seen(&mut self, uuid: u64) -> bool {
        !self.tracks.insert(uuid)
    }

    /// Returns the number of an entry of a table of `InternedData`, and whether it was announced.
    /// If it was not, the caller announces it now.
    ///
    /// The entry of a category is its [number](crate::Category::iid), eight bytes.
    pub fn intern(&mut self, table: u32, entry: &[u8]) -> (u64, bool) {
        if let (interned_data::field::EVENT_CATEGORIES, Ok(iid)) = (table, <[u8; 8]>::try_from(entry)) {
            let iid = u64::from_ne_bytes(iid);
            // No category has a number that large. One from elsewhere is announced each time.
            let known = iid < FIRST_FOREIGN && self.categories.check_and_set(iid as u32);
            return (iid, known);
        }
        self.annotation_names.tables.foreign(table, entry)
    }
}
