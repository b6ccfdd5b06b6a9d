//! What the program keeps for each thread and instance.

use core::ffi::c_void;
use core::ptr;

use super::{DataSourceType, OnClear, OnCreate, OnDelete};
use crate::tracer::{Argument, Tracer};

/// "TLS": made at the first trace point, and deleted by the thread that has made it.
#[derive(Default)]
pub(crate) struct CustomState(Object);

/// As [`CustomState`]; and made anew when readers of the trace may have lost what it stands for.
#[derive(Default)]
pub(crate) struct IncrementalState {
    object: Object,
    clear: bool,
}

/// How objects are made and deleted. Without both of these there are none.
#[derive(Clone, Copy)]
pub(super) struct Maker {
    pub(super) ds: &'static DataSourceType,
    pub(super) slot: u32,
    pub(super) tracer: *mut Tracer,
    pub(super) create: Option<OnCreate>,
    pub(super) delete: Option<OnDelete>,
    pub(super) user_arg: Argument,
}

/// Something that the program has made.
///
/// What makes, clears and deletes it is the program's, which may ask for it meanwhile: so no reference is held then.
#[derive(Default)]
struct Object(Option<(Argument, OnDelete)>);

impl Maker {
    /// Makes an object, if the program wants any.
    fn make(&self) -> Object {
        let (Some(create), Some(delete)) = (self.create, self.delete) else { return Object(None) };
        // SAFETY: the contract of the callback.
        let object = unsafe { create(self.ds, self.slot, self.tracer, self.user_arg.0) };
        Object(Some((Argument(object), delete)))
    }
}

impl Object {
    fn get(&self) -> *mut c_void {
        self.0.map_or(ptr::null_mut(), |(object, _)| object.0)
    }

    const fn is_made(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if let Some((object, delete)) = self.0.take() {
            // SAFETY: the contract of the callback: once, with what was created.
            unsafe { delete(object.0) };
        }
    }
}

impl CustomState {
    /// Makes the object, unless there is one.
    ///
    /// # Safety
    ///
    /// Valid, and used by this thread only.
    pub(super) unsafe fn make(this: *mut Self, maker: &Maker) {
        // SAFETY: the caller's promise.
        if unsafe { !(*this).0.is_made() } {
            let object = maker.make();
            // SAFETY: as above.
            unsafe { (*this).0 = object };
        }
    }

    /// The object; null if there is none.
    ///
    /// # Safety
    ///
    /// Null, or valid and used by this thread only.
    pub(super) unsafe fn get(this: *const Self) -> *mut c_void {
        // SAFETY: the caller's promise.
        unsafe { this.as_ref() }.map_or(ptr::null_mut(), |this| this.0.get())
    }
}

impl IncrementalState {
    /// Makes the object, unless there is one.
    ///
    /// # Safety
    ///
    /// Valid, and used by this thread only.
    pub(super) unsafe fn make(this: *mut Self, maker: &Maker) {
        // SAFETY: the caller's promise.
        if unsafe { !(*this).object.is_made() } {
            let object = maker.make();
            // SAFETY: as above.
            unsafe { (*this).object = object };
        }
    }

    /// The next [`get`](Self::get) clears.
    pub(super) fn clear_later(&mut self) {
        self.clear = self.object.is_made();
    }

    /// The object, cleared if it has to be; null if there is none.
    ///
    /// # Safety
    ///
    /// Null, or valid and used by this thread only.
    pub(super) unsafe fn get(this: *mut Self, maker: &Maker, clear: Option<OnClear>) -> *mut c_void {
        // SAFETY: the caller's promise.
        let Some(here) = (unsafe { this.as_mut() }) else { return ptr::null_mut() };
        if core::mem::take(&mut here.clear) {
            let object = here.object.get();
            // SAFETY: the contract of the callback.
            let is_kept = clear.is_some_and(|clear| unsafe { clear(object, maker.user_arg.0) } == 1);
            if !is_kept {
                // SAFETY: as above.
                let old = unsafe { core::mem::take(&mut (*this).object) };
                drop(old);
                let new = maker.make();
                // SAFETY: as above.
                unsafe { (*this).object = new };
            }
        }
        // SAFETY: as above.
        unsafe { (*this).object.get() }
    }
}
