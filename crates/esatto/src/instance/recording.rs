//! Who records something.

use core::sync::atomic::Ordering;

use crate::order::Access;
use crate::sync::AtomicU32;

/// Which instances record something, one bit each; bits above them may mean something else to whoever has this.
///
/// The word is looked at twice. A [glance](Self::glance) tells whether there is anything to do, and orders nothing; it is all that a trace point
/// costs while nobody records. Who then writes for the instances goes by what he [sees](Self::see): if a bit is set, the
/// instance is in its slot, with its stamp.
///
/// The bit may be that of an instance which has ended meanwhile. So who comes to the slot and finds another one there than he knows, looks again: the
/// bits of an instance are cleared before the next one is in the slot, so that whoever sees the next one's stamp sees the next one's bit, or none.
#[derive(Debug)]
pub(crate) struct Recording(AtomicU32);

impl Recording {
    #[cfg(not(esatto_loom))]
    pub(crate) const fn new(bits: u32) -> Self {
        Self(AtomicU32::new(bits))
    }

    #[cfg(esatto_loom)]
    pub(crate) fn new(bits: u32) -> Self {
        Self(AtomicU32::new(bits))
    }

    /// The word now, more or less.
    #[inline(always)]
    pub(crate) fn glance(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// The word, and the instances whose bits are set.
    #[inline(always)]
    pub(crate) fn see(&self) -> u32 {
        self.0.load(Access::SeeRecording.ordering())
    }

    /// Replaces the whole word; one thread at a time.
    pub(crate) fn set(&self, bits: u32) {
        self.0.store(bits, Access::ChangeRecording.ordering());
    }

    /// An instance, which is in its slot, starts.
    pub(crate) fn start(&self, slot: usize) {
        self.0.fetch_or(1 << slot, Access::ChangeRecording.ordering());
    }

    /// An instance, which is in its slot still, stops.
    pub(crate) fn stop(&self, slot: usize) {
        self.0.fetch_and(!(1 << slot), Access::ChangeRecording.ordering());
    }
}
