//! Sessions in which a slice was begun that may outlive them.

use esatto_instances::BegunInstances;

use super::Threads;
use super::trace_point::record_begun;
use crate::category::Category;
use crate::event::{Arg, Site};
use crate::sequence::Sequence;

/// Sessions in which a slice was begun: only they should get its end.
///
/// The result of [`record`](crate::record) also names these sessions. But when they have ended and
/// other sessions have begun, its bits stand for the other sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Begun(BegunInstances);

impl Begun {
    /// No session.
    pub const NONE: Self = Self(BegunInstances::NONE);

    /// Calls `record` to begin the slice. `record` returns the sessions in which it did, as
    /// [`record`](crate::record) does.
    #[must_use]
    pub fn by(record: impl FnOnce() -> u32) -> Self {
        let mut begun = Self::NONE;
        begun.add(record);
        begun
    }

    /// Returns the value as a number, for interfaces that keep one. 0 is [`NONE`](Self::NONE).
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0.to_bits()
    }

    /// Makes the value of a number that [`to_bits`](Self::to_bits) returned in this process.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(BegunInstances::from_bits(bits))
    }

    /// Returns the sessions that are still there, as [`record_only`](crate::record_only) takes
    /// them. The result may be out of date a moment later; [`record`](Self::record) takes care of
    /// that.
    #[inline]
    #[must_use]
    pub fn instances(self) -> u32 {
        self.0.mask::<Sequence>()
    }

    /// Returns those of `recording` that have the begin. Each of `recording` was loaded as
    /// recording before this call.
    #[inline]
    pub(crate) fn among(self, recording: u32) -> u32 {
        self.0.among::<Sequence>(recording)
    }

    /// Returns the sessions that record the category but have no begin.
    #[inline]
    #[must_use]
    pub fn missing(self, category: &'static Category) -> u32 {
        let recording = category.instances();
        recording & !self.instances()
    }

    /// Calls `record` to begin the slice in more sessions. `record` returns them, as
    /// [`record_only`](crate::record_only) does.
    pub fn add(&mut self, record: impl FnOnce() -> u32) {
        self.0.add::<Threads>(record);
    }

    /// Records an event in those of these sessions that still record the category of the site, as
    /// [`record_only`](crate::record_only) does.
    #[inline]
    pub fn record(self, site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
        record_begun(self, site.category(), site, args)
    }
}
