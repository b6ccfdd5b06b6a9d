//! Categories of libraries for other languages, which have rules of their own and want to know when they are switched.

use core::fmt;

use super::{Category, Form};

/// What a [`Category`] is to the library that made it.
pub trait Foreign: fmt::Debug + Sync {
    /// How it is switched and whether it is listed; always the same.
    fn role(&self) -> Role;

    /// [`Category::instances`] may have changed. Called by whichever thread changed it, without locks of the crate; calls may come late and
    /// at the same time.
    fn switched(&'static self);

    /// In the child of a fork: the category is off. Must not lock anything but what a [static](crate::raw::StaticMutex) that was locked by it protects.
    fn forked(&self);
}

/// How a [`Foreign`] category is switched and whether services are told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// By the rules of the C ABI; told.
    Listed,
    /// By the rules of the C ABI; not told.
    Unlisted,
    /// On wherever track events are recorded; not told.
    Any,
}

impl Category {
    /// Makes a category of another language. Its rules are those of `docs/spec/track-event.md` §5 for the C library.
    #[doc(hidden)]
    #[must_use]
    pub const fn foreign(name: &'static str, foreign: &'static dyn Foreign) -> Self {
        Self::with_form(name, Form::Foreign(foreign))
    }

    /// The number that events name the category by.
    #[doc(hidden)]
    #[must_use]
    pub fn iid(&self) -> u32 {
        self.interned_name().iid()
    }
}
