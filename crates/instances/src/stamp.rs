//! Identity of instances.

/// Identity of an instance in its slot, and of its incremental state.
///
/// A stamp is (epoch << 32) | number of clears. The epoch counts the instances that this process
/// has set up, of any data source; 0 stands for no instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(pub(crate) u64);

impl Stamp {
    /// Stamp of an empty slot.
    pub const NONE: Self = Self(0);

    pub(crate) const fn new(epoch: u32, clears: u32) -> Self {
        Self((epoch as u64) << 32 | clears as u64)
    }

    /// Returns whether both stamps belong to one instance, whose incremental state may have been
    /// cleared in between.
    #[inline]
    #[must_use]
    pub const fn is_same_instance(self, other: Self) -> bool {
        self.epoch() == other.epoch()
    }

    /// Returns whether the instance was set up after another one, which has this epoch.
    pub(crate) const fn is_after(self, epoch: u32) -> bool {
        self.epoch().wrapping_sub(epoch) as i32 > 0
    }

    pub(crate) const fn epoch(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the same instance after one more clear of its incremental state.
    pub(crate) const fn cleared(self) -> Self {
        Self::new(self.epoch(), (self.0 as u32).wrapping_add(1))
    }
}

/// Slot of an instance, and its epoch: tells it from the other instances that were or will be in
/// the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Index of the slot.
    pub slot: usize,
    /// Epoch of the instance's [`Stamp`].
    pub epoch: u32,
}
