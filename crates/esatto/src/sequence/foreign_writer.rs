//! What somebody else needs who writes events to a sequence: see [`crate::raw`].

use esatto_schema::interned_data;
use esatto_shm::TraceWriter;

use super::Sequence;
use crate::event::interning::FIRST_FOREIGN;

impl Sequence {
    /// Begins a track event that somebody else writes: makes the sequence ready. `false`: there is no memory to write to.
    pub fn begin(&mut self, now_ns: u64) -> bool {
        self.is_ready() || self.start(now_ns.max(self.last_ns))
    }

    /// Whether the sequence is ready, and a track was described in it.
    #[inline(always)]
    pub(crate) fn knows(&self, uuid: u64) -> bool {
        self.is_ready() && (uuid == self.last_track || self.tracks.contains(&uuid))
    }

    /// Writes packets of the sequence, when it is ready.
    pub const fn packets(&mut self) -> &mut TraceWriter {
        &mut self.writer
    }

    /// Whether a track was described; it counts as described from now on.
    pub fn track_seen(&mut self, uuid: u64) -> bool {
        !self.tracks.insert(uuid)
    }

    /// The number of an entry of a table of `InternedData`, and whether it was announced; the caller announces it now, if it was not.
    ///
    /// Of a category the entry is its [number](crate::Category::iid), eight bytes.
    pub fn intern(&mut self, table: u32, entry: &[u8]) -> (u64, bool) {
        if let (interned_data::field::EVENT_CATEGORIES, Ok(iid)) = (table, <[u8; 8]>::try_from(entry)) {
            let iid = u64::from_ne_bytes(iid);
            // No category has a number as large; one that comes from elsewhere is announced each time.
            let known = iid < FIRST_FOREIGN && self.categories.check_and_set(iid as u32);
            return (iid, known);
        }
        self.annotation_names.tables.foreign(table, entry)
    }
}
