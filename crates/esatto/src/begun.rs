//! In which sessions a slice was begun that may outlive them.

use crate::category::Category;
use crate::instance;

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

    /// In those that [`record`](crate::record) said just now.
    #[must_use]
    pub fn now(instances: u32) -> Self {
        Self { instances, epoch: instance::last_epoch() }
    }

    /// The sessions, as [`record_only`](crate::record_only) takes them.
    #[inline]
    #[must_use]
    pub fn instances(self) -> u32 {
        if self.epoch == instance::last_epoch() {
            self.instances
        } else {
            self.instances & !instance::set_up_after(self.epoch)
        }
    }

    /// Sessions that record the category but did not begin.
    #[inline]
    #[must_use]
    pub fn missing(self, category: &'static Category) -> u32 {
        category.instances() & !self.instances()
    }

    /// Adds those that [`record_only`](crate::record_only) said just now.
    pub fn add(&mut self, instances: u32) {
        *self = Self::now(self.instances() | instances);
    }
}
