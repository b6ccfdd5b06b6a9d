//! Word that says which instances record something.

use core::sync::atomic::Ordering;

use crate::orderings::Access;
use crate::sync::AtomicU32;

/// Bit mask of the instances that record something, by slot. Bits above the slots are free for
/// other uses.
///
/// A trace point reads the word twice. [`peek`](Self::peek) tells whether there is anything to do,
/// and orders nothing: it is the whole cost of a trace point while nothing records. A thread that
/// then writes for the instances uses the result of [`load`](Self::load). If a bit is set there,
/// the instance is in its slot, with its stamp.
///
/// The bit may belong to an instance that has ended since. So a thread that finds another instance
/// in the slot than it knows loads the word again. The control thread clears the bits of an
/// instance before the next one comes to the slot. Therefore a thread that sees the stamp of the
/// next instance sees the bit of that instance, or none.
#[derive(Debug)]
pub struct Recording(AtomicU32);

impl Recording {
    /// Makes a word with these bits.
    #[cfg(not(esatto_loom))]
    #[must_use]
    pub const fn new(bits: u32) -> Self {
        Self(AtomicU32::new(bits))
    }

    /// Makes a word with these bits.
    #[cfg(esatto_loom)]
    #[must_use]
    pub fn new(bits: u32) -> Self {
        Self(AtomicU32::new(bits))
    }

    /// Returns the word, without ordering: it may be slightly out of date.
    #[inline(always)]
    pub fn peek(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the word itself, to [`peek`](Self::peek) at it from elsewhere.
    #[cfg(not(esatto_loom))]
    #[must_use]
    pub const fn word(&self) -> &AtomicU32 {
        &self.0
    }

    /// Returns the word; the instances whose bits are set are in their slots.
    #[inline(always)]
    pub fn load(&self) -> u32 {
        self.0.load(Access::LoadRecording.ordering())
    }

    /// Replaces the whole word. Only one thread at a time may call this.
    pub fn set(&self, bits: u32) {
        self.0.store(bits, Access::ChangeRecording.ordering());
    }

    /// Sets the bit of an instance, which is in its slot.
    pub fn start(&self, slot: usize) {
        self.0.fetch_or(1 << slot, Access::ChangeRecording.ordering());
    }

    /// Clears the bit of an instance, which is still in its slot.
    pub fn stop(&self, slot: usize) {
        self.0.fetch_and(!(1 << slot), Access::ChangeRecording.ordering());
    }
}
