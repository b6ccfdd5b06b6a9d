//! In which sessions a slice was begun that may outlive them.

use crate::category::Category;
use crate::event::{Arg, Site};
use crate::order::Rule;
use crate::{instance, thread};

/// The sessions in which something was begun, which are those that should get the rest of it.
///
/// The result of [`record`](crate::record) says so as well, but its bits mean other sessions when those have ended and others began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Begun {
    instances: u32,
    /// The last instance that was set up when `instances` was true.
    epoch: u32,
}

impl Begun {
    /// In no session.
    pub const NONE: Self = Self { instances: 0, epoch: 0 };

    /// In those in which `record` begins it, as [`record`](crate::record) says.
    #[must_use]
    pub fn by(record: impl FnOnce() -> u32) -> Self {
        let mut begun = Self::NONE;
        begun.add(record);
        begun
    }

    /// The sessions, as [`record_only`](crate::record_only) takes them. The next moment they may be others: [`record`](Self::record) takes care
    /// of that.
    #[inline]
    #[must_use]
    pub fn instances(self) -> u32 {
        self.instances_at(instance::last_epoch())
    }

    #[inline]
    fn instances_at(self, now: u32) -> u32 {
        if self.epoch == now { self.instances } else { self.instances & !instance::set_up_after(self.epoch) }
    }

    /// Sessions that record the category but did not begin.
    #[inline]
    #[must_use]
    pub fn missing(self, category: &'static Category) -> u32 {
        let recording = category.instances();
        recording & !self.instances()
    }

    /// Adds those in which `record` begins it, as [`record_only`](crate::record_only) says.
    pub fn add(&mut self, record: impl FnOnce() -> u32) {
        let before = instance::last_epoch();
        let had = Self { instances: self.instances_at(before), epoch: before };
        let mut added = record();
        let now = instance::last_epoch();
        if now != before && Rule::TellApart.is_kept() {
            // Where another instance came since, this thread knows by its sequence which of the two it was.
            added &= thread::still_there(added);
        }
        *self = Self { instances: had.instances_at(now) | added, epoch: now };
    }

    /// As [`record_only`](crate::record_only), for these sessions: those of them that still record the category of the site.
    #[inline]
    pub fn record(self, site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
        thread::record_begun(self, site.category(), site, args)
    }
}
