//! [`FragmentFlags`]: properties of the fragment being written.

/// Properties of a fragment. If it has any, its size field has four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FragmentFlags(u8);

impl FragmentFlags {
    pub(super) const NONE: Self = Self(0);
    /// The fragment continues a packet.
    pub(super) const CONTINUES: Self = Self(1);
    /// Its packet has a reservation, so its bytes must not be moved.
    pub(super) const DEFERRED: Self = Self(2);

    pub(super) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}
