//! A pointer to something that is never freed.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A place for a value that is never freed.
#[derive(Debug)]
pub(crate) struct Leaked<T: 'static>(AtomicPtr<T>);

impl<T: Sync> Leaked<T> {
    pub(crate) const fn none() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    pub(crate) fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or what `set` was given, which lives for ever.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    pub(crate) fn set(&self, value: Option<&'static T>) {
        self.0.store(value.map_or(ptr::null_mut(), |value| ptr::from_ref(value).cast_mut()), Ordering::Release);
    }
}
