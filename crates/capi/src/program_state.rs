//! Objects that a program keeps for each thread and instance of a data source (`docs/spec/c-abi.md`
//! §5).
//!
//! Callbacks of the program make, clear and delete an object, and they may ask for it meanwhile. So
//! no reference to the state is held while one runs.

use core::ffi::c_void;
use core::ptr;

use esatto::raw::Uncancelled;

use crate::abi::{DsImpl, DsOnClearState, DsOnCreateState, DsOnDeleteState, DsTracerImpl};
use crate::ffi::Argument;

/// Object for the thread ("TLS"). It is made at the first trace point, and deleted by the thread
/// that has made it.
#[derive(Default)]
pub(crate) struct CustomState(Object);

/// Object that is made again when readers of the trace may have lost the packets that it stands
/// for. Else as [`CustomState`].
#[derive(Default)]
pub(crate) struct IncrementalState {
    object: Object,
    clear: bool,
}

/// The callbacks that make and delete an object, and their arguments. If one of both is missing,
/// there is no object.
#[derive(Clone, Copy)]
pub(crate) struct Maker {
    pub(crate) ds: Argument<DsImpl>,
    pub(crate) slot: u32,
    pub(crate) tracer: *mut DsTracerImpl,
    pub(crate) create: Option<DsOnCreateState>,
    pub(crate) delete: Option<DsOnDeleteState>,
    pub(crate) user_arg: Argument,
}

/// An object that the program has made.
#[derive(Default)]
struct Object(Option<(Argument, DsOnDeleteState)>);

impl Maker {
    /// Makes an object, if the program wants one.
    fn make(&self) -> Object {
        let (Some(create), Some(delete)) = (self.create, self.delete) else { return Object(None) };
        let _uncancelled = Uncancelled::begin();
        // SAFETY: the contract of the callback.
        let object = unsafe { create(self.ds.0, self.slot, self.tracer, self.user_arg.0) };
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
            let _uncancelled = Uncancelled::begin();
            // SAFETY: the contract of the callback: once, with the object that was created.
            unsafe { delete(object.0) };
        }
    }
}

impl CustomState {
    /// Makes the object, if there is none.
    ///
    /// # Safety
    ///
    /// Valid, and used by this thread only.
    pub(crate) unsafe fn make(this: *mut Self, maker: &Maker) {
        // SAFETY: the caller's promise.
        if unsafe { !(*this).0.is_made() } {
            let object = maker.make();
            // SAFETY: as above.
            unsafe { (*this).0 = object };
        }
    }

    /// Returns the object; null if there is none.
    ///
    /// # Safety
    ///
    /// Null, or valid and used by this thread only.
    pub(crate) unsafe fn get(this: *const Self) -> *mut c_void {
        // SAFETY: the caller's promise.
        unsafe { this.as_ref() }.map_or(ptr::null_mut(), |this| this.0.get())
    }
}

impl IncrementalState {
    /// Makes the object, if there is none.
    ///
    /// # Safety
    ///
    /// Valid, and used by this thread only.
    pub(crate) unsafe fn make(this: *mut Self, maker: &Maker) {
        // SAFETY: the caller's promise.
        if unsafe { !(*this).object.is_made() } {
            let object = maker.make();
            // SAFETY: as above.
            unsafe { (*this).object = object };
        }
    }

    /// Makes the next [`get`](Self::get) clear the object.
    pub(crate) fn clear_later(&mut self) {
        self.clear = self.object.is_made();
    }

    /// Returns the object, which it clears if it has to; null if there is none.
    ///
    /// # Safety
    ///
    /// Null, or valid and used by this thread only.
    pub(crate) unsafe fn get(this: *mut Self, maker: &Maker, clear: Option<DsOnClearState>) -> *mut c_void {
        // SAFETY: the caller's promise.
        let Some(here) = (unsafe { this.as_mut() }) else { return ptr::null_mut() };
        if core::mem::take(&mut here.clear) {
            let object = here.object.get();
            let _uncancelled = Uncancelled::begin();
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
