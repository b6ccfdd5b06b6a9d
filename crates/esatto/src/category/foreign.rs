//! Categories of libraries for other languages, which have their own rules and callbacks for
//! switches.

use core::fmt;

use super::{Category, Form};

/// A library's view of its [`Category`].
pub trait Foreign: fmt::Debug + Sync {
    /// Returns how the category is switched and whether it is listed; always the same.
    fn role(&self) -> Role;

    /// Reports that [`Category::instances`] may have changed. The thread that changed it makes the
    /// call, without locks of this crate. Calls may be late and concurrent.
    fn switched(&'static self);

    /// Reports, in the child of a fork, that no instance is left. Must not lock anything except a
    /// [static mutex](crate::raw::StaticMutex) that the fork holds.
    ///
    /// The category may seem to be on, so that its trace point calls
    /// [`reached_in_child`](crate::raw::reached_in_child).
    fn forked(&self);

    /// Switches off what trace points see, in the child of a fork. Must not lock anything.
    fn switch_off(&self);
}

/// The rules by which a [`Foreign`] category is switched, and whether services list it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The rules of the C ABI; listed.
    Listed,
    /// The rules of the C ABI; not listed.
    Unlisted,
    /// On wherever track events are recorded; not listed.
    Any,
}

impl Category {
    /// Makes a category of another language. Its rules are those of `docs/spec/track-event.md` §5
    /// for the C library.
    #[doc(hidden)]
    #[must_use]
    pub const fn foreign(name: &'static str, foreign: &'static dyn Foreign) -> Self {
        Self::with_form(name, Form::Foreign(foreign))
    }

    /// Returns the number that events use for the category.
    #[doc(hidden)]
    #[must_use]
    pub fn iid(&self) -> u32 {
        self.interned_name().iid()
    }
}
